"""Runs as tidy CSV, a row for each run and result, and back."""

import csv
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rllib_impass.reports.errors import ReportError
from rllib_impass.reports.run import COLUMNS, Run

_WORDS = ("label", "algorithm", "env")
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
    ended = {name: getattr(run, name) for name in ("status", "clock", "error")}
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
        by_run = itertools.groupby(reader, key=lambda row: row["run"])
        try:
            return [_to_run(file, name, rows) for name, rows in by_run]
        except ValueError as error:
            raise ReportError(f"{file}, line {reader.line_num}: {error}") from None


def _to_run(file: Path, name: str, rows: Iterable[Mapping[str, str]]) -> Run:
    rows = list(rows)
    first = rows[0]
    # A run without results has a row all the same.
    results = [row for row in rows if row["env_steps"]]
    return Run(
        folder=file.parent / name,
        **{word: first[word] for word in _WORDS},
        **{
            number: int(first[number]) if first[number] else None for number in _NUMBERS
        },
        status=first["status"],
        error=first.get("error") or None,
        clock=first["clock"],
        points={
            column: np.array([_number(row[column]) for row in results], np.float64)
            for column in COLUMNS
        },
    )


def _number(cell: str) -> float:
    return float(cell) if cell else math.nan


def _cell(value: Any) -> Any:
    is_unknown = isinstance(value, float) and not math.isfinite(value)
    return None if is_unknown else value
