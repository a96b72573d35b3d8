"""Makes our environments known by name, without importing a simulator yet."""

import functools
import inspect
from typing import Any, NamedTuple

import gymnasium as gym
from gymnasium.envs.registration import load_env_creator
from ray import tune

STRIKER_HORIZON = 100


class EnvPoolView(NamedTuple):
    """An env of EnvPool's, and how much of its observation is seen.

    Attributes:
        env_id: EnvPool's name for it.
        num_seen: how many numbers, from the first on; None for all.
    """

    env_id: str
    num_seen: int | None = None


class OurEnv(NamedTuple):
    """An environment of this package.

    Attributes:
        entry_point: what makes one.
        horizon: its time limit.
        envpool_view: the same thing in EnvPool, where there is one.
    """

    entry_point: str
    horizon: int
    envpool_view: EnvPoolView | None = None


# Gymnasium knows each as rllib_impass/NAME, Tune as NAME.
OUR_ENVS = {
    "HopperPositions-v0": OurEnv(
        "rllib_impass.env.hide_velocities:make_hopper_positions",
        1000,
        EnvPoolView("Hopper-v5", num_seen=5),
    ),
    "Striker-v0": OurEnv("rllib_impass.env.striker:StrikerEnv", STRIKER_HORIZON),
}


def register_envs() -> None:
    """Registers every environment with gymnasium (this process) and Tune (all)."""
    for name, ours in OUR_ENVS.items():
        if gymnasium_id(name) not in gym.registry:
            gym.register(
                gymnasium_id(name),
                entry_point=ours.entry_point,
                max_episode_steps=ours.horizon,
            )
        # Pickled by name, so that a worker that unpickles it imports this package and
        # thereby knows gymnasium's id, too.
        tune.register_env(name, functools.partial(make_env, name))


def make_env(name: str, env_config: dict[str, Any]) -> gym.Env:
    """One of our environments, by the name Tune knows it by.

    Raises:
        ValueError: if ``env_config`` has an option that the environment has not.
    """
    creator = load_env_creator(OUR_ENVS[name].entry_point)
    options = list(inspect.signature(creator).parameters)
    unknown = sorted(set(env_config) - set(options))
    if unknown:
        raise ValueError(
            f"env_config of {name} has no option {', '.join(map(repr, unknown))}; "
            f"its options are {', '.join(options)}"
        )
    return gym.make(gymnasium_id(name), **env_config)


def gymnasium_id(name: str) -> str:
    """What gymnasium calls an environment: ours have a namespace there."""
    return f"rllib_impass/{name}" if name in OUR_ENVS else name


def envpool_view(name: str) -> EnvPoolView | None:
    """What to ask EnvPool for instead, or None if it has no such env of ours."""
    return OUR_ENVS[name].envpool_view if name in OUR_ENVS else EnvPoolView(name)
