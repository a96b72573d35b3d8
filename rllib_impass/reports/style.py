"""How all figures look, on paper and inside a page that may be dark."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg")

INK = "#24292f"
MUTED = "#57606b"
PALE = "#d0d7de"
PAPER = "#ffffff"

# Each colour, and what stands for it on a dark page.
_NEUTRAL = {INK: "#e6edf3", MUTED: "#9da7b3", PALE: "#3a424c", PAPER: "#12161c"}
# After Okabe and Ito, whose colours the colour-blind can tell apart; darker here where
# a thin line would be faint on white.
_CATEGORIES = {
    "#0072b2": "#4aa8e8",
    "#d55e00": "#f58b4c",
    "#00875f": "#35c49a",
    "#a8518a": "#dc8fc0",
    "#b07800": "#e0b040",
    "#3a9bd0": "#8fcdf2",
}
# From few to many: ever darker, or ever bluer.
_ORDERED = {
    "#c0730f": "#f6c177",
    "#cf4a4f": "#f58a7a",
    "#a03a86": "#e07bc0",
    "#6240a0": "#b58af0",
    "#2b3a8c": "#8aa0ff",
    "#101c4d": "#a9d2ff",
}
_THEME = _NEUTRAL | _CATEGORIES | _ORDERED

_STYLE = {
    "font.size": 8.5,
    "font.family": "sans-serif",
    "axes.edgecolor": PALE,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": PALE,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "xtick.color": INK,
    "xtick.bottom": False,
    "ytick.color": INK,
    "ytick.left": False,
    "legend.frameon": False,
    # Text stays text, and the same figures give the same file.
    "svg.fonttype": "none",
    "svg.hashsalt": "rllib_impass",
}


@contextlib.contextmanager
def figure_style() -> Iterator[None]:
    """Has figures that are made inside look alike."""
    # Late: nobody else needs it, and it takes a second.
    import matplotlib

    with matplotlib.rc_context(_STYLE):
        yield


def save(figure: "Figure", file: Path) -> None:
    """Writes a figure; its ending is one of FORMATS."""
    # Without a date, a file differs only if its figures do.
    metadata = {"Date": None} if file.suffix == ".svg" else None
    figure.savefig(file, dpi=160, metadata=metadata)


def colours(labels: Sequence[str], *, is_ordered: bool) -> dict[str, str]:
    """A colour for each label, the same in all figures of a report."""
    if not is_ordered:
        palette = list(_CATEGORIES)
        return {label: palette[i % len(palette)] for i, label in enumerate(labels)}
    palette = list(_ORDERED)
    step = (len(palette) - 1) / max(1, len(labels) - 1)
    return {label: palette[round(step * i)] for i, label in enumerate(labels)}


def with_variables(svg: str) -> str:
    """Drawing whose colours are named, for a page that has `colour_rules`."""
    for colour in _THEME:
        svg = svg.replace(colour, variable_of(colour))
    return svg


def colour_rules(*, is_dark: bool) -> str:
    """What the named colours are, as CSS, on a light page or a dark one."""
    return " ".join(
        f"{_variable(light)}: {dark if is_dark else light};"
        for light, dark in _THEME.items()
    )


def variable_of(colour: str) -> str:
    """The CSS that names one of our colours."""
    return f"var({_variable(colour)})"


def _variable(colour: str) -> str:
    return f"--c-{colour[1:]}"
