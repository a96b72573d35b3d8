"""What a benchmark measured: slices of time, and what they come to."""

import dataclasses
import statistics
from collections.abc import Iterable
from typing import Any


@dataclasses.dataclass(frozen=True)
class Usage:
    """What processes used over a slice of time.

    Attributes:
        runners_s: CPU seconds of the processes that step environments.
        driver_s: those of the driver, less a learner that lives in it; None without.
        learner_s: those of the learners, wherever they live; None without.
        peak_memory: bytes of all of them together, shared pages counted once.
    """

    runners_s: float
    driver_s: float | None
    learner_s: float | None
    peak_memory: int


@dataclasses.dataclass(frozen=True)
class Slice:
    """One contender at work for a while, warmed up before.

    Attributes:
        seconds: how long, by the wall clock.
        num_sampled: env steps that were made.
        num_trained: env steps that were trained on; None where nothing learns.
        usage: of CPU and memory.
        policy_lag: how many weight versions the samples were behind the learner, on
            average; None where it is not reported.
        num_updates: gradient steps; None where they are not counted.
        learner_wait_s: how long the learner waited for data; None where nobody counts.
    """

    seconds: float
    num_sampled: int
    num_trained: int | None
    usage: Usage
    policy_lag: float | None = None
    num_updates: int | None = None
    learner_wait_s: float | None = None


@dataclasses.dataclass(frozen=True)
class Measurement:
    """All slices of one contender.

    Rates are totals over totals, so that a long slice counts for more.

    Attributes:
        name: of the contender.
        backend: what steps its environments: "envpool" or "gymnasium".
        slices: one for each round.
    """

    name: str
    backend: str
    slices: tuple[Slice, ...]

    @property
    def seconds(self) -> float:
        """Measured time."""
        return sum(s.seconds for s in self.slices)

    @property
    def sampled_per_s(self) -> float:
        """Env steps made in a second."""
        return sum(s.num_sampled for s in self.slices) / self.seconds

    @property
    def trained_per_s(self) -> float | None:
        """Env steps trained on in a second."""
        return _per(self.seconds, (s.num_trained for s in self.slices))

    @property
    def updates_per_s(self) -> float | None:
        """Gradient steps in a second."""
        return _per(self.seconds, (s.num_updates for s in self.slices))

    @property
    def updates_per_env_step(self) -> float | None:
        """Gradient steps for each env step made."""
        return ratio(self.updates_per_s, self.sampled_per_s)

    @property
    def learner_busy(self) -> float | None:
        """Share of the time in which the learner did not wait for data."""
        waiting = _per(self.seconds, (s.learner_wait_s for s in self.slices))
        return None if waiting is None else 1.0 - waiting

    @property
    def cores(self) -> dict[str, float | None]:
        """CPU seconds in a second of the driver, the runners and the learner."""
        usages = [s.usage for s in self.slices]
        return {
            "driver": _per(self.seconds, (u.driver_s for u in usages)),
            "runners": _per(self.seconds, (u.runners_s for u in usages)),
            "learner": _per(self.seconds, (u.learner_s for u in usages)),
        }

    @property
    def cpu_us_per_step(self) -> dict[str, float | None]:
        """CPU microseconds: the runners' per step made, the learner's per trained."""
        cores = self.cores
        return {
            "runners": _microseconds(cores["runners"], self.sampled_per_s),
            "learner": _microseconds(cores["learner"], self.trained_per_s),
        }

    @property
    def peak_memory(self) -> int:
        """Bytes."""
        return max(s.usage.peak_memory for s in self.slices)

    @property
    def policy_lag(self) -> float | None:
        """In weight versions, the mean of the slices that report it."""
        lags = [s.policy_lag for s in self.slices if s.policy_lag is not None]
        return statistics.fmean(lags) if lags else None

    def to_dict(self) -> dict[str, Any]:
        """Totals and every slice, ready for JSON."""
        return {
            "name": self.name,
            "backend": self.backend,
            "seconds": self.seconds,
            "sampled_per_s": self.sampled_per_s,
            "trained_per_s": self.trained_per_s,
            "updates_per_s": self.updates_per_s,
            "updates_per_env_step": self.updates_per_env_step,
            "learner_busy": self.learner_busy,
            "cores": self.cores,
            "cpu_us_per_step": self.cpu_us_per_step,
            "peak_memory": self.peak_memory,
            "policy_lag": self.policy_lag,
            "slices": [dataclasses.asdict(s) for s in self.slices],
        }


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Everybody on one environment.

    Attributes:
        env: its name.
        measurements: one for each contender.
    """

    env: str
    measurements: tuple[Measurement, ...]

    def __getitem__(self, name: str) -> Measurement:
        return next(m for m in self.measurements if m.name == name)


def ratio(value: float | None, reference: float | None) -> float | None:
    """How many times the reference, if both are there."""
    return value / reference if value is not None and reference else None


def _per(seconds: float, amounts: Iterable[float | None]) -> float | None:
    amounts = list(amounts)
    return None if None in amounts else sum(amounts) / seconds


def _microseconds(cores: float | None, steps_per_s: float | None) -> float | None:
    seconds = ratio(cores, steps_per_s)
    return None if seconds is None else 1e6 * seconds
