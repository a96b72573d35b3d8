"""A learner whose thread trains while the process it lives in goes on."""

import abc
import copy
import logging
import threading
from typing import Any

import numpy as np
import ray
import torch
import tree
from ray.actor import ActorHandle
from ray.exceptions import ObjectLostError, OwnerDiedError
from ray.rllib.core import ALL_MODULES, COMPONENT_RL_MODULE
from ray.rllib.core.learner.learner import Learner
from ray.rllib.core.learner.torch.torch_learner import TorchLearner
from ray.rllib.core.learner.training_data import TrainingData
from ray.rllib.utils.annotations import override
from ray.rllib.utils.checkpoints import Checkpointable
from ray.rllib.utils.metrics import WEIGHTS_SEQ_NO
from ray.rllib.utils.typing import ResultDict, StateDict

from rllib_impass.algorithms.collectives import broadcast_from_first, rank
from rllib_impass.utils.minibatch_queue import MinibatchQueue, QueueClosed

logger = logging.getLogger(__name__)

NUM_SAMPLES_LOST = "num_samples_lost_lifetime"
NUM_ENV_STEPS_QUEUED = "num_env_steps_queued"
QUEUE_DEPTH = "queue_depth"
QUEUE_PUT_WAIT = "queue_put_wait_s"
QUEUE_GET_WAIT = "queue_get_wait_s"

_SHUTDOWN_TIMEOUT_S = 30.0
# Smaller weights travel inside the messages: Ray sends so much in one piece, and a trip
# through the object store costs every actor a second request.
_MAX_MESSAGE_BYTES = 64 * 1024


