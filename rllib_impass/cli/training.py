"""What `rllib train` does once its flags are read: say where, train, say what next."""

import dataclasses
import shlex
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ray
from ray import tune
from rich.console import Console

import rllib_impass.registry  # noqa: F401  (makes the algorithms known to Tune)
from rllib_impass.cli.errors import INTERRUPTED
from rllib_impass.cli.interrupt import CheckpointOnInterrupt, checkpoint_on_interrupt
from rllib_impass.cli.progress import Progress, ProgressMode, show_progress
from rllib_impass.experiments import launch
from rllib_impass.experiments.class_paths import import_modules
from rllib_impass.experiments.errors import UsageError
from rllib_impass.experiments.run_record import refuse_changes, write_record
from rllib_impass.experiments.runs import find_checkpoint
from rllib_impass.experiments.spec import (
    Experiment,
    check_name,
    load_experiments,
    make_experiment,
)


@dataclasses.dataclass(frozen=True)
class Training:
    """One call of `rllib train`.

    Attributes:
        file: the experiment file, if one was named.
        overrides: what flags say, in the schema of the file.
        modules: what to import first.
        name: the folder that was asked for.
        storage: where folders go, if a flag says so.
        is_resumed: whether to go on with the last run.
        ray_options: arguments of ``RayOptions``.
        verbosity: -1 is quiet, 0 normal, 1 shows the workers' logs, 2 is for debugging.
    """

    file: Path | None
    overrides: dict[str, Any]
    modules: tuple[str, ...]
    name: str | None
    storage: Path | None
    is_resumed: bool
    ray_options: dict[str, Any]
    verbosity: int

    def prepare(self) -> list[tuple[Experiment, Path]]:
        """Checks everything, then starts Ray; returns experiments and their folders."""
        if self.verbosity <= 0:
            # It doubts observations in float64, which every MuJoCo env returns.
            warnings.filterwarnings("ignore", module="gymnasium")
        import_modules(self.modules)
        experiments = self._experiments()
        folders = [self._folder(experiment) for experiment in experiments]
        if self.is_resumed and not any(map(launch.holds_a_run, folders)):
            raise UsageError(f"--resume: there is no run in {folders[0]}")
        for experiment in experiments:
            if experiment.notes:
                notes = "; ".join(experiment.notes)
                print(f"rllib: {experiment.name}: {notes}", file=sys.stderr)
        options = launch.RayOptions(
            **self.ray_options, show_logs=self.verbosity > 0, modules=self.modules
        )
        launch.start_ray(options, experiments)
        return list(zip(experiments, folders, strict=True))

    def run(self, plan: list[tuple[Experiment, Path]]) -> int:
        """Trains one experiment after the other; returns the exit code."""
        exit_code = 0
        try:
            for experiment, folder in plan:
                exit_code = max(exit_code, self._train(experiment, folder))
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
            name = self.name or "-".join(
                str(overrides.get(key, "")).replace("/", "-") for key in ("run", "env")
            )
            return [make_experiment(name, {}, overrides, self.modules)]
        experiments = load_experiments(self.file, overrides, self.modules)
        if self.name is not None and len(experiments) > 1:
            raise UsageError(
                f"--experiment-name {self.name}: the file has {len(experiments)} "
                "experiments, which keep their own names"
            )
        return experiments

    def _folder(self, experiment: Experiment) -> Path:
        storage = self.storage or experiment.storage_path or launch.DEFAULT_STORAGE
        storage = Path(storage).expanduser().absolute()
        name = self.name or experiment.name
        check_name(name)
        if not self.is_resumed:
            return launch.new_folder(storage, name)
        # A name that was asked for is that very run.
        folder = storage / name if self.name else launch.newest_folder(storage, name)
        refuse_changes(folder, experiment)
        return folder

    def _train(self, experiment: Experiment, folder: Path) -> int:
        console = Console()
        _say(console, f"{experiment.run} on {_names(experiment.env)}")
        for backend in sorted(experiment.env_backends()):
            _say(console, f"environments: {backend}")
        _say(console, f"results: {folder}")
        if launch.holds_a_run(folder):
            tuner = launch.resumed_tuner(experiment, folder)
        else:
            callbacks = [Progress(experiment.stop), CheckpointOnInterrupt()]
            tuner = launch.new_tuner(experiment, folder, callbacks)
        write_record(folder, experiment, sys.argv)
        with (
            show_progress(self._progress_mode(), console),
            checkpoint_on_interrupt(console) as interrupt,
        ):
            results = tuner.fit()
        if interrupt.interrupted:
            _say(console, f"stopped; to go on:\n  {self._resume_command(folder)}")
            return INTERRUPTED
        _say(console, *_summary(results, folder))
        if results.errors:
            _say(console, f"to go on:\n  {self._resume_command(folder)}")
        return int(bool(results.errors))

    def _progress_mode(self) -> ProgressMode:
        if self.verbosity > 0:
            return ProgressMode.VERBOSE
        return ProgressMode.QUIET if self.verbosity < 0 else ProgressMode.NORMAL

    def _resume_command(self, folder: Path) -> str:
        """The command that was given, made to go on with this very folder."""
        words = ["rllib", *(word for word in sys.argv[1:] if word != "--resume")]
        if self.name not in (None, folder.name):
            words += ["--experiment-name", folder.name]
        return shlex.join([*words, "--resume"])


def _say(console: Console, *lines: str) -> None:
    """Prints lines as they are: paths may be long, and have brackets in them."""
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False, markup=False)


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


def _names(env: Any) -> str:
    """An env, or those of a grid, as people write them."""
    if isinstance(env, dict):
        return ", ".join(map(_names, env["grid_search"]))
    return env if isinstance(env, str) else getattr(env, "__name__", str(env))
