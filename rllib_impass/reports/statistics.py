"""Statistics of few runs: pure functions of arrays.

As in Agarwal et al. 2021 (arXiv 2108.13264) and its library, rliable: interquartile
means, probability of improvement, and stratified bootstrap intervals, in which the
runs of each environment are drawn anew with replacement. Draws are seeded, so that
the same runs give the same report.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
# Of an array [..., runs]; reduces the last axis.
Statistic = Callable[[Array], Array]

CONFIDENCE = 0.95
NUM_RESAMPLES = 10_000
# Below this, an interval is too rough to tell two algorithms apart.
FEW_RUNS = 5
SCORED_SHARE = 0.1
_SEED = 0


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A statistic and how far it may be off.

    Attributes:
        value: of the runs that there are.
        low: lower end of the 95 % interval; None if one run is all there is.
        high: its upper end.
    """

    value: float
    low: float | None = None
    high: float | None = None


def interquartile_mean(values: ArrayLike) -> Array:
    """Mean without the lowest and the highest quarter, of the last axis.

    Whole runs are cut, n // 4 at each end, as by ``scipy.stats.trim_mean(x, 0.25)``:
    up to three runs it is the mean.
    """
    ordered = np.sort(np.asarray(values, np.float64), axis=-1)
    cut = ordered.shape[-1] // 4
    return ordered[..., cut : ordered.shape[-1] - cut].mean(axis=-1)


def mean(values: ArrayLike) -> Array:
    """Mean of the last axis."""
    return np.asarray(values, np.float64).mean(axis=-1)


def median(values: ArrayLike) -> Array:
    """Median of the last axis."""
    return np.median(np.asarray(values, np.float64), axis=-1)


def num_scored(num_evaluations: int) -> int:
    """How many of a run's last evaluations make its score: 10 %, at least one."""
    return math.ceil(SCORED_SHARE * num_evaluations)


def mean_of_last(values: ArrayLike) -> float:
    """Mean of the last 10 % (at least one) of what a run measured; NaN of nothing."""
    values = np.asarray(values, np.float64)
    if not len(values):
        return math.nan
    return float(values[-num_scored(len(values)) :].mean())


def estimate(strata: Sequence[ArrayLike], statistic: Statistic) -> Estimate:
    """A statistic of all runs together, with its stratified bootstrap interval.

    Args:
        strata: the scores of the runs of each environment; numbers may differ.
        statistic: of the scores of all of them.
    """
    arrays = [np.asarray(stratum, np.float64) for stratum in strata]
    value = float(statistic(np.concatenate(arrays)))
    if max(map(len, arrays)) < 2:
        return Estimate(value)
    rng = np.random.default_rng(_SEED)
    drawn = np.concatenate([a[_resamples(rng, len(a))] for a in arrays], axis=-1)
    return Estimate(value, *_interval(statistic(drawn)))


def probability_of_improvement(x: ArrayLike, y: ArrayLike) -> float:
    """P(X > Y) for a run of each; ties count half."""
    return float(_wins(x, y).mean())


def estimate_improvement(xs: Sequence[ArrayLike], ys: Sequence[ArrayLike]) -> Estimate:
    """P(X > Y), averaged over environments, with its stratified bootstrap interval.

    Args:
        xs: the scores of X in each environment.
        ys: the scores of Y in the same environments.
    """
    rng = np.random.default_rng(_SEED)
    values, drawn = [], []
    for x, y in zip(xs, ys, strict=True):
        wins = _wins(x, y)
        of_x, of_y = (_resamples(rng, size) for size in wins.shape)
        values.append(wins.mean())
        drawn.append(wins[of_x[:, :, None], of_y[:, None, :]].mean(axis=(1, 2)))
    value = float(np.mean(values))
    if max(max(len(x), len(y)) for x, y in zip(xs, ys, strict=True)) < 2:
        return Estimate(value)
    return Estimate(value, *_interval(np.mean(drawn, axis=0)))


def bootstrap_band(values: ArrayLike) -> tuple[Array, Array]:
    """95 % interval of the mean over runs, at each point.

    Args:
        values: [runs, points].
    """
    values = np.asarray(values, np.float64)
    rng = np.random.default_rng(_SEED)
    # Fewer than for one number: there are a hundred points.
    drawn = _resamples(rng, len(values), 2_000)
    weights = np.zeros((len(drawn), len(values)))
    np.add.at(weights, (np.arange(len(drawn))[:, None], drawn), 1 / len(values))
    low, high = np.percentile(weights @ values, _tails(), axis=0)
    return low, high


def first_at_or_above(values: ArrayLike, threshold: float) -> int | None:
    """Index of the first value that reaches a threshold."""
    reached = np.flatnonzero(np.asarray(values, np.float64) >= threshold)
    return int(reached[0]) if len(reached) else None


def median_until(values: Sequence[float | None]) -> float | None:
    """Median of what runs needed, None being never; None if half of them never did."""
    ordered = np.sort([math.inf if value is None else value for value in values])
    middle = float(np.median(ordered))
    return middle if math.isfinite(middle) else None


def normalise(values: ArrayLike, floor: float, reference: float) -> Array:
    """Scores such that floor is 0 and reference is 1; 0.5 where these are equal."""
    values = np.asarray(values, np.float64)
    if floor == reference:
        return np.full_like(values, 0.5)
    return (values - floor) / (reference - floor)


def _wins(x: ArrayLike, y: ArrayLike) -> Array:
    difference = np.subtract.outer(np.asarray(x, float), np.asarray(y, float))
    return 0.5 + 0.5 * np.sign(difference)


def _resamples(
    rng: np.random.Generator, size: int, number: int = NUM_RESAMPLES
) -> NDArray[np.int64]:
    return rng.integers(size, size=(number, size))


def _interval(drawn: Array) -> tuple[float, float]:
    low, high = np.percentile(drawn, _tails())
    return float(low), float(high)


def _tails() -> tuple[float, float]:
    tail = 50 * (1 - CONFIDENCE)
    return tail, 100 - tail
