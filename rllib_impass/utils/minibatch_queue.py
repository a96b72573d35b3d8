"""The paper's sample queue: a bounded FIFO that blocks instead of dropping."""

import threading
import time
from collections import deque
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class QueueClosed(Exception):
    """The queue was closed, so this ``put`` or ``get`` can never succeed."""


class QueueStats(NamedTuple):
    """A consistent snapshot of a queue's counters; all since its creation."""

    num_put: int
    num_got: int
    depth: int
    peak_depth: int
    put_wait_s: float
    get_wait_s: float


class MinibatchQueue(Generic[T]):
    """First in, first out, at most ``maxsize`` items, each handed out exactly once.

    A full queue makes producers wait: that wait is the back-pressure which keeps actors
    from running ahead of the learner. Closing it wakes everybody who waits.
    """

    def __init__(self, maxsize: int) -> None:
        if maxsize < 1:
            raise ValueError(f"maxsize must be at least 1, got {maxsize}")
        self.maxsize = maxsize
        self._items: deque[T] = deque()
        self._condition = threading.Condition()
        self._closed = False
        self._num_put = self._num_got = self._peak_depth = 0
        self._put_wait_s = self._get_wait_s = 0.0

    def put(self, item: T) -> None:
        """Appends ``item``, waiting for room; raises QueueClosed once closed."""
        with self._condition:
            started = time.perf_counter()
            self._condition.wait_for(
                lambda: self._closed or len(self._items) < self.maxsize
            )
            self._put_wait_s += time.perf_counter() - started
            if self._closed:
                raise QueueClosed
            self._items.append(item)
            self._num_put += 1
            self._peak_depth = max(self._peak_depth, len(self._items))
            self._condition.notify_all()

    def get(self) -> T:
        """Removes and returns the oldest item, waiting for one.

        Raises QueueClosed once the queue is closed, whatever is left in it.
        """
        with self._condition:
            started = time.perf_counter()
            self._condition.wait_for(lambda: self._closed or self._items)
            self._get_wait_s += time.perf_counter() - started
            if self._closed:
                raise QueueClosed
            item = self._items.popleft()
            self._num_got += 1
            self._condition.notify_all()
            return item

    def close(self) -> None:
        """Ends the queue: every waiting and every later call raises QueueClosed."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()

    def stats(self) -> QueueStats:
        """All counters, taken in one instant."""
        with self._condition:
            return QueueStats(
                num_put=self._num_put,
                num_got=self._num_got,
                depth=len(self._items),
                peak_depth=self._peak_depth,
                put_wait_s=self._put_wait_s,
                get_wait_s=self._get_wait_s,
            )

    def __len__(self) -> int:
        with self._condition:
            return len(self._items)
