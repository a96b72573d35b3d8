"""Asks actors for samples without spinning; counts and surfaces what goes wrong."""

import logging
import time
from collections import Counter
from typing import Any, NamedTuple

import ray
from ray import ObjectRef
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.env.env_runner_group import EnvRunnerGroup
from ray.rllib.utils.metrics.metrics_logger import MetricsLogger
from ray.rllib.utils.typing import ResultDict

logger = logging.getLogger(__name__)

NUM_RUNNER_FAILURES = "num_env_runner_failures_lifetime"

_SAMPLE = "sample_get_state_and_metrics"
# Pause while nothing is in flight: learners are full, or every runner is gone.
_BACK_PRESSURE_PAUSE_S = 0.02


class Sample(NamedTuple):
    """What one request brought; the data itself stays in the object store."""

    ref: ObjectRef
    connector_states: dict[str, Any]
    metrics: ResultDict


class SampleRequests:
    """The requests that are in flight to the env runners of an algorithm.

    Args:
        env_runner_group: the actors.
        config: how long to wait, and how many failures to tolerate.
        metrics: where failures are counted.
    """

    def __init__(
        self,
        env_runner_group: EnvRunnerGroup,
        config: AlgorithmConfig,
        metrics: MetricsLogger,
    ) -> None:
        self._group = env_runner_group
        self._config = config
        self._metrics = metrics
        self._failures_in_a_row: Counter[int] = Counter()
        self._last_failure: Exception | None = None
        # Spent waiting for a sample, not merely between two calls of `train()`.
        self._silence_s = 0.0

    def send(self) -> None:
        """Asks every runner that has fewer requests in flight than it may have."""
        self._group.foreach_env_runner_async(_SAMPLE, tag=_SAMPLE)

    def collect(self, *, is_needed: bool) -> list[Sample]:
        """Waits for a sample to be ready, then takes all that are.

        Args:
            is_needed: whether learners could use one: only then is silence a fault.
        """
        started = time.monotonic()
        manager = self._group._worker_manager
        in_flight, _, _ = manager._filter_calls_by_tag(_SAMPLE)
        if in_flight:
            # RLlib's own wait ends when all requests are done, not when one is.
            timeout = self._config.timeout_s_sampler_manager
            ray.wait(in_flight, num_returns=1, timeout=timeout, fetch_local=False)
        else:
            time.sleep(_BACK_PRESSURE_PAUSE_S)
        samples = []
        for result in manager.fetch_ready_async_reqs(tags=_SAMPLE):
            answer = result.get()
            if isinstance(answer, Exception):
                self._note_failure(result.actor_id, answer)
            else:
                samples.append(Sample(*answer))
                self._failures_in_a_row[result.actor_id] = 0
        if samples:
            self._silence_s = 0.0
        elif is_needed:
            self._silence_s += time.monotonic() - started
            self._check_for_stall()
        return samples

    def _note_failure(self, runner_id: int, error: Exception) -> None:
        config = self._config
        self._last_failure = error
        self._failures_in_a_row[runner_id] += 1
        self._metrics.log_value(NUM_RUNNER_FAILURES, 1, reduce="lifetime_sum")
        if not (config.restart_failed_env_runners or config.ignore_env_runner_failures):
            raise error
        in_a_row = self._failures_in_a_row[runner_id]
        limit = config.num_consecutive_env_runner_failures_tolerance
        cause = (str(error).strip().splitlines() or [repr(error)])[-1]
        logger.warning(
            "env runner %d failed (%d in a row): %s", runner_id, in_a_row, cause
        )
        if in_a_row > limit:
            raise RuntimeError(
                f"env runner {runner_id} failed {in_a_row} times in a row "
                f"(num_consecutive_env_runner_failures_tolerance={limit}): {error}"
            ) from error

    def _check_for_stall(self) -> None:
        if self._silence_s < self._config.sample_timeout_s:
            return
        healthy = self._group.num_healthy_remote_env_runners()
        raise RuntimeError(
            f"no sample for {self._silence_s:.0f} s; {healthy} of "
            f"{self._config.num_env_runners} env runners are healthy. If the env is "
            "this slow, raise env_runners(sample_timeout_s=...). "
            f"Last failure: {self._last_failure!r}"
        ) from self._last_failure
