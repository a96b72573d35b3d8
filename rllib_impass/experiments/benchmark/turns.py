"""Contenders that are started once and measured in turns."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from rllib_impass.experiments.benchmark.measurement import Measurement, Slice
from rllib_impass.experiments.benchmark.session import Progress


class Contender(Protocol):
    """What can be measured, a slice at a time."""

    name: str
    backend: str
    warm_up_s: float
    num_cpus: int

    def start(self) -> None:
        """Starts its processes, which then wait."""

    def measure(self, seconds: float, on_tick: Callable[[float], None]) -> Slice:
        """Warms up, works for a while, and is idle again."""

    def stop(self) -> None:
        """Ends its processes; also if it was started half."""


def duration_s(contenders: Sequence[Contender], seconds: float, rounds: int) -> float:
    """How long measuring will take, about.

    Args:
        contenders: who takes part.
        seconds: measured for each of them, all rounds together.
        rounds: in how many turns.
    """
    return sum(seconds + rounds * c.warm_up_s for c in contenders)


@contextlib.contextmanager
def started(
    env: str, contenders: Sequence[Contender], progress: Progress
) -> Iterator[None]:
    """Everybody started while the block runs; stopped after it, whatever happens.

    Args:
        env: name of the environment.
        contenders: who takes part.
        progress: whom to tell.
    """
    with contextlib.ExitStack() as stack:
        for contender in contenders:
            progress.begin(f"{env}: starting {contender.name}")
            stack.callback(contender.stop)
            contender.start()
        yield


def measure_in_turns(
    env: str,
    contenders: Sequence[Contender],
    seconds: float,
    rounds: int,
    progress: Progress,
) -> tuple[Measurement, ...]:
    """Measures those who were started, so that noise hits all alike.

    Args:
        env: name of the environment.
        contenders: who takes part.
        seconds: measured for each of them, all rounds together.
        rounds: in how many turns.
        progress: whom to tell.
    """
    slices: dict[str, list[Slice]] = {c.name: [] for c in contenders}
    for number in range(1, rounds + 1):
        for contender in contenders:
            turn = f"round {number} of {rounds}"
            progress.begin(f"{env}: {turn}, {contender.name}")
            measured = contender.measure(seconds / rounds, progress.advance)
            slices[contender.name].append(measured)
    return tuple(
        Measurement(c.name, c.backend, tuple(slices[c.name])) for c in contenders
    )
