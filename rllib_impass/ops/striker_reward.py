"""The reward of Striker: a running minimum, a control cost and a strike.

Positions are three coordinates in metres: of the arm's ``tip``, the ``ball`` and the
``goal``. What the reward remembers of an episode is a value of its own, so that every
function here is pure.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

STRIKE_RADIUS = 0.1

DIST_WEIGHT = 3.0
CTRL_WEIGHT = 0.1
NEAR_WEIGHT = 0.5

Position = Sequence[float]


class StrikerProgress(NamedTuple):
    """What the reward remembers of an episode; no single state shows it.

    Attributes:
        min_distance: the smallest distance between ball and goal so far.
        strike_position: where the tip was when it last came within ``STRIKE_RADIUS`` of
            the ball; None before the first strike.
    """

    min_distance: float = math.inf
    strike_position: Position | None = None

    def after(self, tip: Position, ball: Position, goal: Position) -> "StrikerProgress":
        """The memory once it has taken in one more state."""
        strikes = math.dist(ball, tip) < STRIKE_RADIUS
        return StrikerProgress(
            min_distance=min(self.min_distance, math.dist(ball, goal)),
            # A copy: the legacy env kept a view, which moved on with the arm.
            strike_position=tuple(tip) if strikes else self.strike_position,
        )


class StrikerReward(NamedTuple):
    """The reward and its three terms before weighting; none is ever positive."""

    total: float
    dist: float
    ctrl: float
    near: float


def striker_reward(
    tip: Position,
    ball: Position,
    action: NDArray[np.float64],
    progress: StrikerProgress,
    *,
    is_frozen: bool,
) -> StrikerReward:
    """``3 * dist + 0.1 * ctrl + 0.5 * near`` for acting in a state.

    Args:
        tip: of the arm, in this state.
        ball: in this state.
        action: the torques as given, before any clipping.
        progress: of the episode up to and including this state.
        is_frozen: whether ``near`` is measured from where the last strike happened, as
            the legacy code says, or always from the tip, as it did when run.

    Returns:
        ``dist = -min_distance``, ``ctrl = -sum(action ** 2)`` and ``near``, minus the
        ball's distance from the tip or from the last strike.
    """
    strike = progress.strike_position if is_frozen else None
    dist = -progress.min_distance
    ctrl = -float(action @ action)
    near = -math.dist(ball, tip if strike is None else strike)
    total = DIST_WEIGHT * dist + CTRL_WEIGHT * ctrl + NEAR_WEIGHT * near
    return StrikerReward(total, dist, ctrl, near)
