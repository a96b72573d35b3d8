"""What `rllib train` does once its flags are read: say where, train, say what next."""

import dataclasses
import shlex
import sys
import warnings
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
from rllib_impass.experiments.spec import Experiment, load_experiments, make_experiment


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

    def run(self) -> int:
        """Trains every experiment, one after the other; returns the exit code."""
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
        exit_code = 0
        try:
            for experiment, folder in zip(experiments, folders, strict=True):
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
        if not self.is_resumed:
            return launch.new_folder(storage, name)
        # A name that was asked for is that very run.
        folder = storage / name if self.name else launch.newest_folder(storage, name)
        refuse_changes(folder, experiment)
        return folder

    def _train(self, experiment: Experiment, folder: Path) -> int:
        console = Console()
        console.print(f"{experiment.run} on {_names(experiment.env)}")
        console.print(f"results: {folder}", soft_wrap=True)
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
            console.print(
                f"stopped; to go on:\n  {self._resume_command(folder)}", soft_wrap=True
            )
            return INTERRUPTED
        return self._report(results, folder, console)

    def _progress_mode(self) -> ProgressMode:
        if self.verbosity > 0:
            return ProgressMode.VERBOSE
        return ProgressMode.QUIET if self.verbosity < 0 else ProgressMode.NORMAL

    def _report(self, results: tune.ResultGrid, folder: Path, console: Console) -> int:
        lines = [
            f"the whole error: {result.path}/error.txt"
            for result in results
            if result.error is not None
        ]
        if any(result.checkpoint is not None for result in results):
            best = find_checkpoint(folder, "best")
            last = find_checkpoint(folder, "last")
            lines += [
                f"best checkpoint: {best.path}",
                f"  {best.score_name} {best.score:,.1f}",
                f"last checkpoint: {last.path}",
                f"to see what it can do:\n  rllib evaluate {shlex.quote(str(folder))}",
            ]
        if results.errors:
            lines.append(f"to go on:\n  {self._resume_command(folder)}")
        for line in lines:
            console.print(line, soft_wrap=True, highlight=False)
        return int(bool(results.errors))

    def _resume_command(self, folder: Path) -> str:
        """The command that was given, made to go on with this very folder."""
        words = ["rllib", *(word for word in sys.argv[1:] if word != "--resume")]
        if self.name != folder.name:
            words += ["--experiment-name", folder.name]
        return shlex.join([*words, "--resume"])


def _names(env: Any) -> str:
    """An env, or those of a grid, as people write them."""
    if isinstance(env, dict):
        return ", ".join(map(_names, env["grid_search"]))
    return env if isinstance(env, str) else getattr(env, "__name__", str(env))
