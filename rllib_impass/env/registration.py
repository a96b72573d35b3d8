"""Makes our environments known by name, without importing a simulator yet."""

import functools
import inspect
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import load_env_creator
from ray import tune

STRIKER_HORIZON = 100

# Entry point and time limit. Gymnasium knows each as rllib_impass/NAME, Tune as NAME.
OUR_ENVS = {
    "HopperPositions-v0": (
        "rllib_impass.env.hide_velocities:make_hopper_positions",
        1000,
    ),
    "Striker-v0": ("rllib_impass.env.striker:StrikerEnv", STRIKER_HORIZON),
}


def register_envs() -> None:
    """Registers every environment with gymnasium (this process) and Tune (all)."""
    for name, (entry_point, horizon) in OUR_ENVS.items():
        if _gymnasium_id(name) not in gym.registry:
            gym.register(
                _gymnasium_id(name), entry_point=entry_point, max_episode_steps=horizon
            )
        # Pickled by name, so that a worker that unpickles it imports this package and
        # thereby knows gymnasium's id, too.
        tune.register_env(name, functools.partial(make_env, name))


def make_env(name: str, env_config: dict[str, Any]) -> gym.Env:
    """One of our environments, by the name Tune knows it by.

    Raises:
        ValueError: if ``env_config`` has an option that the environment has not.
    """
    entry_point, _ = OUR_ENVS[name]
    options = list(inspect.signature(load_env_creator(entry_point)).parameters)
    unknown = sorted(set(env_config) - set(options))
    if unknown:
        raise ValueError(
            f"env_config of {name} has no option {', '.join(map(repr, unknown))}; "
            f"its options are {', '.join(options)}"
        )
    return gym.make(_gymnasium_id(name), **env_config)


def _gymnasium_id(name: str) -> str:
    return f"rllib_impass/{name}"
