"""The state of a Tune run as far as its progress is concerned; prints nothing."""

import collections
import dataclasses
import re
import statistics
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ray.tune.experiment import Trial
from ray.tune.utils import flatten_dict

from rllib_impass.cli.progress_columns import (
    LABEL,
    NUM_STEPS,
    SECONDS,
    STATUS,
    Cells,
    clock,
    result_cells,
    trial_label,
)
from rllib_impass.experiments.study_trial import TIME_TRAINING

NUM_ROWS = 10
NUM_RESULTS_BEFORE_WARNING = 5
PENDING, RUNNING, DONE, FAILED, STOPPED = (
    "pending",
    "running",
    "done",
    "failed",
    "stopped",
)
STATUSES = {
    Trial.PENDING: PENDING,
    Trial.RUNNING: RUNNING,
    Trial.PAUSED: "paused",
    Trial.TERMINATED: DONE,
    Trial.ERROR: FAILED,
}
UNITS = {NUM_STEPS: "env steps", "training_iteration": "iterations"}
CLOCKS = (SECONDS, TIME_TRAINING)
EVALUATION = "evaluation/"


@dataclasses.dataclass
class TrialProgress:
    """What is known of one trial.

    Attributes:
        label: what sets it apart from the other trials.
        unseen: stop criteria that were in none of its results.
        status: one of ``STATUSES``.
        result: its newest result, nested keys joined by "/".
        rows: the cells of its last results.
        num_results: how many it has sent.
        has_evaluation: whether any of them held an evaluation.
    """

    label: str
    unseen: set[str]
    status: str = PENDING
    result: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    rows: collections.deque[Cells] = dataclasses.field(
        default_factory=lambda: collections.deque(maxlen=NUM_ROWS)
    )
    num_results: int = 0
    has_evaluation: bool = False

    def add(self, result: Mapping[str, Any]) -> None:
        """Takes in a flat result."""
        self.rows.append({LABEL: self.label, **result_cells(result, self.result)})
        self.result = result
        self.num_results += 1
        self.unseen.difference_update(result)
        self.has_evaluation |= any(key.startswith(EVALUATION) for key in result)

    def continue_from(self, result: Mapping[str, Any]) -> None:
        """Takes in the last result of the run that this one continues."""
        self.rows.append({LABEL: self.label, **result_cells(result, {})})
        self.result = result

    def overdue(self) -> list[str]:
        """The stop criteria that should have been in a result by now."""
        if self.num_results < NUM_RESULTS_BEFORE_WARNING:
            return []
        return sorted(
            key
            for key in self.unseen
            if self.has_evaluation or not key.startswith(EVALUATION)
        )

    def newest_row(self) -> Cells:
        """The newest result with the trial's status."""
        newest = self.rows[-1] if self.rows else {LABEL: self.label}
        return {**newest, STATUS: self.status}

    def is_over(self) -> bool:
        """Whether it will send no more results."""
        return self.status in (DONE, FAILED)


