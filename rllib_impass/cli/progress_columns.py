"""What is shown of a result, and how wide: the same for lines and for the table."""

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import Any

from ray.rllib.utils.metrics import NUM_ENV_STEPS_SAMPLED_LIFETIME as NUM_STEPS

from rllib_impass.experiments.result_keys import EVALUATION_RETURN, RETURN

Cells = Mapping[str, str]

LABEL = "trial"
STATUS = "status"
NOTHING = "-"
SECONDS = "time_total_s"


@dataclasses.dataclass(frozen=True)
class Column:
    """One column.

    Attributes:
        name: its header.
        width: its characters, with the gap to its left.
        rank: how dispensable it is; where room is short, the highest goes first.
    """

    name: str
    width: int
    rank: int


RESULT_COLUMNS = (
    Column("iter", 6, rank=5),
    Column("time", 8, rank=7),
    Column("env steps", 11, rank=2),
    Column("steps/s", 8, rank=6),
    Column("return", 9, rank=1),
    Column("length", 7, rank=8),
    Column("lag", 5, rank=9),
    Column("eval", 9, rank=4),
)
STATUS_COLUMN = Column(STATUS, 8, rank=3)
# At least what is left of 80 columns once all others are there.
LABEL_COLUMN = Column(LABEL, 9, rank=0)
MAX_LABEL_WIDTH = 24


def result_cells(result: Mapping[str, Any], before: Mapping[str, Any]) -> Cells:
    """The cells of a result.

    Args:
        result: a result of Tune with nested keys joined by "/".
        before: the trial's result before it, empty for the first.
    """
    values = {
        "env steps": (result.get(NUM_STEPS), 0),
        "steps/s": (_steps_per_s(result, before), 0),
        "return": (result.get(RETURN), 1),
        "length": (result.get("env_runners/episode_len_mean"), 0),
        "lag": (result.get("learners/default_policy/policy_lag_mean"), 1),
        "eval": (result.get(EVALUATION_RETURN), 1),
    }
    widths = {column.name: column.width for column in RESULT_COLUMNS}
    return {
        "iter": str(result.get("training_iteration", NOTHING)),
        "time": clock(result[SECONDS]) if SECONDS in result else NOTHING,
        **{name: number(*value, widths[name] - 1) for name, value in values.items()},
    }


def _steps_per_s(result: Mapping[str, Any], before: Mapping[str, Any]) -> float | None:
    if NUM_STEPS not in result or SECONDS not in result:
        return None
    steps = result[NUM_STEPS] - before.get(NUM_STEPS, 0)
    seconds = result[SECONDS] - before.get(SECONDS, 0.0)
    # A trial that went back to a checkpoint has fewer steps than before.
    return steps / seconds if seconds > 0 and steps >= 0 else None


def number(value: float | None, digits: int, width: int) -> str:
    """A number in at most ``width`` characters where that can be."""
    if value is None or math.isnan(value):
        return NOTHING
    texts = (
        f"{value:,.{digits}f}",
        f"{value:,.0f}",
        f"{value / 1e6:,.1f}M",
        f"{value:.0e}",
    )
    return next((text for text in texts if len(text) <= width), texts[-1])


def clock(seconds: float) -> str:
    """1:02 for a minute and two seconds, 1:00:02 with an hour, 12h05m with many."""
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    if hours >= 10:
        return f"{hours}h{minute:02d}m"
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute}:{second:02d}"


def trial_label(trial: Any) -> str:
    """What sets a trial apart: its name, or settings as ``lr=0.001``; else its id."""
    if trial.custom_trial_name is not None:
        return trial.custom_trial_name
    parameters = (
        f"{key.rsplit('/', 1)[-1]}={f'{value:g}' if _is_float(value) else value}"
        for key, value in trial.evaluated_params.items()
    )
    return ",".join(parameters) or trial.trial_id


def _is_float(value: Any) -> bool:
    return isinstance(value, float)


def fit_columns(width: int, extra: Iterable[Column] = ()) -> list[Column]:
    """The columns that fit into ``width``, in their order.

    Args:
        width: of the terminal.
        extra: columns before those of the result; one named ``LABEL`` gets the rest of
            the width.
    """
    columns = [*extra, *RESULT_COLUMNS]
    while len(columns) > 1 and _total(columns) > width:
        columns.remove(max(columns, key=lambda column: column.rank))
    room = width - _total(columns)
    return [
        dataclasses.replace(c, width=min(c.width + max(room, 0), MAX_LABEL_WIDTH))
        if c.name == LABEL
        else c
        for c in columns
    ]


def _total(columns: Iterable[Column]) -> int:
    return sum(column.width for column in columns)


def header(columns: Iterable[Column]) -> str:
    """The names of the columns, aligned as their cells."""
    return line({column.name: column.name for column in columns}, columns)


def line(cells: Cells, columns: Iterable[Column]) -> str:
    """One row as text; what a row lacks is shown as ``NOTHING``."""
    return "".join(_cell(cells.get(c.name, NOTHING), c) for c in columns).rstrip()


def _cell(text: str, column: Column) -> str:
    if column.name != LABEL:
        return text.rjust(column.width)
    # The end tells trials apart: the value, or the number at the end of an id.
    is_long = len(text) > column.width
    return f"…{text[1 - column.width :]}" if is_long else text.ljust(column.width)
