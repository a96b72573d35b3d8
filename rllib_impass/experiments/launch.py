"""Experiments on Ray: start it, run them, resume them."""

import dataclasses
import importlib
import itertools
import logging
import math
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import ray
from ray import tune

from rllib_impass.experiments.errors import UsageError, one_line
from rllib_impass.experiments.experiment import Experiment
from rllib_impass.experiments.schedulers import make_scheduler, wait_for_returns

DEFAULT_STORAGE = Path("~/ray_results")


@dataclasses.dataclass(frozen=True)
class RayOptions:
    """How to start or find Ray.

    Attributes:
        address: a running cluster's address; None for what RAY_ADDRESS says, or else to
            start Ray on this machine.
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


class NeedsCpus(Protocol):
    """An experiment, or a study of several."""

    def num_cpus(self) -> float:
        """What its largest trial asks Ray for."""


def start_ray(options: RayOptions, experiments: Sequence[NeedsCpus] = ()) -> None:
    """Starts Ray with room for the largest trial, or joins a cluster."""
    # Tune's own tables ignore `verbose=0` unless its former output is chosen.
    os.environ["RAY_AIR_NEW_OUTPUT"] = "0"
    wait_for_returns()
    here = {
        "num_cpus": options.num_cpus,
        "num_gpus": options.num_gpus,
        "object_store_memory": options.object_store_memory,
    }
    address = options.address or os.environ.get("RAY_ADDRESS")
    if address is None:
        # A small machine shares its cores rather than wait for more of them.
        needed = math.ceil(max((e.num_cpus() for e in experiments), default=0))
        here["num_cpus"] = options.num_cpus or max(os.cpu_count() or 1, needed)
        here["include_dashboard"] = False
        # Ray's record of every task, for the dashboard: it grows by 8 MB a minute.
        os.environ.setdefault("RAY_task_events_report_interval_ms", "0")
    elif any(value is not None for value in here.values()):
        raise UsageError(
            f"the cluster at {address} has its own resources; leave out "
            "--ray-num-cpus, --ray-num-gpus and --ray-object-store-memory"
        )
    try:
        ray.init(
            # None would join what `ray start` left on this machine, alive or not.
            address=address or "local",
            logging_level=logging.INFO if options.show_logs else logging.ERROR,
            log_to_driver=options.show_logs,
            runtime_env=_runtime_env(options.modules),
            **here,
        )
    except (ConnectionError, ValueError) as error:
        raise UsageError(f"Ray does not start: {error}") from None


def claim_folder(storage: Path, name: str) -> Path:
    """Makes the folder of a new run: never one that is there already."""
    for folder in _folders(storage, name):
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise UsageError(f"results cannot go to {storage}: {error}") from None
        return folder


def newest_run(storage: Path, name: str) -> Path | None:
    """The folder of the last run of this name, if there is one."""
    runs = list(filter(holds_a_run, taken_folders(storage, name)))
    return runs[-1] if runs else None


def taken_folders(storage: Path, name: str) -> Iterator[Path]:
    """The folders that runs of this name have claimed so far."""
    return itertools.takewhile(Path.exists, _folders(storage, name))


def _folders(storage: Path, name: str) -> Iterator[Path]:
    yield storage / name
    for number in itertools.count(2):
        yield storage / f"{name}-{number}"


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
            scheduler=make_scheduler(experiment),
        ),
        run_config=tune.RunConfig(
            name=folder.name,
            storage_path=str(folder.parent),
            stop=experiment.stop,
            checkpoint_config=experiment.tune_checkpoints(),
            failure_config=tune.FailureConfig(max_failures=experiment.max_failures),
            callbacks=callbacks,
            verbose=0,
        ),
    )


def resumed_tuner(experiment: Experiment, folder: Path) -> tune.Tuner:
    """The run in a folder, from the last checkpoint of each unfinished trial."""
    try:
        return tune.Tuner.restore(
            str(folder),
            experiment.algorithm_class,
            resume_unfinished=True,
            resume_errored=True,
        )
    except Exception as error:
        # Whatever a damaged pickle raises.
        raise UsageError(f"{folder} cannot be resumed: {one_line(error)}") from None


def _runtime_env(modules: tuple[str, ...]) -> dict[str, Any] | None:
    """Lets every worker find, and import first, what `--import` names."""
    if not modules:
        return None
    return {
        "worker_process_setup_hook": _importer(modules),
        "env_vars": {"PYTHONPATH": os.environ["PYTHONPATH"]},
    }


def _importer(modules: tuple[str, ...]) -> Callable[[], None]:
    """What every worker runs first; a closure, because Ray asks for its name."""

    def import_modules() -> None:
        for module in modules:
            importlib.import_module(module)

    return import_modules
