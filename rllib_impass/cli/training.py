"""What `rllib train` does once its flags are read: say where, train, say what next."""

import dataclasses
import re
import shlex
import sys
from collections.abc import Iterator
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
from rllib_impass.experiments import launch
from rllib_impass.experiments.class_paths import import_modules
from rllib_impass.experiments.errors import UsageError
from rllib_impass.experiments.experiment import Experiment
from rllib_impass.experiments.run_record import refuse_changes, write_record
from rllib_impass.experiments.runs import find_checkpoint
from rllib_impass.experiments.spec import (
    check_name,
    load_experiments,
    make_experiment,
)
from rllib_impass.experiments.tracking import (
    WandbOptions,
    wandb_callbacks,
    where_it_went,
)
from rllib_impass.registry import register_all


@dataclasses.dataclass(frozen=True)
class Job:
    """An experiment and the folder that is its own, or was its own before."""

    experiment: Experiment
    folder: Path
    is_resumed: bool


@dataclasses.dataclass(frozen=True)
class Training:
    """One call of `rllib train`.

    Attributes:
        file: the experiment file, if one was named.
        overrides: what flags say, in the schema of the file.
        modules: what to import first.
        name: the folder that was asked for.
        storage: where folders go, if a flag says so.
        restore: a checkpoint to start from.
        is_resumed: whether to go on with the last run.
        ray_options: arguments of ``RayOptions``.
        wandb: where to log to Weights & Biases, if asked for.
        verbosity: -1 is quiet, 0 normal, 1 shows the workers' logs, 2 is for debugging.
    """

    file: Path | None
    overrides: dict[str, Any]
    modules: tuple[str, ...]
    name: str | None
    storage: Path | None
    restore: Path | None
    is_resumed: bool
    ray_options: dict[str, Any]
    wandb: WandbOptions | None
    verbosity: int

    def prepare(self) -> list[Job]:
        """Checks everything, then starts Ray; returns what to train."""
        if self.verbosity <= 0:
            silence()
        register_all()
        import_modules(self.modules)
        experiments = self._experiments()
        for experiment in experiments:
            if experiment.notes:
                notes = "; ".join(experiment.notes)
                print(f"rllib: {experiment.name}: {notes}", file=sys.stderr)
        jobs = self._jobs(experiments)
        options = launch.RayOptions(
            **self.ray_options, show_logs=self.verbosity > 0, modules=self.modules
        )
        try:
            launch.start_ray(options, experiments)
        except UsageError:
            for job in jobs:
                if not job.is_resumed:
                    job.folder.rmdir()
            raise
        return jobs

    def run(self, jobs: list[Job]) -> int:
        """Trains one experiment after the other; returns the exit code."""
        exit_code = 0
        try:
            for job in jobs:
                resume = self._resume_command(job.folder if len(jobs) == 1 else None)
                exit_code = max(exit_code, self._train(job, resume))
                if exit_code == INTERRUPTED:
                    break
        finally:
            ray.shutdown()
        return exit_code

    def _experiments(self) -> list[Experiment]:
        overrides = dict(self.overrides)
        if self.verbosity > 1:
            debugging = {"log_level": "DEBUG"}
            overrides["config"] = debugging | overrides.get("config", {})
        if self.file is None:
            words = (str(overrides.get(key, "")) for key in ("run", "env"))
            name = self.name or re.sub(r"[^\w.-]", "-", "-".join(words))
            return [make_experiment(name, {}, overrides, self.modules, self.restore)]
        experiments = load_experiments(self.file, overrides, self.modules, self.restore)
        if self.name is not None and len(experiments) > 1:
            raise UsageError(
                f"--experiment-name {self.name}: the file has {len(experiments)} "
                "experiments, which keep their own names"
            )
        return experiments

    def _jobs(self, experiments: list[Experiment]) -> list[Job]:
        found = {e.name: self._run_to_resume(e) for e in experiments}
        if self.is_resumed and not any(found.values()):
            storage = self._storage(experiments[0])
            name = self.name or experiments[0].name
            raise UsageError(f"--resume: there is no run {name!r} in {storage}")
        for experiment in experiments:
            if (folder := found[experiment.name]) is not None:
                refuse_changes(folder, experiment, self.wandb)
        return [
            Job(
                experiment,
                found[experiment.name] or self._new_folder(experiment),
                is_resumed=found[experiment.name] is not None,
            )
            for experiment in experiments
        ]

    def _new_folder(self, experiment: Experiment) -> Path:
        name = self.name or experiment.name
        return launch.claim_folder(self._storage(experiment), name)

    def _run_to_resume(self, experiment: Experiment) -> Path | None:
        if self.name is not None:
            check_name(self.name)
        if not self.is_resumed:
            return None
        storage = self._storage(experiment)
        if self.name is None:
            return launch.newest_run(storage, experiment.name)
        # A name that was asked for is that very run.
        folder = storage / self.name
        return folder if launch.holds_a_run(folder) else None

    def _storage(self, experiment: Experiment) -> Path:
        storage = self.storage or experiment.storage_path or launch.DEFAULT_STORAGE
        return Path(storage).expanduser().absolute()

    def _train(self, job: Job, resume_command: str) -> int:
        console = Console()
        experiment, folder = job.experiment, job.folder
        say(console, f"{experiment.run} on {_env_names(experiment)}")
        for backend in sorted(experiment.env_backends()):
            say(console, f"environments: {backend}")
        say(console, f"results: {folder}")
        if job.is_resumed:
            tuner = launch.resumed_tuner(experiment, folder)
        else:
            callbacks = [Progress(experiment.stop), CheckpointOnInterrupt()]
            callbacks += wandb_callbacks(self.wandb)
            tuner = launch.new_tuner(experiment, folder, callbacks)
        write_record(folder, experiment, sys.argv, self.wandb)
        with (
            show_progress(ProgressMode.of(self.verbosity), console),
            checkpoint_on_interrupt(console) as interrupt,
        ):
            results = tuner.fit()
        if self.wandb is not None:
            say(console, *where_it_went(folder, self.wandb))
        if interrupt.interrupted:
            say(console, f"stopped; to go on:\n  {resume_command}")
            return INTERRUPTED
        say(console, *_summary(results, folder))
        if results.errors:
            say(console, f"to go on:\n  {resume_command}")
        return int(bool(results.errors))

    def _resume_command(self, folder: Path | None) -> str:
        """The command that was given, made to go on; with this very folder, if any."""
        words = ["rllib", *(word for word in sys.argv[1:] if word != "--resume")]
        if folder is not None and folder.name != self.name:
            words += ["--experiment-name", folder.name]
        return shlex.join([*words, "--resume"])


def _summary(results: tune.ResultGrid, folder: Path) -> Iterator[str]:
    """What a person wants to know once a run is over."""
    for result in results:
        if result.error is not None:
            yield f"the whole error: {result.path}/error.txt"
    if any(result.checkpoint is not None for result in results):
        best, last = find_checkpoint(folder, "best"), find_checkpoint(folder, "last")
        yield f"best checkpoint: {best.path}"
        if best.score is not None:
            yield f"  {best.score_name} {best.score:,.1f}"
        yield f"last checkpoint: {last.path}"
        yield f"to see what it can do:\n  rllib evaluate {shlex.quote(str(folder))}"


def _env_names(experiment: Experiment) -> str:
    """Its env, or those of a grid, as people write them."""
    envs = dict.fromkeys(config.env for config in experiment.trial_configs())
    return ", ".join(getattr(env, "__name__", str(env)) for env in envs)
