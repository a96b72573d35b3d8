"""Ctrl-C that leaves a run to be continued.

Tune stops at once when it is interrupted, and what a trial has learned since its last
checkpoint is lost. Here every running trial saves one with its next result, and only
then is Tune interrupted: by SIGUSR1, to which it listens for that purpose.
"""

import contextlib
import logging
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Any

from ray import tune
from ray.tune.experiment import Trial
from ray.tune.result import SHOULD_CHECKPOINT
from rich.console import Console

from rllib_impass.cli.environment import environment_defaults

SIGNALS = (signal.SIGINT, signal.SIGTERM)
FIRST_MESSAGE = "stopping after a checkpoint (Ctrl-C again: at once)"
AT_ONCE_MESSAGE = "stopping at once"

# Tune writes which checkpoints there are every ten seconds or less often, so that a
# run whose process is killed would continue from an older one. Writing takes 8 ms.
EXPERIMENT_STATE_PERIOD_S = "1"
ENVIRONMENT = {
    "TUNE_DISABLE_SIGINT_HANDLER": "1",
    "TUNE_GLOBAL_CHECKPOINT_S": EXPERIMENT_STATE_PERIOD_S,
}
# What Tune logs about an interrupt; it names Python calls instead of our command.
TUNE_MESSAGES = (
    "Stop signal received",
    "Experiment has been interrupted",
    "Trials did not complete",
)


class Interrupt:
    """What the user has asked for so far.

    Attributes:
        console: for messages.
        num_requests: how many signals have arrived.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self.num_requests = 0

    @property
    def interrupted(self) -> bool:
        """Whether the run was asked to stop."""
        return self.num_requests > 0

    def handle(self, signum: int, frame: FrameType | None) -> None:
        """The signal handler; it only counts, as it may run amid any statement."""
        self.num_requests += 1
        if self.num_requests > 2:
            raise KeyboardInterrupt


# Signals belong to the process, and Tune restores its callbacks from a pickle of the
# first start: a callback can find what concerns this process only here.
_interrupts: list[Interrupt] = []


@contextlib.contextmanager
def checkpoint_on_interrupt(console: Console) -> Iterator[Interrupt]:
    """Handles SIGINT and SIGTERM for the Tune runs inside, which need the callback.

    Enter it after ``ray.init``, which sets a handler for SIGTERM, from the main thread.
    """
    interrupt = Interrupt(console)
    logger = logging.getLogger("ray.tune.tune")
    handlers = {s: signal.signal(s, interrupt.handle) for s in SIGNALS}
    usr1 = signal.getsignal(signal.SIGUSR1)
    logger.addFilter(_is_no_interrupt_message)
    _interrupts.append(interrupt)
    try:
        with environment_defaults(ENVIRONMENT):
            yield interrupt
    finally:
        _interrupts.remove(interrupt)
        logger.removeFilter(_is_no_interrupt_message)
        for signum, handler in {**handlers, signal.SIGUSR1: usr1}.items():
            signal.signal(signum, handler)


def _is_no_interrupt_message(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith(TUNE_MESSAGES)


class CheckpointOnInterrupt(tune.Callback):
    """Saves what is running, then interrupts Tune; idle without a context around it."""

    def __init__(self) -> None:
        self._awaited: set[str] | None = None

    def on_trial_result(
        self,
        iteration: int,
        trials: list[Trial],
        trial: Trial,
        result: dict[str, Any],
        **info: Any,
    ) -> None:
        """Has the trial save a checkpoint: Tune reads this key after its callbacks."""
        if self._is_awaited(trial):
            result[SHOULD_CHECKPOINT] = True

    def on_checkpoint(
        self,
        iteration: int,
        trials: list[Trial],
        trial: Trial,
        checkpoint: tune.Checkpoint,
        **info: Any,
    ) -> None:
        """Notes that the trial has saved."""
        if self._is_awaited(trial):
            self._awaited.discard(trial.trial_id)

    def on_step_end(self, iteration: int, trials: list[Trial], **info: Any) -> None:
        """Interrupts Tune once no running trial has anything to save."""
        interrupt = _interrupts[-1] if _interrupts else None
        if interrupt is None or not interrupt.interrupted:
            return
        running = {t.trial_id for t in trials if t.status == Trial.RUNNING}
        if self._awaited is None:
            self._awaited = running
            interrupt.console.print(FIRST_MESSAGE if running else AT_ONCE_MESSAGE)
        elif interrupt.num_requests > 1:
            interrupt.console.print(AT_ONCE_MESSAGE)
        if interrupt.num_requests > 1 or not running & self._awaited:
            signal.raise_signal(signal.SIGUSR1)

    def _is_awaited(self, trial: Trial) -> bool:
        return self._awaited is not None and trial.trial_id in self._awaited
