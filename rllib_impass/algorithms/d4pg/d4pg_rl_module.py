"""A deterministic policy, its critic, and slow copies of both."""

import copy
from typing import Any

import torch
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.apis import InferenceOnlyAPI
from ray.rllib.core.rl_module.rl_module import RLModule
from ray.rllib.core.rl_module.torch.torch_rl_module import TorchRLModule
from ray.rllib.utils.annotations import override
from torch import Tensor, nn
from typing_extensions import Self

from rllib_impass.algorithms.d4pg.critic_heads import CategoricalHead, ScalarHead
from rllib_impass.algorithms.networks import ObservationNormalizer, layer_norm_mlp

# A policy that starts in the middle of the action space is not saturated.
_LAST_LAYER_SCALE = 1e-2


class Critic(nn.Module):
    """Maps states and actions to what a head makes values of."""

    def __init__(self, state_size: int, action_size: int, hiddens: list[int]) -> None:
        super().__init__()
        self.body = layer_norm_mlp([state_size + action_size, *hiddens])

    def forward(self, states: Tensor, actions: Tensor) -> Tensor:
        """``[B, s]`` and ``[B, A]`` to ``[B, N]``."""
        return self.body(torch.cat([states, actions], dim=-1))


class D4PGRLModule(TorchRLModule, InferenceOnlyAPI):
    """Layer-norm networks; actions are tanh, scaled to the action space by RLlib.

    Reads from ``model_config`` (defaults: ``D4PGConfig``): ``actor_hiddens``,
    ``critic_hiddens``, ``observation_clip``, and the settings that it shares with the
    algorithm.

    Attributes:
        exploration_sigma: deviation of the noise; each actor sets its own.
    """

    exploration_sigma = 0.0

    @override(RLModule)
    def setup(self) -> None:
        config = self.model_config
        (state_size,) = self.observation_space.shape
        (action_size,) = self.action_space.shape
        self.normalizer: ObservationNormalizer | None = None
        if config["normalize_observations"]:
            self.normalizer = ObservationNormalizer(
                state_size // config["num_stacked_states"], config["observation_clip"]
            )
        self.head: CategoricalHead | ScalarHead = ScalarHead()
        if config["distributional"]:
            self.head = CategoricalHead(
                config["num_atoms"], config["v_min"], config["v_max"]
            )
        hiddens = list(config["actor_hiddens"])
        self.actor = nn.Sequential(
            layer_norm_mlp([state_size, *hiddens]),
            _small_linear(hiddens[-1], action_size),
            nn.Tanh(),
        )
        hiddens = list(config["critic_hiddens"])
        self.critic = Critic(state_size, action_size, hiddens)
        self.critic.body.append(_small_linear(hiddens[-1], self.head.num_outputs))
        self.target_actor = copy.deepcopy(self.actor).requires_grad_(False)
        self.target_critic = copy.deepcopy(self.critic).requires_grad_(False)

    @override(InferenceOnlyAPI)
    def get_non_inference_attributes(self) -> list[str]:
        targets = ["target_actor", "target_critic"]
        # Actors need it to say how surprising their transitions are.
        return (
            targets
            if self.model_config["prioritized_replay"]
            else [
                "critic",
                *targets,
            ]
        )

    @override(nn.Module)
    def train(self, mode: bool = True) -> Self:
        # RLlib asks before every forward pass, and torch visits every submodule.
        return self if self.training == mode else super().train(mode)

    @override(TorchRLModule)
    def _forward_train(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        return {Columns.ACTIONS: self.actor(self.normalize(batch[Columns.OBS]))}

    @override(TorchRLModule)
    def _forward_exploration(
        self, batch: dict[str, Any], **kwargs: Any
    ) -> dict[str, Any]:
        with torch.no_grad():
            mean = self.actor(self.normalize(batch[Columns.OBS]))
            noise = self.exploration_sigma * torch.randn_like(mean)
            # Clipped here, so that the critic learns of what was really done.
            return {
                Columns.ACTIONS: (mean + noise).clamp(-1.0, 1.0),
                Columns.ACTION_DIST_INPUTS: torch.cat(
                    [mean, torch.full_like(mean, self.exploration_sigma).log()], dim=-1
                ),
            }

    @override(TorchRLModule)
    def _forward_inference(
        self, batch: dict[str, Any], **kwargs: Any
    ) -> dict[str, Any]:
        with torch.no_grad():
            return self._forward_train(batch)

    def normalize(self, states: Tensor) -> Tensor:
        """By the statistics of now, also for states that were stored long ago."""
        return states if self.normalizer is None else self.normalizer(states)

    @torch.no_grad()
    def update_targets(self, tau: float) -> None:
        """Moves the slow copies by a share of the way; 1 copies."""
        pairs = ((self.actor, self.target_actor), (self.critic, self.target_critic))
        for online, target in pairs:
            for source, copied in zip(
                online.parameters(), target.parameters(), strict=True
            ):
                copied.lerp_(source, tau)


def _small_linear(size_in: int, size_out: int) -> nn.Linear:
    layer = nn.Linear(size_in, size_out)
    nn.init.uniform_(layer.weight, -_LAST_LAYER_SCALE, _LAST_LAYER_SCALE)
    nn.init.zeros_(layer.bias)
    return layer
