"""Reads runs: from the folders that Tune left, or from the tables of reports."""

import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rllib_impass.reports.labels import label_runs
from rllib_impass.reports.run import KEYS, Array, Results, Run
from rllib_impass.reports.run_folders import (
    PARAMS_FILE,
    RECORD_FILE,
    JsonDict,
    TrialState,
    find_trials,
    last_error,
    read_json,
    read_results,
    read_states,
    recommendations,
    status_of,
)
from rllib_impass.reports.tidy_csv import is_table, read_table

STEPS_KEY = "num_env_steps_sampled_lifetime"
_ITERATION = "training_iteration"
# The former leaves evaluations out; only comparisons measure it.
CLOCKS = {"training": "time_training_s", "total": "time_total_s"}


def read_runs(
    places: Sequence[Path], on_progress: Callable[[int, int], None] | None = None
) -> Results:
    """Reads runs.

    A run that is in a folder and in a table is that of the folder, which may have gone
    on since the table was made.

    Args:
        places: trials, experiments, folders of experiments, or the `results.csv` of
            reports.
        on_progress: told how many trials of how many have been read.

    Raises:
        ReportError: if one of the places holds no run.
    """
    tables = [place for place in places if is_table(place)]
    folders = [place for place in places if place not in tables]
    trials = find_trials(folders)
    experiments = dict.fromkeys(trial.parent for trial in trials)
    states = {folder: read_states(folder) for folder in experiments}
    runs = []
    for number, trial in enumerate(trials):
        if on_progress is not None:
            on_progress(number, len(trials))
        runs.append((trial, _read_run(trial, states[trial.parent].get(trial.name))))
    places_of = {folder: number for number, folder in enumerate(experiments)}

    def place_of(pair: tuple[Path, Run]) -> tuple[int, int]:
        state = states[pair[0].parent].get(pair[0].name)
        return places_of[pair[0].parent], -1 if state is None else state.number

    ordered = [run for _, run in sorted(runs, key=place_of)]
    known = [s for by_folder in states.values() for s in by_folder.values()]
    waiting = [s for s in known if s.status == "PENDING" and not s.folder]
    return Results(
        label_runs(_with_tables(ordered, tables)),
        recommendations(trials, folders),
        len(waiting),
    )


def _with_tables(runs: Sequence[Run], tables: Sequence[Path]) -> list[Run]:
    """Runs of folders after those of tables, each once."""
    of_folders = {run.name for run in runs}
    of_tables: dict[str, Run] = {}
    for table in tables:
        for run in read_table(table):
            if run.name not in of_folders:
                of_tables.setdefault(run.name, run)
    return [*of_tables.values(), *runs]


def _read_run(trial: Path, state: TrialState | None) -> Run:
    rows: list[JsonDict] = []
    last: JsonDict = {}
    for last in read_results(trial):
        _add_row(rows, last)
    config = read_json(trial / PARAMS_FILE) or last.get("config") or {}
    named = config.get("trial") or last.get("trial") or {}
    record = read_json(trial.parent / RECORD_FILE).get("source", {})
    algorithm = named.get("algorithm") or (
        state.trainable if state else record.get("run") or trial.name.split("_")[0]
    )
    env = named.get("env") or config.get("env") or record.get("env") or "unknown env"
    status = status_of(trial, state, bool(last.get("done")))
    clock = "training" if any("training" in row for row in rows) else "total"
    told = config | named | (config.get("settings") or {})
    return Run(
        folder=trial,
        label="",
        variant=_variant(named.get("label"), _short_name(algorithm), state),
        algorithm=_short_name(algorithm),
        env=_short_name(env),
        **{name: _whole(told.get(name)) for name in _NUMBERS},
        status=status,
        error=last_error(trial) if status == "crashed" else None,
        clock=clock,
        points=_points(rows, clock),
    )


_NUMBERS = ("seed", "num_env_runners", "num_stacked_states")
# Told apart in ways of their own.
_NO_VARIANTS = {"trial", "env", *_NUMBERS}


def _variant(label: str | None, algorithm: str, state: TrialState | None) -> str | None:
    """What sets a trial apart: its label, and what Tune varied."""
    varied = {} if state is None else state.varied
    named = {path.removeprefix("settings/"): value for path, value in varied.items()}
    settings = [
        f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in named.items()
        if name not in _NO_VARIANTS
    ]
    return ", ".join([label or algorithm, *settings]) if settings else label


def _add_row(rows: list[JsonDict], result: JsonDict) -> None:
    """Adds what is read of a result, in place of what it does anew.

    A trial that is tried again, or resumed, goes on from its last checkpoint, and
    writes the steps since then a second time. What was written last is what led to
    the trial's end.
    """
    steps = _number(result, STEPS_KEY)
    if math.isnan(steps):
        steps = _number(result, f"env_runners/{STEPS_KEY}")
    if math.isnan(steps):
        return
    read = KEYS | CLOCKS | {_ITERATION: _ITERATION}
    values = {name: _number(result, key) for name, key in read.items()}
    row = {name: value for name, value in values.items() if math.isfinite(value)}
    while rows and _is_redone(rows[-1], steps, values[_ITERATION]):
        rows.pop()
    if rows and rows[-1]["env_steps"] == steps:
        rows[-1] |= row
    else:
        rows.append({"env_steps": steps} | row)


def _is_redone(row: JsonDict, steps: float, iteration: float) -> bool:
    """Whether a row is of a time to which a later result has gone back."""
    # An iteration may also end without a new step.
    is_next = iteration > row.get(_ITERATION, math.inf)
    return row["env_steps"] > steps or (row["env_steps"] == steps and not is_next)


def _points(rows: Sequence[JsonDict], clock: str) -> dict[str, Array]:
    def column(name: str) -> Array:
        return np.array([row.get(name, math.nan) for row in rows], np.float64)

    points = {"env_steps": column("env_steps"), "time_s": column(clock)}
    points |= {name: column(name) for name in KEYS}
    steps = np.diff(points["env_steps"], prepend=0.0)
    seconds = np.diff(points["time_s"], prepend=0.0)
    # A restored run may start at any step, and its first result holds its start-up.
    seconds[:1] = math.nan
    speed = np.full_like(steps, math.nan)
    np.divide(steps, seconds, out=speed, where=seconds > 0)
    return points | {"env_steps_per_s": speed}


def _number(result: JsonDict, key: str) -> float:
    value: Any = result
    for part in key.split("/"):
        value = value.get(part) if isinstance(value, dict) else None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) else math.nan


def _whole(value: Any) -> int | None:
    is_whole = isinstance(value, int | float) and float(value).is_integer()
    return int(value) if is_whole else None


def _short_name(name: Any) -> str:
    """An id as it is; of a class or its path, the class's name."""
    match = re.fullmatch(r"(?:<class '([^']+)'>|((?:\w+\.)+\w+))", str(name))
    return (match[1] or match[2]).rsplit(".", 1)[-1] if match else str(name)
