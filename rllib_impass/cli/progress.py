"""The progress of a Tune run, for people: a live table, or a line per result."""

import contextlib
import contextvars
import enum
import time
from collections.abc import Iterator, Mapping
from typing import Any

from ray import tune
from ray.tune.experiment import Trial
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from rllib_impass.cli.environment import environment_defaults
from rllib_impass.cli.progress_columns import (
    LABEL_COLUMN,
    STATUS,
    STATUS_COLUMN,
    Cells,
    Column,
    fit_columns,
    header,
    line,
)
from rllib_impass.cli.progress_run import DONE, FAILED, PENDING, RunProgress

STARTING = "starting, first result in a few seconds"
REFRESH_S = 1.0
# Tune's own report of a failed trial: pages of frames, right into the table.
NO_TUNE_ERRORS = {"TUNE_PRINT_ALL_TRIAL_ERRORS": "0"}
STATUS_STYLES = {PENDING: "dim", DONE: "green", FAILED: "red"}


class ProgressMode(enum.Enum):
    """How much the user wants to see.

    VERBOSE means lines even on a terminal, because Ray's logs come between them.
    """

    NORMAL = "normal"
    QUIET = "quiet"
    VERBOSE = "verbose"

    @classmethod
    def of(cls, verbosity: int) -> "ProgressMode":
        """-1 is quiet, 0 normal, more is verbose."""
        if verbosity > 0:
            return cls.VERBOSE
        return cls.QUIET if verbosity < 0 else cls.NORMAL


class Quiet:
    """Shows nothing; what the other displays have in common."""

    def start(self, run: RunProgress) -> None:
        """Called before the first trial starts."""

    def show_result(self, run: RunProgress, trial_id: str) -> None:
        """Called with each result."""

    def refresh(self, is_news: bool) -> None:
        """Called several times a second."""

    def note(self, text: str) -> None:
        """One line that has to be read."""

    def stop(self) -> None:
        """Called at the end, however it came about; more than once does no harm."""


class Lines(Quiet):
    """Prints a line per result."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._columns: list[Column] = []

    def start(self, run: RunProgress) -> None:
        """Waits with the header for the first result."""
        self._columns = []

    def show_result(self, run: RunProgress, trial_id: str) -> None:
        """Prints the trial's newest result."""
        if not self._columns:
            extra = [LABEL_COLUMN] if run.num_trials() > 1 else []
            self._columns = fit_columns(self._console.width, extra)
            self._print(Text(header(self._columns), style="bold"))
        self._print(Text(line(run.trials[trial_id].newest_row(), self._columns)))

    def note(self, text: str) -> None:
        """Prints it."""
        self._print(Text(text))

    def _print(self, text: Text) -> None:
        self._console.print(text, soft_wrap=True)


