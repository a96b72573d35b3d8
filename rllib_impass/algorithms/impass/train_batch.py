"""From what actors sent to the tensors that one V-trace computation needs."""

from typing import NamedTuple

import numpy as np
import torch
from gymnasium.spaces import Box
from ray.rllib.core.columns import Columns
from ray.rllib.utils.metrics import WEIGHTS_SEQ_NO
from torch import Tensor

from rllib_impass.env.episodes import RETURNS_SO_FAR
from rllib_impass.env.trajectory import Trajectory
from rllib_impass.ops.gaussian import means_and_sigmas
from rllib_impass.ops.state_stack import stack_states


class TrainBatch(NamedTuple):
    """Time-major tensors; fields as in Trajectory, but with stacked states.

    Attributes:
        states: ``[T + 1, B, k * d]``.
        actions: ``[T, B, A]``.
        means: ``[T, B, A]``.
        sigmas: ``[T, B, A]``.
        rewards: ``[T, B]``.
        returns: ``[T, B]``.
        terminated: ``[T, B]``.
        valid: ``[T, B]``.
        weights_versions: ``[T, B]``.
    """

    states: Tensor
    actions: Tensor
    means: Tensor
    sigmas: Tensor
    rewards: Tensor
    returns: Tensor
    terminated: Tensor
    valid: Tensor
    weights_versions: Tensor

    def to(self, device: torch.device) -> "TrainBatch":
        """Moves every tensor."""
        return TrainBatch(*(tensor.to(device) for tensor in self))


def from_trajectories(trajectories: list[Trajectory]) -> TrainBatch:
    """Stacks the states and lays the trajectories side by side."""

    def columns(name: str) -> Tensor:
        # Concatenating copies, which is needed: Ray's arrays are read-only.
        return torch.from_numpy(
            np.concatenate([getattr(t, name) for t in trajectories], axis=1)
        )

    frames = np.concatenate([t.frames for t in trajectories], axis=1)
    ages = np.concatenate([t.ages for t in trajectories], axis=1)
    versions = [np.full(t.valid.shape, t.weights_version) for t in trajectories]
    return TrainBatch(
        states=torch.from_numpy(stack_states(frames, ages)),
        actions=columns("actions"),
        means=columns("means"),
        sigmas=columns("sigmas"),
        rewards=columns("rewards"),
        returns=columns("returns"),
        terminated=columns("terminated"),
        valid=columns("valid"),
        weights_versions=torch.from_numpy(np.concatenate(versions, axis=1)),
    )


def from_episode_columns(columns: dict[str, Tensor]) -> TrainBatch:
    """Lays RLlib's episode pieces end to end, as one long column.

    Each piece ends in a row that only holds its last state and is masked out of the
    loss: exactly what an auto-reset step is in a Trajectory, so that V-trace needs no
    second form.
    """
    states = columns[Columns.OBS].float().unsqueeze(1)
    means, sigmas = means_and_sigmas(columns[Columns.ACTION_DIST_INPUTS].unsqueeze(1))
    return TrainBatch(
        # Nothing depends on the state after the last row, which is masked.
        states=torch.cat([states, states[-1:]]),
        actions=columns[Columns.ACTIONS].unsqueeze(1),
        means=means,
        sigmas=sigmas,
        rewards=columns[Columns.REWARDS].float().unsqueeze(1),
        returns=columns[RETURNS_SO_FAR].float().unsqueeze(1),
        terminated=columns[Columns.TERMINATEDS].bool().unsqueeze(1),
        valid=columns[Columns.LOSS_MASK].bool().unsqueeze(1),
        weights_versions=columns[WEIGHTS_SEQ_NO].long().unsqueeze(1),
    )


def empty_batch(observation_space: Box, action_space: Box) -> TrainBatch:
    """One masked step: what a learner contributes when its samples were lost."""
    scalar = torch.zeros(1, 1)
    action = torch.zeros(1, 1, *action_space.shape)
    return TrainBatch(
        states=torch.zeros(2, 1, *observation_space.shape),
        actions=action,
        means=action,
        sigmas=torch.ones_like(action),
        rewards=scalar,
        returns=scalar,
        terminated=scalar.bool(),
        valid=scalar.bool(),
        weights_versions=scalar.long(),
    )
