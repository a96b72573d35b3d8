"""CPU and memory of processes, by what they do."""

import contextlib
import dataclasses
import os
import threading
from collections.abc import Iterable
from typing import Any

import psutil
from typing_extensions import Self

from rllib_impass.experiments.benchmark.measurement import Usage

# Our algorithms' learner, where it has no process of its own.
LEARNER_THREAD = "impass-learner"
# Adding up the pages of a large process takes 10 ms: seldom enough not to be felt.
MEMORY_INTERVAL_S = 5.0


@dataclasses.dataclass(frozen=True)
class Processes:
    """Who does what, by process id.

    Attributes:
        runners: they step environments.
        driver: the process that trains, which is this one; None if nobody trains.
        learners: processes of their own, or the driver's for a thread inside it; none
            if the driver itself learns.
    """

    runners: tuple[int, ...]
    driver: int | None = None
    learners: tuple[int, ...] = ()

    @property
    def all(self) -> set[int]:
        """Each once."""
        driver = () if self.driver is None else (self.driver,)
        return {*self.runners, *driver, *self.learners}


class UsageMeter:
    """Measures what processes use inside a ``with`` block.

    Args:
        processes: whom to follow.
        learner_thread: name of a thread of this process that learns.
    """

    def __init__(
        self, processes: Processes, learner_thread: str = LEARNER_THREAD
    ) -> None:
        self._processes = processes
        self._learner_thread = learner_thread
        self._handles = list(_existing(processes.all))
        self._peak_memory = 0
        self._usage: Usage | None = None
        self._is_over = threading.Event()
        self._watcher = threading.Thread(
            target=self._watch_memory, name="benchmark-memory", daemon=True
        )

    @property
    def usage(self) -> Usage:
        """What was used; once the block is over."""
        if self._usage is None:
            raise RuntimeError("the measured block is not over")
        return self._usage

    def __enter__(self) -> Self:
        self._watcher.start()
        self._before = self._read_cpu()
        return self

    def __exit__(self, *error: Any) -> None:
        after = self._read_cpu()
        self._is_over.set()
        self._watcher.join()
        # Of a process that ended meanwhile nothing is known.
        used = {key: after[key] - self._before[key] for key in after}
        who = self._processes
        thread_s = used[self._learner_thread]
        self._usage = Usage(
            runners_s=sum(used.get(pid, 0.0) for pid in who.runners),
            driver_s=None if who.driver is None else self._driver_s(used, thread_s),
            learner_s=self._learner_s(used, thread_s) if who.learners else None,
            peak_memory=self._peak_memory,
        )

    @property
    def _is_learner_here(self) -> bool:
        return self._processes.driver in self._processes.learners

    def _driver_s(self, used: dict[Any, float], thread_s: float) -> float:
        whole = used.get(self._processes.driver, 0.0)
        return whole - thread_s if self._is_learner_here else whole

    def _learner_s(self, used: dict[Any, float], thread_s: float) -> float:
        if self._is_learner_here:
            return thread_s
        return sum(used.get(pid, 0.0) for pid in self._processes.learners)

    def _read_cpu(self) -> dict[Any, float]:
        """CPU seconds so far, by process id, and by name for the learner thread."""
        read: dict[Any, float] = {
            self._learner_thread: thread_cpu_seconds(self._learner_thread)
        }
        for handle in self._handles:
            with contextlib.suppress(psutil.NoSuchProcess):
                times = handle.cpu_times()
                read[handle.pid] = times.user + times.system
        return read

    def _watch_memory(self) -> None:
        while True:
            # Asked first, so that the end is looked at, too.
            is_over = self._is_over.is_set()
            memory = sum(map(_memory, self._handles))
            self._peak_memory = max(self._peak_memory, memory)
            if is_over:
                return
            self._is_over.wait(MEMORY_INTERVAL_S)


def thread_cpu_seconds(name: str) -> float:
    """CPU seconds so far of this process's threads of a name."""
    ids = thread_ids(name)
    if not ids:
        return 0.0
    threads = psutil.Process().threads()
    return sum(t.user_time + t.system_time for t in threads if t.id in ids)


def thread_ids(name: str = LEARNER_THREAD) -> set[int]:
    """Which threads of this process have a name."""
    return {thread.native_id for thread in threading.enumerate() if thread.name == name}


def num_cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _existing(pids: Iterable[int]) -> Iterable[psutil.Process]:
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            yield psutil.Process(pid)


def _memory(handle: psutil.Process) -> int:
    """Bytes, with its part of what it shares: Ray's workers share their objects."""
    try:
        info = handle.memory_full_info()
        # Only Linux knows parts; elsewhere shared pages count for everyone.
        return getattr(info, "pss", info.rss)
    except psutil.NoSuchProcess:
        return 0
    except psutil.AccessDenied:
        return handle.memory_info().rss
