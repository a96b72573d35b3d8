"""Makes our environments known by name, without importing a simulator yet."""

import inspect
from typing import Any

import gymnasium as gym
from ray import tune

STRIKER_ID = "rllib_impass/Striker-v0"
STRIKER_HORIZON = 100


def register_envs() -> None:
    """Registers every environment with gymnasium (this process) and Tune (all)."""
    if STRIKER_ID not in gym.registry:
        gym.register(
            id=STRIKER_ID,
            entry_point="rllib_impass.env.striker:StrikerEnv",
            max_episode_steps=STRIKER_HORIZON,
        )
    tune.register_env("Striker-v0", make_striker)


def make_striker(env_config: dict[str, Any]) -> gym.Env:
    """The environment that Tune knows as Striker-v0.

    Pickled by name, so that a worker that unpickles it imports this package and thereby
    knows gymnasium's id, too.

    Raises:
        ValueError: if ``env_config`` has an option that StrikerEnv has not.
    """
    from rllib_impass.env.striker import StrikerEnv

    options = list(inspect.signature(StrikerEnv).parameters)
    unknown = sorted(set(env_config) - set(options))
    if unknown:
        raise ValueError(
            f"env_config of Striker-v0 has no option {', '.join(map(repr, unknown))}; "
            f"its options are {', '.join(options)}"
        )
    return gym.make(STRIKER_ID, **env_config)
