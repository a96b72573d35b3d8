"""Numbers as people write them: at axes and in tables."""

import math

NOTHING = "-"
_SUFFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_UNITS = (("h", 3_600.0), ("min", 60.0), ("s", 1.0))


def tick(value: float, _position: int) -> str:
    """What stands at an axis, where neighbours may differ in the fourth digit."""
    return compact(value, num_digits=5)


def compact(value: float, num_digits: int = 3) -> str:
    """A few characters: such as 1.5M, 200k, 3,000 or 0.25."""
    if not math.isfinite(value):
        return NOTHING
    size = abs(value)
    text = f"{size:.{num_digits}g}"
    if size >= 10_000:
        scale, suffix = next(s for s in _SUFFIXES if size >= s[0] * 0.9995)
        text = f"{size / scale:.{num_digits}g}{suffix}"
    elif size >= 100:
        text = f"{size:,.0f}"
    return f"-{text}" if value < 0 and float(f"{size:.{num_digits}g}") else text


def figure(value: float | None) -> str:
    """A table's cell: four digits or so; a dash if it is not known."""
    if value is None or not math.isfinite(value):
        return NOTHING
    size = abs(value)
    digits = 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3
    text = f"{size:,.{digits}f}"
    return f"-{text}" if value < 0 and float(text.replace(",", "")) else text


def probability(value: float) -> str:
    """Two digits: few runs give no more."""
    return f"{value:.2f}"


def duration_unit(seconds: float) -> tuple[str, float]:
    """The unit in which a duration is a number that people grasp, and its seconds."""
    return next(((n, s) for n, s in _UNITS if seconds >= 2 * s), _UNITS[-1])


def duration(seconds: float | None) -> str:
    """Such as 12.5 min."""
    if seconds is None or not math.isfinite(seconds):
        return NOTHING
    name, per_unit = duration_unit(seconds)
    return f"{seconds / per_unit:.3g} {name}"
