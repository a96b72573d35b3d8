"""What all benchmarks share: a Ray of their own, and how far they are."""

import contextlib
import datetime
import os
import platform
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ray

from rllib_impass.experiments.benchmark.process_usage import num_cores
from rllib_impass.experiments.errors import UsageError
from rllib_impass.experiments.launch import RayOptions, start_ray
from rllib_impass.experiments.versions import versions

# Called with what is going on and how much is done, from 0 to 1.
OnProgress = Callable[[str, float], None]

# Below, a slice holds too few batches to count.
MIN_SLICE_S = 1.0


class Progress:
    """Adds up measured time.

    Args:
        total_s: how long all of it will take, about.
        on_progress: whom to tell.
    """

    def __init__(self, total_s: float, on_progress: OnProgress | None) -> None:
        self._total_s = total_s
        self._done_s = 0.0
        self._label = ""
        self._on_progress = on_progress

    def begin(self, label: str) -> None:
        """Something else begins."""
        self._label = label
        self.advance(0.0)

    def advance(self, seconds: float) -> None:
        """So much more of it is done."""
        self._done_s += seconds
        if self._on_progress is not None:
            self._on_progress(self._label, min(1.0, self._done_s / self._total_s))


@contextlib.contextmanager
def own_ray(num_cpus: int, modules: Sequence[str] = ()) -> Iterator[None]:
    """Ray on this machine, for nobody else, while the block runs.

    Args:
        num_cpus: what all contenders together ask for.
        modules: what every worker imports first.
    """
    refuse_other_ray()
    # A small machine shares its cores; only one contender works at a time.
    start_ray(RayOptions(num_cpus=max(num_cpus, 1), modules=tuple(modules)))
    try:
        yield
    finally:
        ray.shutdown()


def refuse_other_ray() -> None:
    """Raises UsageError if Ray is there already, here or on a cluster."""
    if os.environ.get("RAY_ADDRESS"):
        raise UsageError("a benchmark measures one machine alone: unset RAY_ADDRESS")
    if ray.is_initialized():
        raise UsageError("a benchmark starts its own Ray: call ray.shutdown() first")


def check_seconds(seconds: float, rounds: int = 1) -> None:
    """Raises UsageError for times that would measure nothing."""
    if rounds < 1:
        raise UsageError(f"rounds must be at least 1, got {rounds}")
    if not seconds / rounds >= MIN_SLICE_S:
        turns = f" for {rounds} rounds" if rounds > 1 else ""
        raise UsageError(
            f"seconds must be at least {MIN_SLICE_S * rounds:g}{turns}, got {seconds:g}"
        )


def conditions() -> dict[str, Any]:
    """What a reader needs to compare figures: when, on what, with which versions."""
    now = datetime.datetime.now().astimezone()
    return {
        "date": now.isoformat(timespec="seconds"),
        "cores": num_cores(),
        "machine": platform.platform(),
        "versions": {"python": platform.python_version(), **versions()},
    }