class RunProgress:
    """All trials of a run, and how far they are from its stop criteria."""

    def __init__(self, stop: Mapping[str, float], num_trials: int) -> None:
        self.trials: dict[str, TrialProgress] = {}
        self._stop = stop
        self._num_trials = num_trials
        self._warned: set[str] = set()
        self._started = self._newest = time.monotonic()

    def num_trials(self) -> int:
        """How many trials there are; those that Tune has yet to create count."""
        return max(self._num_trials, len(self.trials))

    def update_statuses(self, trials: list[Trial]) -> bool:
        """Takes in the statuses of all trials; returns whether any has changed."""
        before = {key: trial.status for key, trial in self.trials.items()}
        for trial in trials:
            self._trial(trial).status = STATUSES[trial.status]
        return before != {key: trial.status for key, trial in self.trials.items()}

    def add_result(self, trial: Trial, result: Mapping[str, Any]) -> list[str]:
        """Takes in a result; returns what the user should be told."""
        progress = self._trial(trial)
        progress.add(flatten_dict(result))
        self._newest = time.monotonic()
        new = [key for key in progress.overdue() if key not in self._warned]
        self._warned.update(new)
        return [f"stop: {key} is in no result so far" for key in new]

    def failure(self, trial: Trial) -> str:
        """Why a trial failed, in one line."""
        label = f"{self._trial(trial).label}: " if self.num_trials() > 1 else ""
        return f"failed: {label}{_reason(trial)}"

    def end(self) -> None:
        """Marks what an interrupt has left unfinished."""
        for trial in self.trials.values():
            if trial.status == RUNNING:
                trial.status = STOPPED

    def has_results(self) -> bool:
        """Whether this run, which may continue another, has sent any."""
        return any(trial.num_results for trial in self.trials.values())

    def last_rows(self, limit: int) -> list[Cells]:
        """The newest results of all trials, oldest first."""
        rows = [row for trial in self.trials.values() for row in trial.rows]
        return rows[-limit:]

    def trial_rows(self, limit: int) -> list[Cells]:
        """A row per trial; where there are too many, those at work come first."""
        trials = sorted(self.trials.values(), key=lambda t: t.status != RUNNING)
        shown = {id(trial) for trial in trials[:limit]}
        return [t.newest_row() for t in self.trials.values() if id(t) in shown]

    def summary(self) -> str:
        """How far the run is, for how long it has run, how long it will yet."""
        parts = [f"elapsed {clock(time.monotonic() - self._started)}"]
        if self.num_trials() > 1:
            num_over = sum(trial.is_over() for trial in self.trials.values())
            parts.insert(0, f"{num_over} of {self.num_trials()} trials done")
        key = self._nearest_criterion()
        if key:
            parts.insert(0, self._percentage(key))
            remaining = self._remaining_s(key)
            parts += [f"about {clock(remaining)} left"] if remaining >= 1 else []
        return ", ".join(parts)

    def _trial(self, trial: Trial) -> TrialProgress:
        if trial.trial_id not in self.trials:
            progress = TrialProgress(trial_label(trial), set(self._stop))
            if trial.has_reported_at_least_once:
                progress.continue_from(flatten_dict(trial.last_result))
            self.trials[trial.trial_id] = progress
        return self.trials[trial.trial_id]

    def _nearest_criterion(self) -> str | None:
        """The counter that will end the run first."""
        results = [trial.result for trial in self.trials.values()]
        shares = {
            key: max((self._share(key, result) for result in results), default=0.0)
            for key in self._stop
            if _is_counter(key)
        }
        return max(shares, key=shares.__getitem__, default=None)

    def _share(self, key: str, result: Mapping[str, Any]) -> float:
        return min(result.get(key, 0) / max(self._stop[key], 1e-9), 1.0)

    def _percentage(self, key: str) -> str:
        shares = (
            1.0 if trial.is_over() else self._share(key, trial.result)
            for trial in self.trials.values()
        )
        percent = int(100 * sum(shares) / self.num_trials())
        target = self._stop[key]
        if key in CLOCKS:
            return f"{percent}% of {clock(target)}"
        return f"{percent}% of {target:,.0f} {UNITS.get(key, key.split('/')[-1])}"

    def _remaining_s(self, key: str) -> float:
        """An estimate from the rates of the trials; 0 as long as there is none."""
        unfinished = [trial for trial in self.trials.values() if not trial.is_over()]
        left, whole = [], []
        for trial in unfinished:
            share = self._share(key, trial.result)
            if share > 0 and SECONDS in trial.result:
                whole.append(trial.result[SECONDS] / share)
                left.append(whole[-1] - trial.result[SECONDS])
        if not whole:
            return 0.0
        num_uncreated = self.num_trials() - len(self.trials)
        num_waiting = len(unfinished) - len(whole) + num_uncreated
        num_running = sum(trial.status == RUNNING for trial in unfinished)
        work = sum(left) + num_waiting * statistics.mean(whole)
        since_news = time.monotonic() - self._newest
        return max(max(work / max(num_running, 1), *left) - since_news, 0.0)


def _is_counter(key: str) -> bool:
    """Whether a stop criterion grows steadily, unlike a return."""
    name = key.split("/")[-1]
    return key in (*UNITS, *CLOCKS) or (
        name.startswith("num_") and name.endswith("_lifetime")
    )


def _reason(trial: Trial) -> str:
    """What went wrong, in one line: the last error of the chain that says something.

    RLlib wraps what an env raises into a bare ``RuntimeError``.
    """
    text = Path(trial.error_file).read_text() if trial.error_file else ""
    errors = re.findall(r"^[\w.]+: .+$", text, flags=re.MULTILINE)
    return errors[-1] if errors else "the reason is in error.txt"