class AsyncLearner(TorchLearner, abc.ABC):
    """Queues what the actors sent and trains on it in a thread of its own.

    ``update()`` waits only while the queue is full, hands out the metrics of what has
    been trained since the last call, and raises what the thread raised. After every
    ``broadcast_interval`` batches the thread publishes its weights.
    """

    @abc.abstractmethod
    def train_on(self, samples: list[Any], timesteps: dict[str, Any]) -> None:
        """Trains on what one or more ``EnvRunner.sample()`` calls returned."""

    def set_up_training(self) -> None:
        """Called once, when the module is there and the thread is not yet."""

    @override(Learner)
    def build(self) -> None:
        super().build()
        for module in self.module.values():
            broadcast_from_first(module.state_dict().values())
        self._server: ActorHandle | None = None
        self._queue: MinibatchQueue = MinibatchQueue(self.config.minibatch_queue_size)
        self._failure: BaseException | None = None
        # Held while weights change, so that nobody reads them half-way.
        self._weights_lock = threading.RLock()
        self._metrics_lock = threading.RLock()
        self._has_news = False
        self._num_trained_batches = 0
        self._progress = threading.Condition()
        self.set_up_training()
        self._thread = threading.Thread(
            target=self._train_until_closed, name="impass-learner", daemon=True
        )
        self._thread.start()

    @override(Learner)
    def update(
        self,
        training_data: TrainingData,
        *,
        timesteps: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> ResultDict:
        """Queues samples; without any, only reports.

        Args:
            training_data: carries references to the actors' samples.
            timesteps: the step counters that schedules follow.
            **kwargs: what LearnerGroup passes and nobody here needs.

        Returns:
            Metrics since the last call, ready to be aggregated; empty without news.
        """
        self.raise_failure()
        refs = training_data.episodes_refs
        if refs:
            # Queued even if every sample was lost: several learners must agree on the
            # number of batches, or they would wait for each other for ever.
            samples = self._resolve(refs)
            try:
                self._queue.put((samples, timesteps or {}))
            except QueueClosed:
                self.raise_failure()
                raise
        return self._report()

    def publish_to(self, server: ActorHandle) -> None:
        """Sets where new weights go, and sends the current ones there."""
        with self._weights_lock:
            self._server = server
            self._publish()

    def weights_for_actors(self) -> StateDict:
        """What actors sample with."""
        return self.module.get_state(inference_only=True)

    def state_for_actors(self) -> StateDict:
        """The same with its version, as ``EnvRunner.set_state`` takes it."""
        with self._weights_lock:
            return {
                COMPONENT_RL_MODULE: self.weights_for_actors(),
                WEIGHTS_SEQ_NO: self._weights_seq_no,
            }

    def wait_until_idle(self, timeout_s: float | None = None) -> bool:
        """Waits until every queued batch is trained; raises what the thread raised.

        Args:
            timeout_s: how long at most; None for as long as it takes.

        Returns:
            Whether the learner is idle.
        """
        with self._progress:
            self._progress.wait_for(
                lambda: self._failure is not None or self._is_idle, timeout_s
            )
            self.raise_failure()
            return self._is_idle

    @property
    def _is_idle(self) -> bool:
        return self._num_trained_batches == self._queue.stats().num_put

    def raise_failure(self) -> None:
        """Raises the error that ended the learner thread, if one did."""
        if self._failure is not None:
            raise RuntimeError(
                f"the learner thread stopped: {self._failure!r}"
            ) from self._failure

    @override(Checkpointable)
    def get_state(self, *args: Any, **kwargs: Any) -> StateDict:
        with self._weights_lock:
            # Copied: on the CPU, RLlib's arrays share their memory with the weights.
            return copy.deepcopy(super().get_state(*args, **kwargs))

    @override(Checkpointable)
    def set_state(self, state: StateDict) -> None:
        # Several learners must restore between the same two batches, and no learner
        # should train old data into restored weights.
        self.wait_until_idle()
        with self._weights_lock:
            newest = self._weights_seq_no
            # RLlib ignores weights that are not newer than its own; an older checkpoint
            # must win, too. Versions only ever rise, so that actors notice.
            self._weights_seq_no = 0
            # Copied: RLlib's optimizers would keep and change the caller's arrays.
            super().set_state(copy.deepcopy(state))
            self._weights_seq_no = max(newest, self._weights_seq_no) + 1
            self._publish()

    @override(Checkpointable)
    def save_to_path(self, *args: Any, **kwargs: Any) -> str:
        with self._weights_lock:
            return super().save_to_path(*args, **kwargs)

    @override(Checkpointable)
    def restore_from_path(
        self, path: Any, *args: Any, component: str | None = None, **kwargs: Any
    ) -> None:
        self.wait_until_idle()
        with self._weights_lock:
            super().restore_from_path(path, *args, component=component, **kwargs)
            if component is not None:
                # A part does not pass through `set_state`.
                self._weights_seq_no += 1
                self._publish()

    @override(Learner)
    def shutdown(self) -> None:
        self._queue.close()
        self._thread.join(timeout=_SHUTDOWN_TIMEOUT_S)

    @override(TorchLearner)
    def _make_modules_ddp_if_necessary(self) -> None:
        # Gradients are averaged explicitly: DDP's hooks expect exactly one forward pass
        # through its wrapper for each backward pass.
        pass

    def log_values(self, values: dict[str, float], key: str = ALL_MODULES) -> None:
        """Logs metrics of which a result shows the mean over its batches."""
        with self._metrics_lock:
            self.metrics.log_dict(values, key=key, reduce="mean")

    def log_totals(self, totals: dict[str, float], key: str = ALL_MODULES) -> None:
        """Logs metrics that only grow, of which a result shows the newest value."""
        with self._metrics_lock:
            self.metrics.log_dict(totals, key=key, reduce="max")

    def _train_until_closed(self) -> None:
        if self.config.num_learners == 0:
            # Torch would take every core, and the actors' with them: on 2 cores that
            # costs two thirds of the throughput. Ray does this for remote learners.
            torch.set_num_threads(max(1, int(self.config.num_cpus_for_main_process)))
        try:
            while True:
                samples, timesteps = self._queue.get()
                with self._weights_lock:
                    self.train_on(samples, timesteps)
                    self._weights_seq_no += 1
                    if self._weights_seq_no % self.config.broadcast_interval == 0:
                        self._publish()
                self._note_progress()
        except QueueClosed:
            pass
        except BaseException as error:
            self._failure = error
            self._queue.close()
            with self._progress:
                self._progress.notify_all()

    def _note_progress(self) -> None:
        stats = self._queue.stats()
        self.log_values(
            {
                QUEUE_DEPTH: stats.depth,
                NUM_ENV_STEPS_QUEUED: stats.depth * self.config.steps_per_batch,
                WEIGHTS_SEQ_NO: self._weights_seq_no,
            }
        )
        # Not as means: the difference of two results is the wait between them.
        self.log_totals(
            {QUEUE_PUT_WAIT: stats.put_wait_s, QUEUE_GET_WAIT: stats.get_wait_s}
        )
        with self._metrics_lock:
            self._has_news = True
        with self._progress:
            self._num_trained_batches += 1
            self._progress.notify_all()

    def _report(self) -> ResultDict:
        with self._metrics_lock:
            if not self._has_news:
                return {}
            self._has_news = False
            # RLlib logs this once, and every later result would show it as NaN.
            self._log_trainable_parameters()
            return self.metrics.reduce()

    def _publish(self) -> None:
        if self._server is None or rank() != 0:
            return
        state = self.state_for_actors()
        weights = state[COMPONENT_RL_MODULE]
        num_bytes = sum(np.asarray(array).nbytes for array in tree.flatten(weights))
        if num_bytes >= _MAX_MESSAGE_BYTES:
            state[COMPONENT_RL_MODULE] = ray.put(weights)
        self._server.push.remote(state)

    def _resolve(self, refs: list[ray.ObjectRef]) -> list[Any]:
        """Fetches samples, leaving out those that went down with their actor."""
        samples: list[Any] = []
        num_lost = 0
        for ref in refs:
            try:
                samples.extend(ray.get(ref))
            except (OwnerDiedError, ObjectLostError) as error:
                num_lost += 1
                logger.warning("a sample was lost with its actor: %s", error)
        with self._metrics_lock:
            self.metrics.log_value(
                (ALL_MODULES, NUM_SAMPLES_LOST), num_lost, reduce="lifetime_sum"
            )
        return samples
