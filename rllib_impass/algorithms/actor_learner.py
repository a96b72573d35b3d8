"""What all actor-learners share: sampling that neither spins nor loses data."""

import logging
import math
import time
from typing import Any

import ray
from ray import ObjectRef
from ray.actor import ActorHandle
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.algorithms.impala import IMPALA
from ray.rllib.core import ALL_MODULES, COMPONENT_RL_MODULE
from ray.rllib.core.learner.training_data import TrainingData
from ray.rllib.env.env_runner_group import EnvRunnerGroup
from ray.rllib.utils.annotations import override
from ray.rllib.utils.metrics import (
    ENV_RUNNER_RESULTS,
    EVALUATION_RESULTS,
    LEARNER_RESULTS,
    NUM_ENV_STEPS_SAMPLED_LIFETIME,
    NUM_ENV_STEPS_TRAINED_LIFETIME,
    WEIGHTS_SEQ_NO,
)
from ray.rllib.utils.typing import ResultDict
from ray.tune.execution.placement_groups import PlacementGroupFactory

from rllib_impass.algorithms.actor_learner_config import ActorLearnerConfig
from rllib_impass.algorithms.runner_state_server import RunnerStateServer
from rllib_impass.algorithms.sample_requests import Sample, SampleRequests
from rllib_impass.connectors import share_connector_states
from rllib_impass.env.trajectory_env_runner import forget_weights_version

logger = logging.getLogger(__name__)

NUM_SAMPLES_WAITING = "num_samples_waiting_for_a_batch"

# How often dead runners are asked if they are back, and learners if they live.
_POLL_INTERVAL_S = 1.0
# How long actors have to close their envs before they are ended.
_STOP_TIMEOUT_S = 5.0


