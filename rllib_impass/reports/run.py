"""A run, as reports know it, and all runs of a report."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rllib_impass.reports.run_folders import Status

Array = NDArray[np.float64]

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
        folder: where it lies, or lay when a table was made of it.
        label: what figures call it; runs that share it are seeds of the same thing.
            It depends on what else there is, so that reading leaves it empty.
        variant: what it was told that it is, or what Tune varied; None for neither.
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
    label: str
    variant: str | None
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
