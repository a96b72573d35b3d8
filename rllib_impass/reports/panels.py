"""Panels and plots: drawn together as files, one by one inside a page."""

import dataclasses
import html
import io
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rllib_impass.reports.style import FORMATS, figure_style, save, with_variables

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Inches. Narrow, so that letters are large enough on a phone.
WIDTH = 3.9


@dataclasses.dataclass(frozen=True)
class Panel:
    """One pair of axes.

    Attributes:
        title: above it.
        alt: what it shows, for who cannot see it.
        draw: draws it.
        height: in inches.
    """

    title: str
    alt: str
    draw: Callable[["Axes"], None]
    height: float = 2.75


@dataclasses.dataclass(frozen=True)
class Plot:
    """Panels that belong together.

    Attributes:
        name: of its files.
        title: above all of it.
        caption: how to read it.
        panels: one for each environment, or a few.
    """

    name: str
    title: str
    caption: str
    panels: Sequence[Panel]


def save_plot(plot: Plot, folder: Path) -> None:
    """Writes a plot with all its panels as PNG and SVG."""
    from matplotlib.figure import Figure

    with figure_style():
        num_columns = min(2, len(plot.panels))
        num_rows = -(-len(plot.panels) // num_columns)
        height = max(panel.height for panel in plot.panels)
        # No pyplot: it would look for a screen.
        figure = Figure(
            figsize=(WIDTH * num_columns, height * num_rows + 0.3),
            layout="constrained",
        )
        axes = figure.subplots(num_rows, num_columns, squeeze=False).flatten()
        for axis, panel in zip(axes, plot.panels, strict=False):
            _draw(panel, axis)
        for axis in axes[len(plot.panels) :]:
            axis.set_visible(False)
        figure.suptitle(plot.title, fontsize=10.5, x=0.01, ha="left")
        for ending in FORMATS:
            save(figure, folder / f"{plot.name}{ending}")


def panel_svg(panel: Panel, name: str) -> str:
    """A panel as an SVG element whose colours follow the page around it.

    Args:
        panel: what to draw.
        name: unlike that of any other in the page, as ids must not repeat.
    """
    from matplotlib.figure import Figure

    with figure_style():
        figure = Figure(figsize=(WIDTH, panel.height), layout="constrained")
        figure.patch.set_visible(False)
        axes = figure.subplots()
        axes.patch.set_visible(False)
        _draw(panel, axes)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return _embedded(buffer.getvalue(), panel.alt, name)


def _draw(panel: Panel, axes: "Axes") -> None:
    axes.set_title(panel.title, loc="left")
    panel.draw(axes)


def _embedded(svg: str, alt: str, name: str) -> str:
    """A file as an element: without its head, with ids and colours of the page."""
    size = re.search(r'viewBox="([^"]+)"', svg)[1]
    body = re.search(r"<svg[^>]*>(.*)</svg>", svg, flags=re.DOTALL)[1]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", body)
    return (
        f'<svg role="img" aria-labelledby="{name}-alt" viewBox="{size}">'
        f'<title id="{name}-alt">{html.escape(alt)}</title>'
        f"{with_variables(body)}</svg>"
    )
