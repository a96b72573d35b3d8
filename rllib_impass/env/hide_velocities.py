"""Takes the velocities out of a MuJoCo task's observation."""

from typing import Any

import gymnasium as gym
from gymnasium.envs.mujoco import MujocoEnv
from gymnasium.envs.mujoco.hopper_v5 import HopperEnv
from gymnasium.spaces import Box
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray


class HideVelocities(gym.ObservationWrapper, RecordConstructorArgs):
    """Leaves the positions: a single state no longer tells where things are going.

    Several states in a row do, so that stacking them has a job.

    Args:
        env: a MuJoCo env whose observation ends with its ``model.nv`` velocities, such
            as Hopper, Walker2d, HalfCheetah and Swimmer.

    Raises:
        ValueError: if it is no such env.
    """

    def __init__(self, env: gym.Env) -> None:
        # So that a spec of the wrapped env can make it again.
        RecordConstructorArgs.__init__(self)
        gym.ObservationWrapper.__init__(self, env)
        simulator, space = env.unwrapped, env.observation_space
        structure = getattr(simulator, "observation_structure", {})
        if not isinstance(simulator, MujocoEnv) or not _ends_with_velocities(structure):
            raise ValueError(
                f"cannot hide the velocities of {env}: only MuJoCo tasks whose "
                "observation ends with them, such as Hopper-v5, are supported"
            )
        self._num_positions = space.shape[0] - structure["qvel"]
        shown = slice(None, self._num_positions)
        self.observation_space = Box(
            space.low[shown], space.high[shown], dtype=space.dtype
        )

    def observation(self, observation: NDArray[Any]) -> NDArray[Any]:
        """What is left of a state."""
        return observation[: self._num_positions]


def _ends_with_velocities(structure: dict[str, int]) -> bool:
    parts = [name for name, size in structure.items() if size]
    return parts[-1:] == ["qvel"]


def make_hopper_positions(
    render_mode: str | None = None, width: int = 480, height: int = 480
) -> gym.Env:
    """Hopper-v5 without its velocities; gymnasium's registry adds the time limit.

    Args:
        render_mode: one of gymnasium's modes, or None.
        width: of a rendered frame, in pixels.
        height: of a rendered frame, in pixels.
    """
    hopper = HopperEnv(render_mode=render_mode, width=width, height=height)
    return HideVelocities(hopper)
