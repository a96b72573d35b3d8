"""Env steps per second: ours, stock IMPALA's, and what the machine could do."""

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from rllib_impass.experiments.benchmark.measured_algorithm import (
    MeasuredAlgorithm,
    make_config,
)
from rllib_impass.experiments.benchmark.measurement import Measurement, Slice, ratio
from rllib_impass.experiments.benchmark.raw_stepping import RawStepping
from rllib_impass.experiments.benchmark.session import (
    OnProgress,
    Progress,
    check_seconds,
    own_ray,
    refuse_other_ray,
)
from rllib_impass.experiments.class_paths import TRUSTED_PACKAGES, refuse_untrusted
from rllib_impass.experiments.settings import resolve_env

STOCK = "IMPALA"
OURS = "IMPASS"
RAW_NAMES = {"envpool": "raw EnvPool", "gymnasium": "raw gymnasium"}
# As it comes, but for the envs per runner: with its one, it would be slower still.
STOCK_SETTINGS = {"num_env_runners": 2, "num_envs_per_env_runner": 16}


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


@dataclasses.dataclass(frozen=True)
class Throughput:
    """How fast everybody was on one environment.

    Attributes:
        env: its name.
        measurements: one for each contender.
    """

    env: str
    measurements: tuple[Measurement, ...]

    def __getitem__(self, name: str) -> Measurement:
        return next(m for m in self.measurements if m.name == name)

    def ratio_to_stock(self, measurement: Measurement) -> float | None:
        """Steps trained, in those of stock IMPALA."""
        return ratio(measurement.trained_per_s, self[STOCK].trained_per_s)

    def ratio_to_raw(self, measurement: Measurement) -> float | None:
        """Steps trained, in those that the same back end makes on all cores alone."""
        raw = self[RAW_NAMES[measurement.backend]]
        return ratio(measurement.trained_per_s, raw.sampled_per_s)

    def to_dict(self) -> dict[str, Any]:
        """Everything, the ratios included, ready for JSON."""
        contenders = [
            measurement.to_dict()
            | {
                "ratio_to_stock": self.ratio_to_stock(measurement),
                "ratio_to_raw": self.ratio_to_raw(measurement),
            }
            for measurement in self.measurements
        ]
        return {"env": self.env, "contenders": contenders}


@dataclasses.dataclass(frozen=True)
class ThroughputPlan:
    """A benchmark that has been checked and can run.

    Attributes:
        env: name of the environment.
        seconds: measured for each contender, all rounds together.
        rounds: in how many turns.
        contenders: who takes part.
        modules: what every worker imports first.
    """

    env: str
    seconds: float
    rounds: int
    contenders: tuple[Contender, ...]
    modules: tuple[str, ...] = ()

    def run(self, on_progress: OnProgress | None = None) -> Throughput:
        """Starts everybody once, then measures in turns, so that noise hits all alike.

        Args:
            on_progress: called with what is going on and the share that is done.
        """
        seconds = self.seconds / self.rounds
        turn_s = sum(seconds + c.warm_up_s for c in self.contenders)
        progress = Progress(turn_s * self.rounds, on_progress)
        slices: dict[str, list[Slice]] = {c.name: [] for c in self.contenders}
        num_cpus = sum(c.num_cpus for c in self.contenders)
        with own_ray(num_cpus, self.modules), contextlib.ExitStack() as stack:
            for contender in self.contenders:
                progress.begin(f"{self.env}: starting {contender.name}")
                stack.callback(contender.stop)
                contender.start()
            for number in range(1, self.rounds + 1):
                for contender in self.contenders:
                    turn = f"round {number} of {self.rounds}"
                    progress.begin(f"{self.env}: {turn}, {contender.name}")
                    measured = contender.measure(seconds, progress.advance)
                    slices[contender.name].append(measured)
        measurements = (
            Measurement(c.name, c.backend, tuple(slices[c.name]))
            for c in self.contenders
        )
        return Throughput(self.env, tuple(measurements))


def plan_throughput(
    env: str,
    *,
    seconds: float = 30.0,
    rounds: int = 3,
    learner_process: bool = False,
    modules: Sequence[str] = (),
) -> ThroughputPlan:
    """Checks everything; starts nothing.

    Args:
        env: name of the environment.
        seconds: measured for each contender, all rounds together.
        rounds: in how many turns.
        learner_process: also IMPASS with a learner in a process of its own, where the
            CPU share of the driver is that of sampling alone.
        modules: what every worker imports first, so that it knows custom envs.

    Raises:
        UsageError: with the one thing that is wrong.
    """
    check_seconds(seconds, rounds)
    refuse_other_ray()
    contenders = _contenders(env, learner_process, modules)
    return ThroughputPlan(env, seconds, rounds, tuple(contenders), tuple(modules))


def measure_throughput(
    env: str,
    *,
    seconds: float = 30.0,
    rounds: int = 3,
    learner_process: bool = False,
    on_progress: OnProgress | None = None,
) -> Throughput:
    """Measures IMPASS beside stock IMPALA and bare envs, with a Ray of its own.

    Args:
        env: name of the environment.
        seconds: measured for each contender, all rounds together.
        rounds: in how many turns.
        learner_process: also IMPASS with a learner in a process of its own.
        on_progress: called with what is going on and the share that is done.
    """
    plan = plan_throughput(
        env, seconds=seconds, rounds=rounds, learner_process=learner_process
    )
    return plan.run(on_progress)


def _contenders(
    env: str, learner_process: bool, modules: Sequence[str]
) -> list[Contender]:
    refuse_untrusted(env, (*TRUSTED_PACKAGES, *modules), "env")
    env = resolve_env(env)
    ours = MeasuredAlgorithm(OURS, make_config(OURS, env))
    stock = MeasuredAlgorithm(STOCK, make_config(STOCK, env, **STOCK_SETTINGS))
    # One entry where both are the same.
    backends = dict.fromkeys((ours.backend, stock.backend))
    contenders: list[Contender] = [
        RawStepping(RAW_NAMES[backend], backend, ours.config, modules)
        for backend in backends
    ]
    contenders += [stock, ours]
    if ours.backend != "gymnasium":
        config = make_config(OURS, env, vector_backend="gymnasium")
        contenders.append(MeasuredAlgorithm(f"{OURS}, gymnasium", config))
    if learner_process:
        config = make_config(OURS, env, num_learners=1)
        contenders.append(MeasuredAlgorithm(f"{OURS}, learner apart", config))
    return contenders
