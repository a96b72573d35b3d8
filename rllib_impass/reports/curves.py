"""Learning curves: the mean over seeds with its band, one line for each label."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from rllib_impass.reports.number_format import compact, duration_unit, tick
from rllib_impass.reports.panels import Panel
from rllib_impass.reports.run import Array
from rllib_impass.reports.scores import Group
from rllib_impass.reports.statistics import bootstrap_band
from rllib_impass.reports.style import INK, MUTED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

X_NAMES = {"env_steps": "env steps", "time_s": "wall time"}
Y_NAMES = {
    "evaluation_return": "evaluation return",
    "training_return": "training return",
}

_NUM_GRID_POINTS = 120
_FURTHEST = 0.95
# With more lines than this, labels take one row each.
_NUM_ROOMY = 5
# With more than this, the panel grows, by so many inches for each.
_NUM_FITTING = 11
_ROW_HEIGHT = 0.19


@dataclasses.dataclass(frozen=True)
class Curve:
    """Mean of several runs.

    Attributes:
        x: where.
        mean: over the runs that reach so far.
        low: lower end of its 95 % interval; NaN where a single run remains.
        high: its upper end.
        is_whole: whether all runs reach so far.
    """

    x: Array
    mean: Array
    low: Array
    high: Array
    is_whole: np.ndarray


def mean_curve(series: Sequence[tuple[Array, Array]]) -> Curve | None:
    """Averages runs that measured at different places.

    Each is interpolated between its own points, never beyond them. The curve begins
    where all runs have begun. From where the first one has ended, it is the mean of
    those that remain; and it ends before those do that go furthest, as far as they
    differ by less than 5 %: else it would leap at the end with whoever is slowest.

    Args:
        series: x, which grows, and y of each run; without any point, a run is left out.
    """
    series = [(x, y) for x, y in series if len(x)]
    if not series:
        return None
    if len(series) == 1:
        (x, y) = series[0]
        unknown = np.full_like(y, np.nan)
        return Curve(x, y, unknown, unknown, np.ones(len(x), bool))
    ends = np.array([x[-1] for x, _ in series])
    start = max(x[0] for x, _ in series)
    stop = max(start, ends[ends >= _FURTHEST * ends.max()].min())
    grid = np.linspace(start, stop, _NUM_GRID_POINTS)
    # Where a run ends, exactly.
    grid = np.unique(np.append(grid, ends[(ends >= start) & (ends <= stop)]))
    values = np.array([np.interp(grid, x, y) for x, y in series])
    reaches = ends[:, None] >= grid
    mean, low, high = (np.full_like(grid, np.nan) for _ in range(3))
    for pattern in np.unique(reaches, axis=1).T:
        at = (reaches == pattern[:, None]).all(axis=0)
        remaining = values[np.ix_(pattern, at)]
        mean[at] = remaining.mean(axis=0)
        if len(remaining) > 1:
            low[at], high[at] = bootstrap_band(remaining)
    return Curve(grid, mean, low, high, reaches.all(axis=0))


def curve_panels(
    groups: Sequence[Group], colours: Mapping[str, str], x: str, y: str
) -> list[Panel]:
    """A panel for each environment whose runs have any of it.

    Args:
        groups: of all environments.
        colours: of the labels.
        x: the column to draw against.
        y: the column to draw; training return stands in where an env has none of it.
    """
    panels = []
    for env in dict.fromkeys(group.env for group in groups):
        chosen = [group for group in groups if group.env == env]
        shown, title = y, env
        if not any(_has(group, x, y) for group in chosen):
            shown, title = "training_return", f"{env}: never evaluated, training return"
        if any(_has(group, x, shown) for group in chosen):
            panels.append(_panel(title, chosen, colours, x, shown))
    return panels


def _panel(
    title: str, groups: Sequence[Group], colours: Mapping[str, str], x: str, y: str
) -> Panel:
    curves = {
        group.label: mean_curve([run.series(x, y) for run in group.runs])
        for group in groups
    }
    seeds = {group.label: group.seeds for group in groups}
    crashes = [
        (group.label, series[0][-1], series[1][-1])
        for group in groups
        for run in group.runs
        if run.status == "crashed" and len((series := run.series(x, y))[0])
    ]

    def draw(axes: "Axes") -> None:
        unit, per_unit = _unit(x, curves.values())
        for label, curve in curves.items():
            if curve is not None:
                _draw_curve(axes, curve, colours[label], per_unit)
        for label, at, value in crashes:
            axes.plot(
                at / per_unit, value, "X", color=colours[label], markersize=7, zorder=4
            )
        axes.set_xlabel(unit)
        axes.set_ylabel(Y_NAMES[y])
        axes.set_xlim(left=0)
        axes.margins(y=0.08)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(tick)
        axes.xaxis.set_major_locator(_few_ticks())
        _label_ends(axes, curves, seeds, colours)

    height = Panel.height + _ROW_HEIGHT * max(0, len(groups) - _NUM_FITTING)
    return Panel(title, _alt(groups, curves, x, y), draw, height)


def _draw_curve(axes: "Axes", curve: Curve, colour: str, per_unit: float) -> None:
    x = curve.x / per_unit
    axes.fill_between(x, curve.low, curve.high, color=colour, alpha=0.16, linewidth=0)
    if len(x) == 1:
        axes.plot(x, curve.mean, "o", color=colour, markersize=4)
        return
    axes.plot(
        x[curve.is_whole], curve.mean[curve.is_whole], color=colour, linewidth=1.8
    )
    # It begins at the last place that all reach.
    fewer = ~curve.is_whole
    fewer[:-1] |= fewer[1:]
    axes.plot(
        x[fewer], curve.mean[fewer], color=colour, linewidth=1.2, linestyle=(0, (3, 2))
    )


def _label_ends(
    axes: "Axes",
    curves: Mapping[str, Curve | None],
    seeds: Mapping[str, str],
    colours: Mapping[str, str],
) -> None:
    """Names each line at the right, level with its end as far as there is room."""
    low, high = axes.get_ylim()
    roomy = len(curves) <= _NUM_ROOMY
    ends = {
        label: 0.0 if curve is None else (curve.mean[-1] - low) / (high - low)
        for label, curve in curves.items()
    }
    order = sorted(ends, key=ends.get)
    gap = 0.18 if roomy else 1.0 / max(10, len(curves) - 1)
    places = _spread([ends[label] for label in order], gap)
    for label, place in zip(order, places, strict=True):
        is_missing = curves[label] is None
        detail = f"{seeds[label]}{', no data' if is_missing else ''}"
        # One line with two sizes would need two texts whose widths nobody knows.
        text = f"{label}\n" if roomy else f"{label} ({detail})"
        style = {"xycoords": "axes fraction", "va": "center", "annotation_clip": False}
        axes.annotate(text, (1.07, place), color=INK, **style)
        if roomy:
            small = {"fontsize": 7, "color": MUTED}
            axes.annotate(f"\n{detail}", (1.07, place), **small, **style)
        axes.plot(
            (1.02, 1.055),
            (place + 0.03 * roomy,) * 2,
            transform=axes.transAxes,
            color=colours[label],
            linewidth=3,
            solid_capstyle="butt",
            clip_on=False,
        )


def _spread(places: Sequence[float], gap: float) -> list[float]:
    """The nearest places, in order, that are a gap apart and within 0 to 1."""
    spread = []
    for place in places:
        spread.append(max(place, spread[-1] + gap) if spread else max(place, 0.0))
    top = max(1.0, gap * (len(places) - 1))
    for number in reversed(range(len(spread))):
        spread[number] = min(spread[number], top)
        top = spread[number] - gap
    return spread


def _unit(x: str, curves: Sequence[Curve | None]) -> tuple[str, float]:
    if x != "time_s":
        return X_NAMES[x], 1.0
    longest = max(curve.x[-1] for curve in curves if curve is not None)
    name, seconds = duration_unit(longest)
    return f"{X_NAMES[x]} ({name})", seconds


def _few_ticks() -> Callable:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10])


def _has(group: Group, x: str, y: str) -> bool:
    return any(len(run.series(x, y)[0]) for run in group.runs)


def _alt(
    groups: Sequence[Group], curves: Mapping[str, Curve | None], x: str, y: str
) -> str:
    ends = [
        f"{group.label} ({group.seeds}) "
        + ("has none" if curve is None else f"ends at {compact(curve.mean[-1])}")
        for group in groups
        for curve in [curves[group.label]]
    ]
    return f"{groups[0].env}: {Y_NAMES[y]} against {X_NAMES[x]}. {'; '.join(ends)}."
