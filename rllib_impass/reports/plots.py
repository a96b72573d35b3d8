"""Figures of plain tables."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rllib_impass.reports.style import figure_style, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Row = Mapping[str, Any]

SPEED = "#0b6e99"
RUNNERS = "#8fbcd4"
LEARNER = "#e0a458"


def plot_scaling(rows: Sequence[Row], file: Path, title: str = "") -> None:
    """Draws how speed and cost follow each setting: two panels for each axis.

    Args:
        rows: the table that `Scaling.rows` makes.
        file: where to write; its ending is one of FORMATS.
        title: above all of it.
    """
    axes = {row["axis"]: [r for r in rows if r["axis"] == row["axis"]] for row in rows}
    # Late: nobody else needs it, and it takes a second.
    from matplotlib.figure import Figure

    with figure_style():
        widths = [_width(points) for points in axes.values()]
        # No pyplot: it would look for a screen.
        figure = Figure(figsize=(1.0 + 0.55 * sum(widths), 4.4), layout="constrained")
        panels = figure.subplots(2, len(axes), squeeze=False, width_ratios=widths)
        costs = []
        for (above, below), points in zip(panels.T, axes.values(), strict=True):
            _plot_speed(above, points)
            _plot_cost(below, points)
            # Another environment costs many times as much and would dwarf the rest.
            costs += [] if _is_named(points) else [below]
        _share_scale(panels[0])
        _share_scale(costs)
        panels[0, 0].set_ylabel("env steps trained per s")
        panels[1, 0].set_ylabel("CPU µs per step")
        handles, labels = panels[1, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
        if title:
            figure.suptitle(title, fontsize=10)
        save(figure, file)


def _plot_speed(panel: "Axes", points: Sequence[Row]) -> None:
    panel.set_title(points[0]["label"])
    speeds = [point["trained_per_s"] for point in points]
    if not _is_named(points):
        panel.plot(range(len(points)), speeds, color=SPEED, linewidth=1.5, zorder=2)
    for place, point in enumerate(points):
        # The shipped setting is filled, so that the panels can be compared.
        panel.plot(
            place,
            point["trained_per_s"],
            marker="o",
            markersize=6.5,
            markeredgewidth=1.5,
            markeredgecolor=SPEED,
            markerfacecolor=SPEED if point["is_base"] else "white",
            zorder=3,
        )
    _finish(panel, points, speeds)
    panel.tick_params(labelbottom=False)


def _plot_cost(panel: "Axes", points: Sequence[Row]) -> None:
    places = range(len(points))
    runners = [point["runners_us_per_step"] or 0.0 for point in points]
    learner = [point["learner_us_per_step"] or 0.0 for point in points]
    panel.bar(places, runners, 0.55, color=RUNNERS, label="env runners")
    panel.bar(places, learner, 0.55, bottom=runners, color=LEARNER, label="learner")
    _finish(panel, points, [sum(both) for both in zip(runners, learner, strict=True)])


def _finish(panel: "Axes", points: Sequence[Row], heights: Sequence[float]) -> None:
    """Figures above, values below, evenly spaced: they double, or are names."""
    for place, height in enumerate(heights):
        panel.annotate(
            f"{height:,.0f}",
            (place, height),
            xytext=(0, 6),
            textcoords="offset points",
            ha="center",
            fontsize=7.5,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.3},
        )
    names = [str(point["value"]).replace("-", "\n-") for point in points]
    panel.set_xticks(range(len(points)), names)
    panel.set_xlim(-0.6, len(points) - 0.4)
    # Room for the figures.
    panel.set_ylim(0, 1.2 * max(heights))
    panel.yaxis.set_major_formatter("{x:,.0f}")


def _share_scale(panels: Sequence["Axes"]) -> None:
    """One scale for all of them, written at the first."""
    top = max((panel.get_ylim()[1] for panel in panels), default=1.0)
    for number, panel in enumerate(panels):
        panel.set_ylim(0, top)
        panel.tick_params(labelleft=number == 0)


def _is_named(points: Sequence[Row]) -> bool:
    return isinstance(points[0]["value"], str)


def _width(points: Sequence[Row]) -> float:
    """Relative; names need more room than numbers."""
    return len(points) * (1.7 if _is_named(points) else 1.0) + 0.8
