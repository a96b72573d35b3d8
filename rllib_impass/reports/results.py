"""Run folders as a tidy table: one row for each run and result."""

import dataclasses
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rllib_impass.reports.labels import label_runs
from rllib_impass.reports.run_folders import (
    PARAMS_FILE,
    RECORD_FILE,
    JsonDict,
    Status,
    TrialState,
    find_trials,
    last_error,
    read_json,
    read_results,
    read_states,
    recommendations,
    status_of,
)

Array = NDArray[np.float64]

STEPS_KEY = "num_env_steps_sampled_lifetime"
# The former leaves evaluations out; only comparisons measure it.
CLOCKS = {"training": "time_training_s", "total": "time_total_s"}
# What is read of each result, by the name of its column.
KEYS = {
    "training_return": "env_runners/episode_return_mean",
    "evaluation_return": "evaluation/env_runners/episode_return_mean",
    "training_smoothness": "env_runners/action_smoothness",
    "evaluation_smoothness": "evaluation/env_runners/action_smoothness",
    "policy_lag": "learners/default_policy/policy_lag_mean",
}
COLUMNS = ("env_steps", "time_s", *KEYS, "env_steps_per_s")


@dataclasses.dataclass(frozen=True)
class Run:
    """One trial.

    Attributes:
        folder: where it lies.
        label: what figures call it; runs that share it are seeds of the same thing.
        algorithm: the name of its class.
        env: the environment's name.
        seed: its seed, if one was set.
        num_env_runners: how many actors it has.
        num_stacked_states: how many states its policy sees; None where it cannot stack.
        status: how it ended.
        error: what it crashed with.
        clock: "training" if ``time_s`` leaves evaluations out, else "total".
        points: the columns of its results, in order of env steps; NaN where a result
            lacks something.
    """

    folder: Path
    label: str | None
    algorithm: str
    env: str
    seed: int | None
    num_env_runners: int | None
    num_stacked_states: int | None
    status: Status
    error: str | None
    clock: str
    points: Mapping[str, Array]

    @property
    def name(self) -> str:
        """Experiment and trial, without the rest of the path."""
        folder = self.folder.absolute()
        return f"{folder.parent.name}/{folder.name}"

    def series(self, x: str, y: str) -> tuple[Array, Array]:
        """Two columns where both are known."""
        xs, ys = self.points[x], self.points[y]
        is_known = np.isfinite(xs) & np.isfinite(ys)
        return xs[is_known], ys[is_known]

    def known(self, column: str) -> Array:
        """A column where it is known."""
        values = self.points[column]
        return values[np.isfinite(values)]


@dataclasses.dataclass(frozen=True)
class Results:
    """All that a report is made of.

    Attributes:
        runs: every trial, crashed ones included.
        recommendations: what actor studies recommend.
        num_never_started: trials that wait for their turn.
    """

    runs: Sequence[Run]
    recommendations: Sequence[str]
    num_never_started: int


def read_runs(
    folders: Sequence[Path], on_progress: Callable[[int, int], None] | None = None
) -> Results:
    """Reads run folders.

    Args:
        folders: trials, experiments, or folders of experiments.
        on_progress: told how many trials of how many have been read.

    Raises:
        ReportError: if one of the folders holds no trial.
    """
    trials = find_trials(folders)
    experiments = dict.fromkeys(trial.parent for trial in trials)
    states = {folder: read_states(folder) for folder in experiments}
    runs = []
    for number, trial in enumerate(trials):
        if on_progress is not None:
            on_progress(number, len(trials))
        runs.append((trial, _read_run(trial, states[trial.parent].get(trial.name))))
    places = {folder: number for number, folder in enumerate(experiments)}

    def place(pair: tuple[Path, Run]) -> tuple[int, int]:
        state = states[pair[0].parent].get(pair[0].name)
        return places[pair[0].parent], -1 if state is None else state.number

    ordered = [run for _, run in sorted(runs, key=place)]
    known = [s for by_folder in states.values() for s in by_folder.values()]
    waiting = [s for s in known if s.status == "PENDING" and not s.folder]
    return Results(label_runs(ordered), recommendations(trials, folders), len(waiting))


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
    names = ("label", "algorithm", "env", "seed", "num_env_runners")
    about = {name: getattr(run, name) for name in (*names, "num_stacked_states")}
    return about | {"run": run.name, "status": run.status, "clock": run.clock}


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
    about = {name: named.get(name, config.get(name)) for name in _NUMBERS}
    return Run(
        folder=trial,
        label=named.get("label"),
        algorithm=_short_name(algorithm),
        env=_short_name(env),
        **{name: _whole(value) for name, value in about.items()},
        status=status,
        error=last_error(trial) if status == "crashed" else None,
        clock=clock,
        points=_points(rows, clock),
    )


_NUMBERS = ("seed", "num_env_runners", "num_stacked_states")


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
    while rows and rows[-1]["env_steps"] >= steps:
        rows.pop()
    clocks = {clock: _number(result, key) for clock, key in CLOCKS.items()}
    known = {clock: value for clock, value in clocks.items() if math.isfinite(value)}
    values = {name: _number(result, key) for name, key in KEYS.items()}
    rows.append({"env_steps": steps} | known | values)


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