class LiveTable(Quiet):
    """Keeps a table up to date: one trial's last results, or a row per trial."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._refreshed = 0.0

    def start(self, run: RunProgress) -> None:
        """Shows the table, still without a result."""
        self.stop()
        # No refresh thread: the callbacks come often enough to refresh from.
        self._live = Live(
            console=self._console,
            auto_refresh=False,
            get_renderable=lambda: self._table(run),
        )
        self._live.start(refresh=True)

    def show_result(self, run: RunProgress, trial_id: str) -> None:
        """Renews the table."""
        self.refresh(is_news=True)

    def refresh(self, is_news: bool) -> None:
        """Renews the table if there is news, or for the clock."""
        is_due = time.monotonic() - self._refreshed >= REFRESH_S
        if self._live and (is_news or is_due):
            self._refreshed = time.monotonic()
            self._live.refresh()

    def note(self, text: str) -> None:
        """Prints it above the table."""
        self._console.print(Text(text), soft_wrap=True)

    def stop(self) -> None:
        """Leaves the last table where it is, and shows the cursor again."""
        if self._live:
            self._live.stop()
            self._live = None

    def _table(self, run: RunProgress) -> Group:
        is_one = run.num_trials() == 1
        width, height = self._console.size
        columns = fit_columns(width, [] if is_one else [LABEL_COLUMN, STATUS_COLUMN])
        # Header, summary, a line that says what is missing, and the cursor's.
        num_rows = max(height - 4, 1)
        rows = run.last_rows(num_rows) if is_one else run.trial_rows(num_rows)
        texts = [Text(header(columns), style="bold")]
        texts += [_row(cells, columns) for cells in rows]
        if not run.has_results():
            texts.append(Text(STARTING, style="dim"))
        elif not is_one and len(rows) < run.num_trials():
            texts.append(Text(f"and {run.num_trials() - len(rows)} more", style="dim"))
        texts.append(Text(run.summary()))
        for text in texts:
            text.truncate(width, overflow="ellipsis")
        return Group(*texts)


def _row(cells: Cells, columns: list[Column]) -> Text:
    return Text(
        line(cells, columns), style=STATUS_STYLES.get(cells.get(STATUS, ""), "")
    )


# Tune restores its callbacks from a pickle of the first start, so how progress is
# shown cannot be a part of them: it belongs to the process that shows it.
_display: contextvars.ContextVar[Quiet | None] = contextvars.ContextVar(
    "display", default=None
)


def make_display(mode: ProgressMode, console: Console) -> Quiet:
    """The display for a mode and a console, which need not be a terminal."""
    if mode is ProgressMode.QUIET:
        return Quiet()
    is_screen = console.is_terminal and not console.is_dumb_terminal
    if mode is ProgressMode.NORMAL and is_screen:
        return LiveTable(console)
    return Lines(console)


@contextlib.contextmanager
def show_progress(mode: ProgressMode, console: Console) -> Iterator[None]:
    """Shows the progress of every Tune run inside that has a ``Progress`` callback.

    Whatever happens inside, the terminal is left in order.
    """
    display = make_display(mode, console)
    token = _display.set(display)
    is_verbose = mode is ProgressMode.VERBOSE
    try:
        with environment_defaults({} if is_verbose else NO_TUNE_ERRORS):
            yield
    finally:
        _display.reset(token)
        display.stop()


class Progress(tune.Callback):
    """Follows a Tune run and has the present display show it.

    Args:
        stop: result keys, nested ones joined by "/", and the values to stop at.
    """

    def __init__(self, stop: Mapping[str, float]) -> None:
        self._stop = dict(stop)
        self._run = RunProgress(self._stop, 1)
        self._display = Quiet()

    def __reduce__(self) -> tuple[type, tuple[dict[str, float]]]:
        return type(self), (self._stop,)

    def setup(self, total_num_samples: int | None = None, **info: Any) -> None:
        """Starts the display before the first trial starts."""
        self._run = RunProgress(self._stop, total_num_samples or 1)
        self._display = _display.get() or Lines(Console())
        self._display.start(self._run)

    def on_trial_result(
        self,
        iteration: int,
        trials: list[Trial],
        trial: Trial,
        result: dict[str, Any],
        **info: Any,
    ) -> None:
        """Shows the result, and what is odd about it."""
        # First, as it keeps the trials in Tune's order.
        self._run.update_statuses(trials)
        warnings = self._run.add_result(trial, result)
        self._display.show_result(self._run, trial.trial_id)
        for warning in warnings:
            self._display.note(warning)

    def on_trial_error(
        self, iteration: int, trials: list[Trial], trial: Trial, **info: Any
    ) -> None:
        """Says which trial failed, and why."""
        self._display.note(self._run.failure(trial))

    def on_step_end(self, iteration: int, trials: list[Trial], **info: Any) -> None:
        """Renews statuses and the clock; Tune calls it about ten times a second."""
        self._display.refresh(is_news=self._run.update_statuses(trials))

    def on_experiment_end(self, trials: list[Trial], **info: Any) -> None:
        """Leaves the final state on the screen."""
        self._run.end()
        self._display.stop()
