"""Dot plots: a row for each label, a dot for each seed, a statistic with its range."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rllib_impass.reports.number_format import figure, probability, tick
from rllib_impass.reports.panels import Panel
from rllib_impass.reports.scores import Group, RunScore
from rllib_impass.reports.statistics import (
    Estimate,
    Statistic,
    interquartile_mean,
    mean,
)
from rllib_impass.reports.style import INK, MUTED, PAPER

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROW_HEIGHT = 0.4
_FRAME_HEIGHT = 0.8
_SEEDS_BELOW = 0.24


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of a dot plot.

    Attributes:
        label: at its left.
        detail: in small letters below the label.
        colour: of its dots.
        estimate: the large dot and its interval, if there is one.
        dots: the small ones.
        is_crashed: which of them are of crashed runs.
        form: writes its numbers.
    """

    label: str
    detail: str
    colour: str
    estimate: Estimate | None
    dots: Sequence[float] = ()
    is_crashed: Sequence[bool] = ()
    form: Callable[[float], str] = figure


def score_panels(groups: Sequence[Group], colours: Mapping[str, str]) -> list[Panel]:
    """Final scores: IQM with its interval and every seed, a panel for each env."""
    return _group_panels(
        groups, colours, "score", "final score", statistic=interquartile_mean
    )


def speed_panels(groups: Sequence[Group], colours: Mapping[str, str]) -> list[Panel]:
    """Env steps per second, a panel for each env."""
    return _group_panels(groups, colours, "speed", "env steps per second", zero=True)


def lag_panels(groups: Sequence[Group], colours: Mapping[str, str]) -> list[Panel]:
    """Policy lag, a panel for each env."""
    return _group_panels(
        groups, colours, "lag", "policy lag (weight versions)", zero=True
    )


def smoothness_panels(
    groups: Sequence[Group], colours: Mapping[str, str]
) -> list[Panel]:
    """Action smoothness of evaluations, with how many states a policy sees."""
    return _group_panels(
        groups,
        colours,
        "smoothness",
        "action smoothness (lower is smoother)",
        detail=stack_of,
        zero=True,
    )


def improvement_panels(
    improvements: Sequence[Mapping[str, Any]], colours: Mapping[str, str]
) -> list[Panel]:
    """P(X > Y): a panel for each env, and one for all of them."""
    panels = []
    for env in dict.fromkeys(row["env"] for row in improvements):
        rows = [
            Row(
                r["x"],
                f"over {r['y']}",
                colours[r["x"]],
                r["estimate"],
                form=probability,
            )
            for r in improvements
            if r["env"] == env
        ]
        title = env or "All environments, averaged"
        panels.append(_panel(title, rows, "probability of improvement", _draw_chance))
    return panels


def aggregate_panel(
    aggregates: Mapping[str, Estimate], colours: Mapping[str, str]
) -> Panel:
    """IQM of normalised scores over all environments."""
    rows = [
        Row(label, "", colours[label], estimate)
        for label, estimate in aggregates.items()
    ]
    return _panel("All environments", rows, "normalised score (IQM)", None)


def stack_of(group: Group) -> str:
    """How many states the policies of a group see."""
    counts = {run.num_stacked_states for run in group.runs}
    if counts == {None}:
        return "does not stack"
    known = "/".join(str(count) for count in sorted(counts - {None}))
    return "1 state, no stack" if known == "1" else f"{known} stacked states"


def _group_panels(
    groups: Sequence[Group],
    colours: Mapping[str, str],
    name: str,
    x_label: str,
    *,
    statistic: Statistic = mean,
    detail: Callable[[Group], str] = lambda group: group.seeds,
    zero: bool = False,
) -> list[Panel]:
    """A panel for each env on which any label has some of it."""
    panels = []
    for env in dict.fromkeys(group.env for group in groups):
        chosen = [group for group in groups if group.env == env]
        if any(len(group.values(name)) for group in chosen):
            rows = [
                _row(group, name, statistic, detail(group), colours[group.label])
                for group in chosen
            ]
            panels.append(_panel(env, rows, x_label, _from_zero if zero else None))
    return panels


