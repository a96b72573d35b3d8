"""What `rllib compare` and `rllib actors` do once their flags are read."""

import dataclasses
import logging
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ray
from ray import tune
from rich.console import Console

from rllib_impass.cli.errors import INTERRUPTED
from rllib_impass.cli.interrupt import CheckpointOnInterrupt, checkpoint_on_interrupt
from rllib_impass.cli.messages import say
from rllib_impass.cli.noise import silence
from rllib_impass.cli.progress import Progress, ProgressMode, show_progress
from rllib_impass.cli.report import show_report
from rllib_impass.experiments import launch
from rllib_impass.experiments.class_paths import import_modules
from rllib_impass.experiments.errors import UsageError
from rllib_impass.experiments.spec import check_name
from rllib_impass.experiments.study import (
    Study,
    is_same_study,
    resumed_tuner,
    write_study,
)
from rllib_impass.experiments.tracking import (
    WandbOptions,
    wandb_callbacks,
    where_it_went,
)
from rllib_impass.registry import register_all


@dataclasses.dataclass(frozen=True)
class Studying:
    """One call of a command that studies.

    Attributes:
        name: of the folder of results.
        storage: where that goes.
        modules: what to import first.
        num_concurrent: trials at a time; None to let the study decide.
        ray_options: arguments of ``RayOptions``.
        wandb: where to log to Weights & Biases, if asked for.
        verbosity: as that of ``Training``.
    """

    name: str
    storage: Path | None
    modules: tuple[str, ...]
    num_concurrent: int | None
    ray_options: dict[str, Any]
    wandb: WandbOptions | None
    verbosity: int

    def prepare(self, make_study: Callable[[], Study]) -> tuple[Study, Path]:
        """Checks everything, then starts Ray; returns what to run, and where."""
        if self.verbosity <= 0:
            silence()
            # It misses an interval in files that leave evaluation to the study.
            logger = logging.getLogger("ray.rllib.algorithms.algorithm_config")
            logger.setLevel(logging.ERROR)
        check_name(self.name)
        register_all()
        import_modules(self.modules)
        study = make_study()
        folder, is_new = self._folder(study)
        options = launch.RayOptions(
            **self.ray_options, show_logs=self.verbosity > 0, modules=self.modules
        )
        try:
            launch.start_ray(options, [study])
        except UsageError:
            if is_new:
                folder.rmdir()
            raise
        return study, folder

    def run(
        self,
        study: Study,
        folder: Path,
        console: Console,
        conclude: Callable[[Path], str | None] = lambda folder: None,
    ) -> int:
        """Runs what is not finished yet, and reports.

        Args:
            study: what to run.
            folder: of its results.
            console: to tell of it.
            conclude: makes one sentence of the results, before they are reported.

        Returns:
            The exit code.
        """
        for line in _describe(study):
            say(console, line)
        say(console, f"results: {folder}")
        try:
            tuner = self._tuner(study, folder, console)
            with (
                show_progress(ProgressMode.of(self.verbosity), console),
                checkpoint_on_interrupt(console) as interrupt,
            ):
                results = tuner.fit()
        finally:
            ray.shutdown()
        if self.wandb is not None:
            say(console, *where_it_went(folder, self.wandb))
        if interrupt.interrupted:
            say(console, "stopped; the same command goes on with it")
            return INTERRUPTED
        if results.errors:
            num = f"{len(results.errors)} of {len(results)}"
            say(console, f"{num} trials crashed; why: error.txt in their folders")
        conclusion = conclude(folder)
        show_report([folder], None, {}, console)
        if conclusion is not None:
            say(console, conclusion)
        return int(bool(results.errors))

    def _folder(self, study: Study) -> tuple[Path, bool]:
        """The folder of this very study, whether it is new or was interrupted."""
        storage = Path(self.storage or launch.DEFAULT_STORAGE).expanduser().absolute()
        for folder in launch.taken_folders(storage, self.name):
            if launch.holds_a_run(folder) and is_same_study(folder, study, self.wandb):
                return folder, False
        return launch.claim_folder(storage, self.name), True

    def _tuner(self, study: Study, folder: Path, console: Console) -> tune.Tuner:
        write_study(folder, study, sys.argv, self.wandb)
        if launch.holds_a_run(folder):
            say(console, "going on with what is there; finished trials stay")
            return resumed_tuner(folder)
        callbacks = [
            Progress({study.budget.key: study.budget.amount}),
            CheckpointOnInterrupt(),
            *wandb_callbacks(self.wandb),
        ]
        return study.tuner(
            folder, callbacks=callbacks, num_concurrent=self.num_concurrent
        )


def _describe(study: Study) -> list[str]:
    """Who takes part, with which settings, and for how long."""
    envs: dict[str, list[str]] = {}
    for contender in study.contenders:
        words = envs.setdefault(contender.experiment.env, [])
        words.append(f"{contender.label} ({contender.origin})")
    amount = f"{study.budget.amount:,.0f}"
    unit = "s of training" if study.budget.is_time else "env steps"
    seeds = f"{len(study.seeds)} seed{'s' if len(study.seeds) > 1 else ''}"
    return [
        *(f"{env}: {', '.join(words)}" for env, words in envs.items()),
        f"{seeds}, {amount} {unit} each, {study.num_evaluations} evaluations",
        *_notes(study),
    ]


def _notes(study: Study) -> list[str]:
    """What was translated from former names, once each."""
    notes = Counter(n for c in study.contenders for n in c.experiment.notes)
    return [f"note: {note}" for note in notes]
