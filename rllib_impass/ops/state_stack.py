"""States stacking (IMPASS paper, § 4.2, equation 9): the one definition of S_t."""

import numpy as np
from numpy.typing import NDArray


def stack_states(
    frames: NDArray[np.floating], ages: NDArray[np.integer]
) -> NDArray[np.floating]:
    """Builds ``S_t = (s_{t-k+1}, ..., s_t)``, oldest first, for N steps at once.

    A stack never reaches back over its episode's first state: missing predecessors are
    copies of that first state, so that S at reset is k copies of it.

    Args:
        frames: ``[k - 1 + N, B, d]``: the N single states, after the k-1 before them.
            Frames that belong to another episode, or to none, may hold anything.
        ages: ``[N, B]``: steps since the episode's first state; any age of k-1 or more
            means that the whole stack lies in the episode.

    Returns:
        ``[N, B, k * d]``.
    """
    if frames.ndim != 3 or ages.ndim != 2 or frames.shape[1] != ages.shape[1]:
        raise ValueError(
            f"frames must be [k-1+N, B, d] and ages [N, B], got {frames.shape} and "
            f"{ages.shape}"
        )
    num_steps, num_columns = ages.shape
    k = frames.shape[0] - num_steps + 1
    if k < 1:
        raise ValueError(f"{num_steps} steps need as many frames, got {len(frames)}")
    if k == 1:
        return frames
    newest = np.arange(k - 1, k - 1 + num_steps)[:, None, None]
    back = np.minimum(np.arange(k - 1, -1, -1), ages[:, :, None])
    columns = np.arange(num_columns)[None, :, None]
    stacks = frames[newest - back, columns]
    return stacks.reshape(num_steps, num_columns, k * frames.shape[2])
