"""Runs as tidy CSV, a row for each run and result, and back."""

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rllib_impass.reports.errors import ReportError
from rllib_impass.reports.run import COLUMNS, Run

_WORDS = ("label", "algorithm", "env")
_OPTIONAL = ("variant", "error")
_NUMBERS = ("seed", "num_env_runners", "num_stacked_states")
_NEEDED = (*_WORDS, *_NUMBERS, "run", "status", "clock", *COLUMNS)


def tidy_rows(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """A row for each run and result; a run without results has one, without figures."""
    rows = []
    for run in runs:
        about = describe(run)
        columns = [run.points[name].tolist() for name in COLUMNS]
        points = list(zip(*columns, strict=True)) or [(math.nan,) * len(COLUMNS)]
        rows += [about | dict(zip(COLUMNS, point, strict=True)) for point in points]
    return rows


def describe(run: Run) -> dict[str, Any]:
    """What all rows of a run have in common."""
    about = {name: getattr(run, name) for name in (*_WORDS, *_NUMBERS)}
    ended = {name: getattr(run, name) for name in ("status", "clock", *_OPTIONAL)}
    return about | {"run": run.name} | ended


def write_csv(rows: Sequence[Mapping[str, Any]], file: Path) -> None:
    """Writes rows of the same columns; nothing where nothing is known."""
    with file.open("w", newline="") as lines:
        writer = csv.DictWriter(lines, fieldnames=list(rows[0]))
        writer.writeheader()
        for row in rows:
            writer.writerow({key: _cell(value) for key, value in row.items()})


def is_table(place: Path) -> bool:
    """Whether something is a table, not a folder of runs."""
    return place.suffix == ".csv" and place.is_file()


def read_table(file: Path) -> list[Run]:
    """The runs of a `results.csv`, as they were when it was written.

    Rows may be in any order, as a spreadsheet leaves them.

    Raises:
        ReportError: if it is no such file.
    """
    with file.open(newline="") as lines:
        reader = csv.DictReader(lines)
        missing = [c for c in _NEEDED if c not in (reader.fieldnames or ())]
        if missing:
            raise ReportError(
                f"{file} lacks the column {missing[0]!r}; give the results.csv of a "
                "report"
            )
        rows: dict[str, list[dict[str, Any]]] = {}
        try:
            for row in reader:
                rows.setdefault(row["run"], []).append(_parse(row))
        except ValueError as error:
            raise ReportError(f"{file}, line {reader.line_num}: {error}") from None
    if not rows:
        raise ReportError(f"{file} holds no run")
    return [_to_run(file.parent / name, of_run) for name, of_run in rows.items()]


def _parse(row: Mapping[str, str]) -> dict[str, Any]:
    # Tables of earlier versions have no variants.
    words = {"variant": row["label"]} | row
    return (
        words
        | {name: words.get(name) or None for name in _OPTIONAL}
        | {name: int(row[name]) if row[name] else None for name in _NUMBERS}
        | {name: float(row[name]) if row[name] else math.nan for name in COLUMNS}
    )


def _to_run(folder: Path, rows: Sequence[Mapping[str, Any]]) -> Run:
    # A run without results has a row all the same.
    results = [row for row in rows if math.isfinite(row["env_steps"])]
    results.sort(key=lambda row: row["env_steps"])
    about = (*_WORDS, *_NUMBERS, *_OPTIONAL, "status", "clock")
    return Run(
        folder=folder,
        **{name: rows[0][name] for name in about},
        points={
            column: np.array([row[column] for row in results], np.float64)
            for column in COLUMNS
        },
    )


def _cell(value: Any) -> Any:
    is_unknown = isinstance(value, float) and not math.isfinite(value)
    return None if is_unknown else value
