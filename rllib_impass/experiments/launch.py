"""Experiments on Ray: start it, run them, resume them."""

import dataclasses
import importlib
import logging
import math
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import ray
from ray import tune
from ray.tune.schedulers import TrialScheduler, create_scheduler

from rllib_impass.experiments.errors import UsageError
from rllib_impass.experiments.result_keys import RETURN
from rllib_impass.experiments.spec import Experiment

DEFAULT_STORAGE = Path("~/ray_results")


@dataclasses.dataclass(frozen=True)
class RayOptions:
    """How to start or find Ray.

    Attributes:
        address: a running cluster's address; None starts Ray on this machine.
        num_cpus: logical CPUs; None for as many as the machine has or a trial needs.
        num_gpus: GPUs; None to let Ray count.
        object_store_memory: bytes of shared memory; None to let Ray choose.
        show_logs: whether what the workers print is shown.
        modules: what every worker imports first, so that it knows custom envs.
    """

    address: str | None = None
    num_cpus: int | None = None
    num_gpus: int | None = None
    object_store_memory: int | None = None
    show_logs: bool = False
    modules: tuple[str, ...] = ()


def start_ray(options: RayOptions, experiments: Sequence[Experiment]) -> None:
    """Starts Ray with room for the largest trial, or joins a cluster."""
    # Tune's own tables ignore `verbose=0` unless its former output is chosen.
    os.environ["RAY_AIR_NEW_OUTPUT"] = "0"
    local = {}
    if options.address is None:
        # A small machine shares its cores rather than wait for more of them.
        needed = max(experiment.num_cpus() for experiment in experiments)
        local = {
            "num_cpus": options.num_cpus or max(os.cpu_count() or 1, math.ceil(needed)),
            "num_gpus": options.num_gpus,
            "object_store_memory": options.object_store_memory,
            "include_dashboard": False,
        }
    hook = {"worker_process_setup_hook": _importer(options.modules)}
    try:
        ray.init(
            address=options.address,
            logging_level=logging.INFO if options.show_logs else logging.ERROR,
            log_to_driver=options.show_logs,
            runtime_env=hook if options.modules else None,
            **local,
        )
    except (ConnectionError, ValueError) as error:
        raise UsageError(f"Ray does not start: {error}") from None


def new_folder(storage: Path, name: str) -> Path:
    """The folder of a new run: never one that holds a run already."""
    try:
        storage.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=storage):
            pass
    except OSError as error:
        raise UsageError(f"{storage}: results cannot go there: {error}") from None
    folder, number = storage / name, 1
    while folder.exists():
        number += 1
        folder = storage / f"{name}-{number}"
    return folder


def newest_folder(storage: Path, name: str) -> Path:
    """The folder that the last run of this name is in, or the next would be."""
    folder, number = storage / name, 2
    while (following := storage / f"{name}-{number}").exists():
        folder, number = following, number + 1
    return folder


def holds_a_run(folder: Path) -> bool:
    """Whether there is something to resume in a folder."""
    return tune.Tuner.can_restore(folder)


def new_tuner(
    experiment: Experiment, folder: Path, callbacks: list[tune.Callback]
) -> tune.Tuner:
    """The experiment as a Tune run."""
    return tune.Tuner(
        experiment.algorithm_class,
        param_space=experiment.algorithm_config(),
        tune_config=tune.TuneConfig(
            num_samples=experiment.num_samples,
            time_budget_s=experiment.time_budget_s,
            scheduler=_scheduler(experiment),
        ),
        run_config=tune.RunConfig(
            name=folder.name,
            storage_path=str(folder.parent),
            stop=experiment.stop,
            checkpoint_config=tune.CheckpointConfig(**experiment.checkpoint_config),
            failure_config=tune.FailureConfig(max_failures=experiment.max_failures),
            callbacks=callbacks,
            verbose=0,
        ),
    )


def _scheduler(experiment: Experiment) -> TrialScheduler:
    arguments = dict(experiment.scheduler_config)
    if experiment.scheduler != "fifo":
        # Not through TuneConfig: Tune would fail a trial whose first result has no
        # finished episode, and thus no return.
        arguments = {"metric": RETURN, "mode": "max"} | arguments
    return create_scheduler(experiment.scheduler, **arguments)


def resumed_tuner(experiment: Experiment, folder: Path) -> tune.Tuner:
    """The run in a folder, from the last checkpoint of each unfinished trial."""
    return tune.Tuner.restore(
        str(folder),
        experiment.algorithm_class,
        resume_unfinished=True,
        resume_errored=True,
    )


def _importer(modules: tuple[str, ...]) -> Callable[[], None]:
    """What every worker runs first; a closure, because Ray asks for its name."""

    def import_modules() -> None:
        for module in modules:
            importlib.import_module(module)

    return import_modules
