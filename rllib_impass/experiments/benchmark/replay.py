"""Learning from a replay buffer: ours beside RLlib's SAC, at the same ratio."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

from rllib_impass.experiments.benchmark.measured_algorithm import (
    MeasuredAlgorithm,
    make_config,
)
from rllib_impass.experiments.benchmark.measurement import (
    Comparison,
    Measurement,
    ratio,
)
from rllib_impass.experiments.benchmark.session import (
    OnProgress,
    Progress,
    check_seconds,
    own_ray,
    refuse_other_ray,
)
from rllib_impass.experiments.benchmark.turns import (
    duration_s,
    measure_in_turns,
    started,
)
from rllib_impass.experiments.class_paths import TRUSTED_PACKAGES, refuse_untrusted
from rllib_impass.experiments.settings import algorithm_class, resolve_env

STOCK = "SAC"
OURS = "D4PG"
# What filling a replay buffer is taken to last, for the progress bar alone.
FILL_S = 10.0


@dataclasses.dataclass(frozen=True)
class Replay(Comparison):
    """How fast both sample and learn, at the same updates per env step."""

    def ratio_to_stock(self, measurement: Measurement) -> float | None:
        """Env steps made, in those of stock SAC."""
        return ratio(measurement.sampled_per_s, self[STOCK].sampled_per_s)

    def to_dict(self) -> dict[str, Any]:
        """Everything, the ratios included, ready for JSON."""
        contenders = [
            m.to_dict() | {"ratio_to_stock": self.ratio_to_stock(m)}
            for m in self.measurements
        ]
        return {"env": self.env, "contenders": contenders}


@dataclasses.dataclass(frozen=True)
class ReplayPlan:
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
    contenders: tuple[MeasuredAlgorithm, ...]
    modules: tuple[str, ...] = ()

    def run(self, on_progress: OnProgress | None = None) -> Replay:
        """Starts both, lets both sample until they learn, then measures in turns.

        Args:
            on_progress: called with what is going on and the share that is done.
        """
        total_s = duration_s(self.contenders, self.seconds, self.rounds)
        total_s += FILL_S * len(self.contenders)
        progress = Progress(total_s, on_progress)
        num_cpus = sum(c.num_cpus for c in self.contenders)
        with (
            own_ray(num_cpus, self.modules),
            started(self.env, self.contenders, progress),
        ):
            for contender in self.contenders:
                progress.begin(f"{self.env}: {contender.name} samples until it learns")
                contender.fill_replay(lambda share: progress.advance(FILL_S * share))
            measurements = measure_in_turns(
                self.env, self.contenders, self.seconds, self.rounds, progress
            )
        return Replay(self.env, measurements)


def plan_replay(
    env: str,
    *,
    seconds: float = 60.0,
    rounds: int = 3,
    modules: Sequence[str] = (),
) -> ReplayPlan:
    """Checks everything; starts nothing.

    Args:
        env: name of the environment.
        seconds: measured for each contender, all rounds together.
        rounds: in how many turns.
        modules: what every worker imports first, so that it knows custom envs.

    Raises:
        UsageError: with the one thing that is wrong.
    """
    check_seconds(seconds, rounds)
    refuse_other_ray()
    refuse_untrusted(env, (*TRUSTED_PACKAGES, *modules), "env")
    contenders = _contenders(resolve_env(env))
    return ReplayPlan(env, seconds, rounds, contenders, tuple(modules))


def measure_replay(
    env: str,
    *,
    seconds: float = 60.0,
    rounds: int = 3,
    on_progress: OnProgress | None = None,
) -> Replay:
    """Measures D4PG beside RLlib's SAC, with a Ray of its own.

    Args:
        env: name of the environment.
        seconds: measured for each contender, all rounds together.
        rounds: in how many turns.
        on_progress: called with what is going on and the share that is done.
    """
    return plan_replay(env, seconds=seconds, rounds=rounds).run(on_progress)


def stock_settings(ours: AlgorithmConfig) -> dict[str, Any]:
    """What makes stock SAC do the same work as ours for each env step.

    Args:
        ours: whose batch, ratio, runners, envs, buffer and layers it gets.
    """
    num_runners = ours.num_env_runners
    intensity = ours.train_batch_size_per_learner * ours.updates_per_env_step
    return {
        "num_env_runners": num_runners,
        "num_envs_per_env_runner": ours.num_envs_per_env_runner,
        "rollout_fragment_length": ours.rollout_fragment_length,
        "train_batch_size_per_learner": ours.train_batch_size_per_learner,
        # RLlib counts a local runner that samples nothing, and would make as many more
        # updates.
        "training_intensity": intensity * num_runners / (num_runners + 1),
        "replay_buffer_config": {
            # Uniform, as ours is, and cheaper than its own prioritised one.
            "type": "EpisodeReplayBuffer",
            "capacity": ours.replay_capacity,
        },
        "model_config": {"fcnet_hiddens": ours.model_config["critic_hiddens"]},
    }


def _contenders(env: Any) -> tuple[MeasuredAlgorithm, ...]:
    # Its own, the shorter one: nothing is measured before.
    name = "num_steps_sampled_before_learning_starts"
    early = {name: getattr(algorithm_class(STOCK).get_default_config(), name)}
    ours = make_config(OURS, env, **early)
    stock = make_config(STOCK, env, **early, **stock_settings(ours))
    return (
        MeasuredAlgorithm(
            STOCK, stock, steps_per_update=stock.train_batch_size_per_learner
        ),
        MeasuredAlgorithm(OURS, ours),
    )
