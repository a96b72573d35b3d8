"""What `rllib train` does once its arguments are parsed."""

import logging
import math
import os
import sys
from pathlib import Path

import ray
from ray import tune
from rich.console import Console

import rllib_impass  # noqa: F401  (registers the algorithms with Tune)
from rllib_impass.cli.interrupt import CheckpointOnInterrupt, checkpoint_on_interrupt
from rllib_impass.cli.progress import Progress, ProgressMode, show_progress
from rllib_impass.experiments.spec import Experiment, load_experiments


def train(file: Path, storage_path: Path, console: Console) -> int:
    """Runs every experiment of a file; returns the exit code."""
    try:
        experiments = load_experiments(file)
        # A small machine shares its cores rather than wait for more of them.
        num_cpus = max(os.cpu_count() or 1, *(e.num_cpus() for e in experiments))
    except ValueError as error:
        print(f"rllib: {str(error).splitlines()[0]}", file=sys.stderr)
        return 2
    # Tune's own tables ignore `verbose=0` unless its former output is chosen.
    os.environ["RAY_AIR_NEW_OUTPUT"] = "0"
    ray.init(
        num_cpus=math.ceil(num_cpus),
        include_dashboard=False,
        logging_level=logging.ERROR,
        log_to_driver=False,
    )
    try:
        return max(_run(e, storage_path, console) for e in experiments)
    finally:
        ray.shutdown()


def _run(experiment: Experiment, storage_path: Path, console: Console) -> int:
    folder = storage_path / experiment.name
    console.print(f"{experiment.run} on {experiment.env}; results in {folder}")
    callbacks = [Progress(experiment.stop), CheckpointOnInterrupt()]
    tuner = experiment.tuner(str(storage_path), callbacks)
    with (
        show_progress(ProgressMode.NORMAL, console),
        checkpoint_on_interrupt(console) as interrupt,
    ):
        results = tuner.fit()
    if interrupt.interrupted:
        console.print(f"interrupted; the run can be continued from {folder}")
        return 130
    for result in results:
        _report(result, console)
    return int(bool(results.errors))


def _report(result: tune.Result, console: Console) -> None:
    if result.error is not None:
        console.print(f"failed: {str(result.error).strip().splitlines()[-1]}")
        console.print(f"the whole error is in {result.path}/error.txt", soft_wrap=True)
        return
    score = result.metrics.get("env_runners", {}).get("episode_return_mean")
    if score is not None:
        console.print(f"return while exploring, last iteration: {score:,.1f}")
    if result.checkpoint is not None:
        console.print(f"checkpoint: {result.checkpoint.path}", soft_wrap=True)