def _row(
    group: Group, name: str, statistic: Statistic, detail: str, colour: str
) -> Row:
    known = [s for s in group.scores if np.isfinite(getattr(s, name))]
    return Row(
        group.label,
        detail,
        colour,
        group.estimate(name, statistic),
        [getattr(score, name) for score in known],
        [_is_crashed(score) for score in known],
    )


def _is_crashed(score: RunScore) -> bool:
    return score.run.status == "crashed"


def _panel(
    title: str,
    rows: Sequence[Row],
    x_label: str,
    finish: Callable[["Axes"], None] | None,
) -> Panel:
    def draw(axes: "Axes") -> None:
        axes.grid(False, axis="y")
        axes.grid(True, axis="x")
        axes.spines["left"].set_visible(False)
        for place, row in enumerate(rows):
            _draw_row(axes, place, row)
        axes.set_ylim(len(rows) - 0.45, -0.55)
        axes.set_yticks([])
        axes.set_xlabel(x_label)
        axes.xaxis.set_major_formatter(tick)
        axes.locator_params(axis="x", nbins=5)
        axes.margins(x=0.06)
        if finish is not None:
            finish(axes)

    says = "; ".join(f"{row.label}: {_spoken(row)}" for row in rows)
    height = _FRAME_HEIGHT + _ROW_HEIGHT * len(rows)
    return Panel(title, f"{title}: {x_label}. {says}.", draw, height)


def _draw_row(axes: "Axes", place: int, row: Row) -> None:
    style = {
        "xycoords": ("axes fraction", "data"),
        "ha": "right",
        "annotation_clip": False,
    }
    if row.detail:
        axes.annotate(row.label, (-0.03, place), va="bottom", **style)
        small = {"fontsize": 7, "color": MUTED}
        axes.annotate(row.detail, (-0.03, place + 0.02), va="top", **small, **style)
    else:
        axes.annotate(row.label, (-0.03, place), va="center", **style)
    below = place + _SEEDS_BELOW
    for value, is_crashed in zip(row.dots, row.is_crashed, strict=True):
        marker = "X" if is_crashed else "o"
        size = 5 if is_crashed else 4
        axes.plot(
            value,
            below,
            marker,
            markersize=size,
            color=row.colour,
            alpha=0.55,
            markeredgewidth=0,
        )
    if row.estimate is None:
        axes.annotate(
            "no data",
            (0.02, place),
            xycoords=("axes fraction", "data"),
            va="center",
            color=MUTED,
        )
        return
    _draw_estimate(axes, place, row.estimate, row)


def _draw_estimate(axes: "Axes", place: int, estimate: Estimate, row: Row) -> None:
    if estimate.low is not None:
        axes.plot(
            (estimate.low, estimate.high),
            (place, place),
            color=row.colour,
            linewidth=4.5,
            alpha=0.35,
            solid_capstyle="butt",
        )
    axes.plot(
        estimate.value,
        place,
        "o",
        markersize=7,
        color=row.colour,
        markeredgecolor=PAPER,
        markeredgewidth=0.8,
        zorder=4,
    )
    axes.annotate(
        row.form(estimate.value),
        (estimate.value, place),
        xytext=(0, 5),
        textcoords="offset points",
        ha="center",
        va="bottom",
        fontsize=7.5,
        color=INK,
        bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 0.2},
    )


def _from_zero(axes: "Axes") -> None:
    axes.set_xlim(left=0)


def _draw_chance(axes: "Axes") -> None:
    axes.set_xlim(-0.06, 1.06)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1])
    axes.axvline(0.5, color=MUTED, linewidth=1, linestyle=(0, (3, 2)), zorder=1)


def _spoken(row: Row) -> str:
    if row.estimate is None:
        return "no data"
    words = row.form(row.estimate.value)
    if row.estimate.low is not None:
        words += f", 95 % {row.form(row.estimate.low)} to {row.form(row.estimate.high)}"
    return words
