"""Writes a checkpoint's policy as one file that needs neither Ray nor this package.

docs/export.md has the loader.
"""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import gymnasium as gym
import torch
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.torch.torch_rl_module import TorchRLModule
from torch import Tensor, nn

from rllib_impass.experiments.checkpoint import (
    SavedAlgorithm,
    evaluation_config,
    make_runner,
    read_algorithm,
)
from rllib_impass.experiments.errors import UsageError, one_line
from rllib_impass.experiments.versions import versions

METADATA_NAME = "policy.json"


class DeterministicPolicy(nn.Module):
    """From the last states to the action an env takes.

    Args:
        module: the checkpoint's RLModule.
        space: the env's actions.
        unsquash: map [-1, 1] to the space (RLlib's ``normalize_actions``).
        clip: else clip to the space (RLlib's ``clip_actions``).
    """

    def __init__(
        self, module: TorchRLModule, space: gym.spaces.Box, unsquash: bool, clip: bool
    ) -> None:
        super().__init__()
        self.module = module
        # RLlib unsquashes to finite bounds only.
        self.unsquash = unsquash and space.is_bounded()
        self.clip = clip and not unsquash
        self.register_buffer("low", torch.as_tensor(space.low))
        self.register_buffer("high", torch.as_tensor(space.high))

    def forward(self, frames: Tensor) -> Tensor:
        """``[num_stacked_states, observation_size]`` to ``[action_size]``."""
        out = self.module.forward_inference({Columns.OBS: frames.reshape(1, -1)})
        if Columns.ACTIONS in out:
            action = out[Columns.ACTIONS]
        else:
            inputs = out[Columns.ACTION_DIST_INPUTS]
            distribution = self.module.get_inference_action_dist_cls()
            action = distribution.from_logits(inputs).to_deterministic().sample()
        action = action[0]
        if self.unsquash:
            action = self.low + (action + 1.0) * (self.high - self.low) / 2.0
        if self.unsquash or self.clip:
            action = action.clamp(self.low, self.high)
        return action


def export_policy(
    checkpoint: str | Path, file: str | Path, *, force: bool = False
) -> dict[str, Any]:
    """Writes the deterministic policy of a checkpoint, its normaliser included.

    Args:
        checkpoint: its folder. Loading it executes code: load only what you trust.
        file: where to write; must not exist yet.
        force: replace an existing file.

    Returns:
        What the file says of itself (``policy.json``).

    Raises:
        UsageError: if the file exists or the policy cannot be exported.
    """
    file = Path(file).expanduser()
    if file.is_dir() or (file.exists() and not force):
        raise UsageError(f"{file} exists; choose another name or add --force")
    if not file.parent.is_dir():
        raise UsageError(f"{file.parent} is no folder; make it first")
    saved = read_algorithm(Path(checkpoint))
    config = evaluation_config(saved, seed=None)
    _refuse_connectors(saved, config)
    runner = make_runner(saved, config)
    try:
        observations = runner.env.single_observation_space
        actions = runner.env.single_action_space
        _refuse_spaces(saved, runner.module, observations, actions)
        policy = DeterministicPolicy(
            runner.module, actions, config.normalize_actions, config.clip_actions
        )
    finally:
        runner.stop()
    metadata = _describe(saved, observations, actions)
    _write(saved, policy, metadata, file)
    return metadata


def _write(
    saved: SavedAlgorithm,
    policy: DeterministicPolicy,
    metadata: dict[str, Any],
    file: Path,
) -> None:
    frames = torch.zeros(metadata["num_stacked_states"], metadata["observation_size"])
    try:
        # Not strict: RLlib's modules are more Python than the strict tracer knows.
        program = torch.export.export(policy.eval(), (frames,), strict=False)
    except Exception as error:
        # Whatever a module's Python does under the tracer.
        raise _refusal(saved, f"torch cannot trace it ({one_line(error)})") from error
    # Moved into place when complete, so that nobody finds half a policy.
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        part = Path(folder) / "policy.pt2"
        texts = {METADATA_NAME: json.dumps(metadata, indent=2)}
        torch.export.save(program, part, extra_files=texts)
        os.replace(part, file)


def _describe(
    saved: SavedAlgorithm, observations: gym.spaces.Box, actions: gym.spaces.Box
) -> dict[str, Any]:
    return {
        "algorithm": saved.name,
        "env": saved.env_name,
        "training_iteration": saved.iteration,
        "num_env_steps": saved.num_env_steps,
        "num_stacked_states": _num_stacked_states(saved),
        "observation_shape": list(observations.shape),
        "observation_size": int(gym.spaces.flatdim(observations)),
        "action_shape": list(actions.shape),
        "action_low": actions.low.tolist(),
        "action_high": actions.high.tolist(),
        "versions": versions(),
    }


def _refuse_connectors(saved: SavedAlgorithm, config: AlgorithmConfig) -> None:
    for name in ("env_to_module", "module_to_env"):
        if getattr(config, f"_{name}_connector") is not None:
            raise _refusal(saved, f"{name}_connector is code that would be left behind")
        if not getattr(config, f"add_default_connectors_to_{name}_pipeline"):
            raise _refusal(saved, f"its {name} pipeline is not RLlib's default one")


def _refuse_spaces(
    saved: SavedAlgorithm, module: Any, observations: gym.Space, actions: gym.Space
) -> None:
    for space, what in ((observations, "observations"), (actions, "actions")):
        if not isinstance(space, gym.spaces.Box):
            raise _refusal(saved, f"its {what} are {space}, not arrays")
    if len(actions.shape) != 1 or actions.dtype.kind != "f":
        raise _refusal(saved, f"its actions are {actions}, not vectors of numbers")
    if not isinstance(module, TorchRLModule) or module.is_stateful():
        raise _refusal(saved, "its module is no torch module without memory")
    size = _num_stacked_states(saved) * gym.spaces.flatdim(observations)
    if module.observation_space.shape != (size,):
        raise _refusal(saved, f"its module sees {module.observation_space}")


def _num_stacked_states(saved: SavedAlgorithm) -> int:
    # RLlib's own algorithms see single states.
    return getattr(saved.config, "num_stacked_states", 1)


def _refusal(saved: SavedAlgorithm, reason: str) -> UsageError:
    return UsageError(
        f"{saved.path}: {saved.name} on {saved.env_name} cannot be exported: {reason}"
    )
