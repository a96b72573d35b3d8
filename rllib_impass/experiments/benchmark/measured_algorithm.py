"""An RLlib algorithm that trains only while it is measured."""

import contextlib
import dataclasses
import math
import os
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.core.learner.learner import Learner

from rllib_impass.experiments import settings
from rllib_impass.experiments.benchmark.measurement import Slice
from rllib_impass.experiments.benchmark.process_usage import (
    Processes,
    UsageMeter,
    thread_ids,
)

# Says nothing of how it trains, only how often `train()` returns.
ITERATION_S = 2.0
# The first one starts processes' caches and torch; later ones restart the pipeline and
# get rid of what was sampled while another contender was measured.
FIRST_WARM_UP_S = 2.0
WARM_UP_S = 1.0
# Until the first batch is trained, at most.
START_TIMEOUT_S = 120.0
# Until a replay buffer holds enough to learn from, at most.
FILL_TIMEOUT_S = 600.0

SAMPLED = ("env_runners", "num_env_steps_sampled_lifetime")
# RLlib's own IMPALA counts one more for each piece of an episode, some 4% on Hopper.
TRAINED = ("learners", "__all_modules__", "num_env_steps_trained_lifetime")
# Of ours that count updates, and that train in a thread which can wait for data.
UPDATES = ("learners", "__all_modules__", "num_updates_lifetime")
LEARNER_WAIT = ("learners", "__all_modules__", "queue_get_wait_s")
# Ours; and RLlib's own count of the same, which it takes of one batch per result.
LAGS = (
    ("learners", "default_policy", "policy_lag_mean"),
    ("learners", "default_policy", "diff_num_grad_updates_vs_sampler_policy"),
)


def make_config(run: str, env: Any, **values: Any) -> AlgorithmConfig:
    """An algorithm's own defaults, but for what is given; checked.

    Args:
        run: name of the algorithm, as Tune knows it.
        env: a name or a class.
        **values: settings.

    Raises:
        UsageError: if the algorithm refuses the environment or a setting.
    """
    config = settings.algorithm_class(run).get_default_config()
    fixed = {
        "seed": 0,
        "min_time_s_per_iteration": ITERATION_S,
        # Time that a runner was away for is no measurement: better an error.
        "restart_failed_env_runners": False,
        "log_level": "ERROR",
    }
    settings.apply_settings(config, fixed | values)
    config.environment(env)
    settings.validate(config)
    return config


@dataclasses.dataclass(frozen=True)
class Reading:
    """The counters of a result, and when it came."""

    time_s: float
    num_sampled: int
    num_trained: int
    policy_lag: float | None
    num_updates: float | None
    learner_wait_s: float | None

    @classmethod
    def of(cls, result: Mapping[str, Any], before: "Reading | None") -> "Reading":
        """Reads a result that has just come.

        Args:
            result: the result.
            before: the last one, which holds for counters that have not moved: some
                are missing then.
        """

        def total(path: tuple[str, ...], last: float | None) -> float | None:
            value = _lookup(result, path)
            return last if value is None else value

        lags = (_lookup(result, path) for path in LAGS)
        return cls(
            time_s=time.perf_counter(),
            num_sampled=int(_lookup(result, SAMPLED) or 0),
            num_trained=int(_lookup(result, TRAINED) or 0),
            policy_lag=next((lag for lag in lags if lag is not None), None),
            num_updates=total(UPDATES, before and before.num_updates),
            learner_wait_s=total(LEARNER_WAIT, before and before.learner_wait_s),
        )


