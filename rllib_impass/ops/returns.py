"""Discounted returns so far, whose spread scales rewards; how smooth actions are."""

import numpy as np
from numpy.typing import NDArray


def discounted_returns(
    rewards: NDArray[np.floating],
    starts: NDArray[np.bool_],
    carry: NDArray[np.floating],
    gamma: float,
) -> NDArray[np.floating]:
    """``G_t = gamma * G_{t-1} + r_t``, restarted at the first step of each episode.

    Args:
        rewards: ``[T, B]``.
        starts: ``[T, B]``: True where a step is the first one of its episode.
        carry: ``[B]``: G of the step before the first one.
        gamma: the discount.

    Returns:
        ``[T, B]``.
    """
    returns = np.empty(rewards.shape, np.float64)
    running = carry.astype(np.float64)
    for t, (reward, start) in enumerate(zip(rewards, starts, strict=True)):
        running = np.where(start, 0.0, gamma * running) + reward
        returns[t] = running
    return returns


def mean_abs_second_difference(
    actions: NDArray[np.floating], ages: NDArray[np.integer]
) -> float:
    """Mean ``|a_t - 2 a_{t-1} + a_{t-2}|``: how jerky the actions are.

    Args:
        actions: ``[T, B, A]``.
        ages: ``[T, B]``: steps since the episode began; only triples inside one episode
            count.

    Returns:
        The mean, or NaN without such a triple.
    """
    inside = ages[2:] >= 2
    if not inside.any():
        return float("nan")
    second = actions[2:] - 2.0 * actions[1:-1] + actions[:-2]
    return float(np.abs(second[inside]).mean())


def action_smoothness(actions: NDArray[np.floating]) -> float:
    """How jerky the actions ``[T, ...]`` of one episode are, clipped to [-1, 1]."""
    clipped = np.clip(actions, -1.0, 1.0).reshape(len(actions), 1, -1)
    return mean_abs_second_difference(clipped, np.arange(len(actions))[:, None])
