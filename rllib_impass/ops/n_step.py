"""N-step transitions: what a replay buffer of D4PG holds.

Barth-Maron et al., "D4PG", https://arxiv.org/abs/1804.08617, Algorithm 1, with its
windows shortened at the end of an episode. Every array is time-major ``[T, B]``, as in
a Trajectory.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class NStepTransitions(NamedTuple):
    """For each start step t, its window of k <= n steps; all ``[T, B]``.

    Attributes:
        returns: ``sum_{i<k} gamma^i r_{t+i}``.
        discounts: ``gamma^k``, or 0 where the window ended by termination.
        next_steps: ``t + k``: where among the T + 1 states the bootstrap state is.
        complete: the start is valid and its window is what the whole stream would give:
            n steps long, or ended by its episode's end. Elsewhere the window was cut by
            the end of the arrays, or there is none (k = 0).
    """

    returns: NDArray[np.floating]
    discounts: NDArray[np.floating]
    next_steps: NDArray[np.intp]
    complete: NDArray[np.bool_]


def n_step_transitions(
    rewards: NDArray[np.floating],
    terminated: NDArray[np.bool_],
    valid: NDArray[np.bool_],
    *,
    gamma: float,
    n: int,
) -> NStepTransitions:
    """Looks up to n steps ahead of every step, never over its episode's end.

    Near the end of an episode windows are shortened, not skipped. A terminated episode
    bootstraps from nothing; a truncated one from its final state, which is the state at
    its auto-reset step.

    The last n-1 starts may need steps that are still to come. To take each start of a
    stream exactly once, begin each array with the last n-1 steps of the one before, and
    take those ``complete`` starts that are among the first ``T - (n - 1)`` steps:
    every valid one there is complete.

    Args:
        rewards: ``r_t``, ``[T, B]``.
        terminated: the step ended the episode for good.
        valid: False on a step that a vector env spends on its auto-reset; also tells a
            truncation, whose step is followed by such a one without being terminated.
        gamma: the discount of one step.
        n: the largest number of steps.

    Returns:
        See :class:`NStepTransitions`.
    """
    _check_arguments(rewards, terminated, valid, gamma, n)
    num_steps = len(rewards)
    is_terminal = terminated & valid
    # Whether the last step was a truncation only the next array can tell.
    is_last = is_terminal.copy()
    is_last[:-1] |= ~valid[1:]

    returns = np.zeros_like(rewards)
    lengths = np.zeros(rewards.shape, np.intp)
    goes_on = valid.copy()
    ended, died = np.zeros_like(valid), np.zeros_like(valid)
    for i in range(min(n, num_steps)):
        # Views on the starts that have an i-th step ahead of them in these arrays.
        starts = slice(0, num_steps - i)
        takes_step = goes_on[starts].copy()
        returns[starts] += np.where(takes_step, gamma**i * rewards[i:], 0.0)
        lengths[starts] += takes_step
        ended[starts] |= takes_step & is_last[i:]
        died[starts] |= takes_step & is_terminal[i:]
        goes_on[starts] &= ~is_last[i:]

    powers = np.power(gamma, np.arange(n + 1)).astype(rewards.dtype)
    return NStepTransitions(
        returns=returns,
        discounts=np.where(valid & ~died, powers[lengths], powers.dtype.type(0)),
        next_steps=np.arange(num_steps)[:, None] + lengths,
        complete=ended | (lengths == n),
    )


def _check_arguments(
    rewards: NDArray[np.floating],
    terminated: NDArray[np.bool_],
    valid: NDArray[np.bool_],
    gamma: float,
    n: int,
) -> None:
    if rewards.ndim != 2:
        raise ValueError(f"rewards must be [T, B], got shape {rewards.shape}")
    for name, flags in {"terminated": terminated, "valid": valid}.items():
        if flags.shape != rewards.shape:
            raise ValueError(
                f"{name} must have rewards' shape {rewards.shape}, got {flags.shape}"
            )
        # The complement of an integer is not that of a flag.
        if flags.dtype != bool:
            raise ValueError(f"{name} must be boolean, got {flags.dtype}")
    if not 0.0 <= gamma <= 1.0:
        raise ValueError(f"gamma must be between 0 and 1, got {gamma}")
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