class MeasuredAlgorithm:
    """A contender that learns.

    Args:
        name: of the contender.
        config: of the algorithm.
        steps_per_update: env steps that it counts as trained with each update, for an
            algorithm that does not count its updates; None if nobody needs them.
    """

    warm_up_s = WARM_UP_S

    def __init__(
        self, name: str, config: AlgorithmConfig, steps_per_update: int | None = None
    ) -> None:
        self.name = name
        self.config = config
        self._steps_per_update = steps_per_update
        has_choice = hasattr(config, "choose_backend")
        self.backend = config.choose_backend().name if has_choice else "gymnasium"
        self._warm_up_s = FIRST_WARM_UP_S
        self._algorithm: Algorithm | None = None
        self._last_reading: Reading | None = None
        self._has_learner_thread = False
        self._processes = Processes(runners=())

    @property
    def num_cpus(self) -> int:
        """What it asks Ray for."""
        request = self.config.algo_class.default_resource_request(self.config)
        return math.ceil(request.required_resources.get("CPU", 0.0))

    def start(self) -> None:
        """Builds the algorithm, which then waits."""
        # As Ray has it in the process of a trial, where torch would take every core.
        torch.set_num_threads(max(1, int(self.config.num_cpus_for_main_process)))
        others = thread_ids()
        self._algorithm = self.config.build_algo()
        self._has_learner_thread = thread_ids() != others
        self._processes = self._wait_until_idle()

    def fill_replay(self, on_share: Callable[[float], None]) -> None:
        """Trains until the replay buffer holds enough and the first update is made.

        Args:
            on_share: called with the share that is new in the buffer.
        """
        needed = self.config.num_steps_sampled_before_learning_starts
        started = time.perf_counter()
        share = 0.0
        while True:
            reading = self._train()
            before, share = share, min(1.0, reading.num_sampled / needed)
            on_share(share - before)
            if reading.num_updates:
                break
            if reading.time_s - started > FILL_TIMEOUT_S:
                raise RuntimeError(
                    f"{self.name} has sampled {reading.num_sampled} env steps in "
                    f"{FILL_TIMEOUT_S:.0f} s, and not learnt"
                )
        self._wait_until_idle()

    def measure(self, seconds: float, on_tick: Callable[[float], None]) -> Slice:
        """Trains for a while, after a while that does not count.

        Args:
            seconds: how long.
            on_tick: called with the seconds that have passed since the last call.
        """
        before = self._warm_up(on_tick)
        with UsageMeter(self._processes) as meter:
            readings = self._train_for(seconds, on_tick)
        self._wait_until_idle()
        after = readings[-1]
        lags = [r.policy_lag for r in readings if r.policy_lag is not None]
        updates = _difference(before.num_updates, after.num_updates)
        return Slice(
            seconds=after.time_s - before.time_s,
            num_sampled=after.num_sampled - before.num_sampled,
            num_trained=after.num_trained - before.num_trained,
            usage=meter.usage,
            policy_lag=statistics.fmean(lags) if lags else None,
            num_updates=None if updates is None else round(updates),
            learner_wait_s=_difference(before.learner_wait_s, after.learner_wait_s),
        )

    def stop(self) -> None:
        """Ends its processes."""
        if self._algorithm is None:
            return
        self._algorithm.stop()
        # RLlib makes a folder in ~/ray_results, and leaves it empty.
        with contextlib.suppress(OSError):
            Path(self._algorithm.logdir).rmdir()
        self._algorithm = None

    def _warm_up(self, on_tick: Callable[[float], None]) -> Reading:
        started = time.perf_counter()
        last = self._last_reading
        num_trained = 0 if last is None else last.num_trained
        reading = self._train_for(self._warm_up_s, on_tick)[-1]
        # Or the learner's wait for this turn would count as a part of it.
        while reading.num_trained == num_trained:
            if reading.time_s - started > START_TIMEOUT_S:
                raise RuntimeError(
                    f"{self.name} has trained nothing in {START_TIMEOUT_S:.0f} s"
                )
            reading = self._train_for(ITERATION_S, lambda _: None)[-1]
        self._warm_up_s = WARM_UP_S
        return reading

    def _train_for(
        self, seconds: float, on_tick: Callable[[float], None]
    ) -> list[Reading]:
        started = last = time.perf_counter()
        readings: list[Reading] = []
        while last - started < seconds:
            readings.append(self._train())
            on_tick(readings[-1].time_s - last)
            last = readings[-1].time_s
        return readings

    def _train(self) -> Reading:
        reading = Reading.of(self._algorithm.train(), self._last_reading)
        if self._steps_per_update is not None:
            num_updates = reading.num_trained / self._steps_per_update
            reading = dataclasses.replace(reading, num_updates=num_updates)
        self._last_reading = reading
        return reading

    def _wait_until_idle(self) -> Processes:
        """Waits until nobody works any more; returns the processes' ids.

        An actor answers once it has done what it was asked for before, so nothing of
        this contender runs into the slice of the next.
        """
        runners = self._algorithm.env_runner_group.foreach_env_runner(
            lambda _: os.getpid(), local_env_runner=False
        )
        results = self._algorithm.learner_group.foreach_learner(
            _pid_when_idle, timeout_seconds=START_TIMEOUT_S
        )
        driver = os.getpid()
        learners = {result.get() for result in results}
        if not self._has_learner_thread:
            learners.discard(driver)
        return Processes(
            runners=tuple(runners), driver=driver, learners=tuple(learners)
        )


def _pid_when_idle(learner: Learner) -> int:
    # Ours have a thread, which goes on with what is queued.
    if hasattr(learner, "wait_until_idle"):
        learner.wait_until_idle()
    return os.getpid()


def _difference(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else after - before


def _lookup(result: Mapping[str, Any], path: tuple[str, ...]) -> float | None:
    """A number deep inside a result; None if it is missing or not finite."""
    value: Any = result
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
