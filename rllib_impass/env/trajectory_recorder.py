"""Builds Trajectories step by step and keeps what a fragment cut must carry over."""

import time
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from rllib_impass.env.trajectory import Trajectory
from rllib_impass.ops.gaussian import means_and_sigmas
from rllib_impass.ops.returns import discounted_returns
from rllib_impass.ops.state_stack import stack_states

_STEP_ARRAYS = (
    "_actions",
    "_dist_inputs",
    "_rewards",
    "_returns",
    "_terminated",
    "_valid",
)


class FinishedEpisode(NamedTuple):
    """What is reported of an episode once it has ended."""

    episode_return: float
    length: int
    seconds: float


class TrajectoryRecorder:
    """Records T steps of a NEXT_STEP auto-resetting vector env into one Trajectory.

    Args:
        num_steps: T.
        num_envs: B.
        frame_size: length of a flattened single state.
        action_size: length of an action.
        num_stacked_states: k.
        gamma: discount of the returns-so-far.
        num_repeated: how many steps each Trajectory repeats of the one before.
    """

    def __init__(
        self,
        *,
        num_steps: int,
        num_envs: int,
        frame_size: int,
        action_size: int,
        num_stacked_states: int,
        gamma: float,
        num_repeated: int = 0,
    ) -> None:
        self._num_repeated = num_repeated
        self._num_steps = num_repeated + num_steps
        self._num_envs = num_envs
        self._frame_size = frame_size
        self._action_size = action_size
        self._k = num_stacked_states
        self._gamma = gamma
        self.finished_episodes: list[FinishedEpisode] = []

    def reset(self, observations: NDArray) -> None:
        """Starts a new episode in every env; a fragment under way is discarded."""
        self._allocate()
        # There is nothing to repeat: no step before this one is valid.
        self._valid[: self._t] = False
        self._returns[: self._t] = 0.0
        self._frames[self._k - 1 + self._t] = self._flat(observations)
        self._resetting = np.empty(0, np.intp)
        self._return_carry = np.zeros(self._num_envs)
        self._episode_returns = np.zeros(self._num_envs)
        self._episode_lengths = np.zeros(self._num_envs, np.int64)
        self._episode_started = np.full(self._num_envs, time.perf_counter())

    @property
    def states(self) -> NDArray[np.float32]:
        """``[B, k * d]``: the stacked states to act on now."""
        window = self._frames[self._t : self._t + self._k]
        return stack_states(window, self._ages[self._t : self._t + 1])[0]

    def record(
        self,
        actions: NDArray,
        means_and_log_sigmas: NDArray,
        observations: NDArray,
        rewards: NDArray,
        terminateds: NDArray,
        truncateds: NDArray,
    ) -> None:
        """Adds one step of every env: what was done and what came of it."""
        t = self._t
        self._actions[t] = actions
        self._dist_inputs[t] = means_and_log_sigmas
        self._rewards[t] = rewards
        self._terminated[t] = terminateds
        self._frames[self._k + t] = self._flat(observations)
        np.add(self._ages[t], 1, out=self._ages[t + 1])
        is_over = terminateds | truncateds
        if len(self._resetting):
            self._mask_reset_step(t, is_over)
        self._t += 1

        self._episode_returns += self._rewards[t]
        self._episode_lengths += self._valid[t]
        # Empty on most steps, so that most steps cost no more than the lines above.
        self._resetting = np.flatnonzero(is_over)
        if len(self._resetting):
            self._close_episodes(self._resetting)

    def cut(self, weights_version: int) -> Trajectory:
        """Returns the T recorded steps and goes on in the same episodes."""
        if self._t != self._num_steps:
            raise RuntimeError(f"{self._t} of {self._num_steps} steps are recorded")
        new = slice(self._num_repeated, None)
        starts = (self._ages[:-1] == 0) & self._valid
        returns = discounted_returns(
            self._rewards[new], starts[new], self._return_carry, self._gamma
        )
        self._returns[new] = returns
        means, sigmas = means_and_sigmas(torch.from_numpy(self._dist_inputs))
        trajectory = Trajectory(
            frames=self._frames,
            ages=self._ages,
            actions=self._actions,
            means=means.numpy(),
            sigmas=sigmas.numpy(),
            rewards=self._rewards,
            returns=self._returns,
            terminated=self._terminated,
            valid=self._valid,
            weights_version=weights_version,
            num_repeated=self._num_repeated,
        )
        self._carry_over()
        # One non-finite reward must not spoil the rest of a long episode.
        self._return_carry = np.nan_to_num(returns[-1], posinf=0.0, neginf=0.0)
        return trajectory

    def _carry_over(self) -> None:
        """Begins the next fragment with the state, and the steps, that it repeats."""
        frames, ages = self._frames, self._ages
        steps = [getattr(self, name) for name in _STEP_ARRAYS]
        self._allocate()
        self._frames[: self._k + self._t] = frames[-(self._k + self._t) :]
        self._ages[: self._t + 1] = ages[-(self._t + 1) :]
        for name, array in zip(_STEP_ARRAYS, steps, strict=True):
            getattr(self, name)[: self._t] = array[len(array) - self._t :]

    def _allocate(self) -> None:
        """Fresh arrays: the last fragment's belong to its Trajectory."""
        steps, envs = self._num_steps, self._num_envs
        self._t = self._num_repeated
        self._frames = np.zeros((self._k + steps, envs, self._frame_size), np.float32)
        self._ages = np.zeros((steps + 1, envs), np.int32)
        self._actions = np.zeros((steps, envs, self._action_size), np.float32)
        self._dist_inputs = np.zeros((steps, envs, 2 * self._action_size), np.float32)
        self._rewards = np.zeros((steps, envs), np.float32)
        self._returns = np.zeros((steps, envs), np.float32)
        self._terminated = np.zeros((steps, envs), bool)
        self._valid = np.ones((steps, envs), bool)

    def _mask_reset_step(self, t: int, is_over: NDArray[np.bool_]) -> None:
        """What an env returns on its reset step is only the next episode's state."""
        envs = self._resetting
        self._valid[t, envs] = False
        self._rewards[t, envs] = 0.0
        self._terminated[t, envs] = False
        self._ages[t + 1, envs] = 0
        is_over[envs] = False

    def _close_episodes(self, env_indices: NDArray[np.intp]) -> None:
        now = time.perf_counter()
        for i in env_indices:
            self.finished_episodes.append(
                FinishedEpisode(
                    episode_return=float(self._episode_returns[i]),
                    length=int(self._episode_lengths[i]),
                    seconds=now - self._episode_started[i],
                )
            )
        self._episode_returns[env_indices] = 0.0
        self._episode_lengths[env_indices] = 0
        self._episode_started[env_indices] = now

    def _flat(self, observations: NDArray) -> NDArray:
        return np.asarray(observations).reshape(self._num_envs, -1)
