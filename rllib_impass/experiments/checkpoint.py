"""What an RLlib checkpoint holds, read without building its algorithm.

Checkpoints are pickles: reading one executes code, so read only those you trust.
"""

import dataclasses
import json
import pickle
from pathlib import Path
from typing import Any

import gymnasium as gym
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.core import COMPONENT_RL_MODULE
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner

from rllib_impass.experiments.errors import UsageError, one_line
from rllib_impass.experiments.video import RENDERING_HINT

METADATA_FILE = "rllib_checkpoint.json"
ALGORITHM_FILE = "class_and_ctor_args.pkl"
STATE_FILE = "algorithm_state.pkl"
MODULE_STATE_FILE = "learner_group/learner/rl_module/default_policy/module_state.pkl"

_NUM_ENV_STEPS = "env_runners--num_env_steps_sampled_lifetime"


@dataclasses.dataclass(frozen=True)
class SavedAlgorithm:
    """What is known of an algorithm that was saved.

    Attributes:
        path: the checkpoint's folder.
        name: of its class, which is its name in Tune.
        config: as it was trained with.
        iteration: how many training iterations it had behind it.
        num_env_steps: how many env steps it had been trained for, if known.
    """

    path: Path
    name: str
    config: AlgorithmConfig
    iteration: int
    num_env_steps: int | None

    @property
    def env_name(self) -> str:
        """Name of the environment, or of its class."""
        return getattr(self.config.env, "__name__", str(self.config.env))


def read_algorithm(path: Path) -> SavedAlgorithm:
    """Reads what a checkpoint says of its algorithm, without its weights.

    Raises:
        UsageError: if a file is missing or broken.
    """
    _check_metadata(path)
    info = _read_pickle(path, ALGORITHM_FILE)
    cls, (args, _) = info.get("class"), info.get("ctor_args_and_kwargs", ((), {}))
    if not (isinstance(cls, type) and issubclass(cls, Algorithm) and args):
        raise _broken(path, f"{ALGORITHM_FILE} names no algorithm")
    state = read_state(path)
    steps = state.get("metrics_logger", {}).get("stats", {}).get(_NUM_ENV_STEPS, {})
    num_env_steps = steps.get("lifetime_sum")
    return SavedAlgorithm(
        path=path,
        name=cls.__name__,
        config=cls.get_default_config().from_state(args[0]),
        iteration=state["training_iteration"],
        num_env_steps=None if num_env_steps is None else int(num_env_steps),
    )


def read_state(path: Path) -> dict[str, Any]:
    """Reads the algorithm's own state: its iteration and its metrics."""
    state = _read_pickle(path, STATE_FILE)
    if "training_iteration" not in state:
        raise _broken(path, f"{STATE_FILE} has no training_iteration")
    return state


def read_module_state(path: Path) -> dict[str, Any]:
    """Reads the weights of the policy."""
    return _read_pickle(path, MODULE_STATE_FILE)


def make_runner(
    saved: SavedAlgorithm, config: AlgorithmConfig, worker_index: int = 0
) -> SingleAgentEnvRunner:
    """Builds an EnvRunner with the checkpoint's weights and connector states.

    A new one for each checkpoint: EnvRunners ignore weights that are not newer than
    those they have.

    Args:
        saved: the checkpoint.
        config: for the runner; see ``evaluation_config``.
        worker_index: which one of several runners it stands for; decides its seed.

    Raises:
        UsageError: if the env cannot be created, or weights do not fit.
    """
    try:
        runner = config.env_runner_cls(config=config, worker_index=worker_index)
    except Exception as error:
        raise UsageError(
            f"{saved.path}: env {saved.env_name!r} cannot be created: "
            f"{one_line(error)}; {_creation_hint(error, config)}"
        ) from error
    try:
        _restore(runner, saved.path)
    except BaseException:
        runner.stop()
        raise
    return runner


def evaluation_config(saved: SavedAlgorithm, seed: int | None) -> AlgorithmConfig:
    """The config of a single local evaluation runner with one env.

    Args:
        saved: the checkpoint.
        seed: None for that of the training run, and 0 if it had none.

    Raises:
        UsageError: for what has no single-agent EnvRunner.
    """
    trained = saved.config
    config = trained.get_evaluation_config_object()
    cls = config.env_runner_cls or SingleAgentEnvRunner
    if trained.is_multi_agent or not issubclass(cls, SingleAgentEnvRunner):
        raise UsageError(
            f"{saved.path}: {saved.name} on {saved.env_name} does not sample with a "
            "single-agent EnvRunner; use Algorithm.from_checkpoint and evaluate()"
        )
    config.env_runner_cls = cls
    config.num_env_runners = 0
    # The first n episodes to finish among many envs are the short ones.
    config.num_envs_per_env_runner = 1
    config.num_gpus_per_env_runner = 0
    if seed is None:
        seed = 0 if trained.seed is None else trained.seed
    config.seed = seed
    return config


def _restore(runner: SingleAgentEnvRunner, path: Path) -> None:
    for name, component in runner.get_checkpointable_components():
        if name == COMPONENT_RL_MODULE:
            weights = read_module_state(path)
            # RLlib would leave what is missing as it was initialised, in silence.
            missing = component.state_dict().keys() - weights.keys()
            if missing:
                raise UsageError(
                    f"{path}: {MODULE_STATE_FILE} has no {min(missing)!r}; use the "
                    "version of the module that was trained"
                )
            component.set_state(weights)
            continue
        # Algorithms without a local EnvRunner keep their connectors themselves.
        folder = path / "env_runner" / name
        folder = folder if folder.is_dir() else path / name
        try:
            # Absolute: RLlib takes what is relative for a URI.
            component.restore_from_path(str(folder.resolve()))
        except Exception as error:
            raise _broken(path, f"{name} cannot be read: {one_line(error)}") from error


def _check_metadata(path: Path) -> None:
    try:
        json.loads((path / METADATA_FILE).read_text())
    except FileNotFoundError:
        raise _broken(path, f"{METADATA_FILE} is missing") from None
    except (OSError, ValueError) as error:
        raise _broken(
            path, f"{METADATA_FILE} cannot be read: {one_line(error)}"
        ) from None


def _read_pickle(path: Path, name: str) -> dict[str, Any]:
    try:
        with (path / name).open("rb") as file:
            content = pickle.load(file)
    except FileNotFoundError:
        raise _broken(path, f"{name} is missing") from None
    except (ImportError, AttributeError) as error:
        raise UsageError(
            f"{path}: {name} needs code that is not there: {one_line(error)}; import "
            "it first (--import MODULE)"
        ) from error
    except Exception as error:
        # A damaged pickle may raise anything.
        raise _broken(path, f"{name} cannot be read: {one_line(error)}") from error
    if not isinstance(content, dict):
        raise _broken(path, f"{name} holds a {type(content).__name__}")
    return content


def _broken(path: Path, problem: str) -> UsageError:
    return UsageError(
        f"{path} is no whole RLlib checkpoint: {problem}; choose another one "
        "(--checkpoint N)"
    )


def _creation_hint(error: Exception, config: AlgorithmConfig) -> str:
    if isinstance(error, gym.error.UnregisteredEnv):
        return "import what registers it first (--import MODULE)"
    if "render_mode" in config.env_config:
        return RENDERING_HINT
    return f"its env_config is {config.env_config}"
