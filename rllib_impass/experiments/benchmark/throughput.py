"""Env steps per second: ours, stock IMPALA's, and what the machine could do."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from rllib_impass.experiments.benchmark.measured_algorithm import (
    MeasuredAlgorithm,
    make_config,
)
from rllib_impass.experiments.benchmark.measurement import (
    Comparison,
    Measurement,
    ratio,
)
from rllib_impass.experiments.benchmark.raw_stepping import RawStepping
from rllib_impass.experiments.benchmark.session import (
    OnProgress,
    Progress,
    check_seconds,
    own_ray,
    refuse_other_ray,
)
from rllib_impass.experiments.benchmark.turns import (
    Contender,
    duration_s,
    measure_in_turns,
    started,
)
from rllib_impass.experiments.class_paths import TRUSTED_PACKAGES, refuse_untrusted
from rllib_impass.experiments.settings import resolve_env

STOCK = "IMPALA"
OURS = "IMPASS"
RAW_NAMES = {"envpool": "raw EnvPool", "gymnasium": "raw gymnasium"}
# As it comes, but for the envs per runner: with its one, it would be slower still.
STOCK_SETTINGS = {"num_env_runners": 2, "num_envs_per_env_runner": 16}


@dataclasses.dataclass(frozen=True)
class Throughput(Comparison):
    """How fast everybody was, beside stock IMPALA and the bare environment."""

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
        total_s = duration_s(self.contenders, self.seconds, self.rounds)
        progress = Progress(total_s, on_progress)
        num_cpus = sum(c.num_cpus for c in self.contenders)
        with (
            own_ray(num_cpus, self.modules),
            started(self.env, self.contenders, progress),
        ):
            measurements = measure_in_turns(
                self.env, self.contenders, self.seconds, self.rounds, progress
            )
        return Throughput(self.env, measurements)


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