class ActorLearner(IMPALA):
    """Asynchronous actors feed learners through the driver, by reference.

    Nothing is dropped: if learners are busy, batches wait here, no new samples are
    requested, and the actors feel it.
    """

    config: ActorLearnerConfig

    @override(IMPALA)
    def setup(self, config: AlgorithmConfig) -> None:
        # Before the runners, so that its process starts while theirs do.
        has_actors = self.config.num_env_runners > 0
        server = self._start_state_server() if has_actors else None
        super().setup(config)
        self._waiting: list[ObjectRef] = []
        self._requests = SampleRequests(
            self.env_runner_group, self.config, self.metrics
        )
        self._last_probe_s = self._last_poll_s = time.monotonic()
        if server is not None:
            self._connect_to(server)
        self._say_how_it_samples()

    @override(Algorithm)
    def step(self) -> ResultDict:
        results = super().step()
        interval = self.config.evaluation_interval
        if interval and (self.iteration + 1) % interval:
            # RLlib repeats an evaluation in the result that follows its own.
            results.pop(EVALUATION_RESULTS, None)
        return results

    @override(IMPALA)
    def training_step(self) -> None:
        if self.config.num_env_runners == 0:
            self._train_in_turns()
            return
        is_needed = len(self._waiting) < self.config.samples_per_batch
        if is_needed:
            self._requests.send()
        self._take_samples(self._requests.collect(is_needed=is_needed))
        self._feed_learners()
        self.metrics.log_value(NUM_SAMPLES_WAITING, len(self._waiting), window=1)

    @override(IMPALA)
    def restore_env_runners(self, env_runner_group: EnvRunnerGroup) -> list[int]:
        # RLlib asks before every training step and waits for the answer each time.
        if env_runner_group is self.env_runner_group:
            now = time.monotonic()
            if now - self._last_probe_s < _POLL_INTERVAL_S:
                return []
            self._last_probe_s = now
        restored = super().restore_env_runners(env_runner_group)
        if restored and env_runner_group is self.env_runner_group:
            # RLlib gave them the driver's weights, which are never trained, under the
            # version they had: make them pull, whatever that was.
            env_runner_group.foreach_env_runner(
                forget_weights_version,
                remote_worker_ids=restored,
                local_env_runner=False,
                timeout_seconds=_STOP_TIMEOUT_S,
            )
        return restored

    @override(Algorithm)
    def cleanup(self) -> None:
        # RLlib asks every runner to stop and waits for ever for one that hangs.
        for name in ("env_runner_group", "eval_env_runner_group"):
            if (group := getattr(self, name, None)) is not None:
                group.foreach_env_runner(
                    lambda runner: runner.stop(),
                    local_env_runner=False,
                    timeout_seconds=_STOP_TIMEOUT_S,
                )
                group._worker_manager.clear()
        super().cleanup()
        if getattr(self, "_env_runner_state_server", None) is not None:
            ray.kill(self._env_runner_state_server)
            self._env_runner_state_server = None

    @classmethod
    @override(Algorithm)
    def default_resource_request(cls, config: Any) -> PlacementGroupFactory:
        request = super().default_resource_request(config)
        needed = request.required_resources.get("CPU", 0)
        if ray.is_initialized() and ray.cluster_resources().get("CPU", 0) < needed:
            # Tune would wait in silence for a machine that may never come.
            logger.warning(
                "%s needs %g CPUs and Ray has %g: it will wait for more. On one "
                "machine, use ray.init(num_cpus=%d) or fewer env runners.",
                cls.__name__,
                needed,
                ray.cluster_resources().get("CPU", 0),
                math.ceil(needed),
            )
        return request

    @classmethod
    @override(Algorithm)
    def _should_create_evaluation_env_runners(
        cls, eval_config: AlgorithmConfig
    ) -> bool:
        # Always: `evaluate()` then works without being planned for, and never steps
        # the training envs.
        return True

    @override(Algorithm)
    def _before_evaluate(self) -> None:
        if not self.config.evaluation_parallel_to_training:
            # A checkpoint of this iteration then holds the weights that were evaluated.
            self._wait_for_learners()
        share_connector_states(self)

    def _train_in_turns(self) -> None:
        """One process, no actors: sample, train, repeat; reproducible for a seed."""
        for _ in range(self.config.samples_per_batch):
            self._waiting.append(ray.put(self.env_runner.sample()))
        self.metrics.aggregate([self.env_runner.get_metrics()], key=ENV_RUNNER_RESULTS)
        batch, self._waiting = self._waiting, []
        self._update_learners(batch)
        self._wait_for_learners()
        self._update_learners([])
        # As actors get them; of several learners, all have the same.
        results = self.learner_group.foreach_learner(
            lambda learner: learner.state_for_actors()
        )
        self.env_runner.set_state(self.learner_group._get_results(results)[0])

    def _wait_for_learners(self) -> None:
        while not self._learners_are_idle():
            # Raises what a learner raised while another one waits for it.
            self._update_learners([])

    def _learners_are_idle(self) -> bool:
        results = self.learner_group.foreach_learner(
            lambda learner: learner.wait_until_idle(timeout_s=_POLL_INTERVAL_S)
        )
        return all(self.learner_group._get_results(results))

    def _take_samples(self, samples: list[Sample]) -> None:
        if samples:
            self._waiting += [sample.ref for sample in samples]
            self.metrics.aggregate([s.metrics for s in samples], key=ENV_RUNNER_RESULTS)
            self._push_connector_states([s.connector_states for s in samples])

    def _feed_learners(self) -> None:
        size = self.config.samples_per_batch
        while len(self._waiting) >= size and self._learners_have_room():
            batch, self._waiting = self._waiting[:size], self._waiting[size:]
            self._update_learners(batch)
        if time.monotonic() - self._last_poll_s > _POLL_INTERVAL_S:
            # Without data an update only reports: a dead learner is noticed even while
            # the envs are too slow to fill a batch.
            self._update_learners([])

    def _learners_have_room(self) -> bool:
        if self.learner_group.is_local:
            # Its queue makes us wait.
            return True
        # Not by `LearnerGroup.update()`: it sends as many requests as it takes back.
        manager = self.learner_group._worker_manager
        self._take_results(
            self.learner_group._get_results(manager.fetch_ready_async_reqs())
        )
        limit = self.config.max_requests_in_flight_per_learner
        # RLlib drops the batch of a learner that has reached the limit, in silence.
        return all(
            state.get_num_in_flight_requests() < limit
            for state in manager._remote_actor_states.values()
        )

    def _update_learners(self, refs: list[ObjectRef]) -> None:
        self._last_poll_s = time.monotonic()
        results = self.learner_group.update(
            training_data=TrainingData(episodes_refs=refs),
            timesteps=self._timesteps(),
            async_update=self.learner_group.is_remote,
            # By reference: the driver must not load what it only passes on.
            defer_solve_refs_to_learner=True,
        )
        self._check_learners()
        self._take_results(results)

    def _take_results(self, results: list[ResultDict]) -> None:
        self.metrics.aggregate([r for r in results if r], key=LEARNER_RESULTS)

    def _check_learners(self) -> None:
        """RLlib passes over a failed learner, and drops its batches, without a word."""
        if self.learner_group.is_local:
            return
        manager = self.learner_group._worker_manager
        healthy, total = manager.num_healthy_actors(), manager.num_actors()
        if healthy < total:
            raise RuntimeError(
                f"{healthy} of {total} learners are in service: one has failed, see "
                "the log above. Restart from the last checkpoint."
            )

    def _timesteps(self) -> dict[str, int]:
        sampled = (ENV_RUNNER_RESULTS, NUM_ENV_STEPS_SAMPLED_LIFETIME)
        trained = (LEARNER_RESULTS, ALL_MODULES, NUM_ENV_STEPS_TRAINED_LIFETIME)
        return {
            NUM_ENV_STEPS_SAMPLED_LIFETIME: self.metrics.peek(sampled, default=0),
            NUM_ENV_STEPS_TRAINED_LIFETIME: self.metrics.peek(trained, default=0),
        }

    def _start_state_server(self) -> ActorHandle:
        return (
            ray.remote(RunnerStateServer)
            .options(
                num_cpus=0,
                max_restarts=-1,
                max_concurrency=self.config.env_runner_state_server_max_concurrency,
            )
            .remote()
        )

    def _connect_to(self, server: ActorHandle) -> None:
        # IMPALA's attribute: it shares the server with restarted runners by itself.
        self._env_runner_state_server = server

        def pull_from_server(env_runner: Any) -> None:
            env_runner._env_runner_state_server = server

        self.env_runner_group.foreach_env_runner(pull_from_server)
        self.learner_group.foreach_learner(lambda learner: learner.publish_to(server))

    def _push_connector_states(self, connector_states: list[dict[str, Any]]) -> None:
        if self.config.why_episodes() is None:
            return
        merged = self.env_runner_group.get_merged_env_runner_state(
            config=self.config,
            rl_module_state={WEIGHTS_SEQ_NO: 0},
            connector_states=connector_states,
            env_to_module=self.env_to_module_connector,
            module_to_env=self.module_to_env_connector,
        )
        skipped = (WEIGHTS_SEQ_NO, COMPONENT_RL_MODULE)
        self._env_runner_state_server.push_connector_states.remote(
            {name: state for name, state in merged.items() if name not in skipped}
        )

    def _say_how_it_samples(self) -> None:
        backend, reason = self.config.choose_backend()
        logger.info("stepping %s with %s: %s", self.config.env, backend, reason)
        if (why := self.config.why_episodes()) is not None:
            logger.info("sampling RLlib episodes, which is slower: %s", why)
