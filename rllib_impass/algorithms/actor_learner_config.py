"""Settings that all actor-learners share, and the checks that guard them."""

import math
from typing import Any

import gymnasium as gym
import numpy as np
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig, NotProvided
from ray.rllib.algorithms.impala import IMPALAConfig
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.connectors.learner import AddObservationsFromEpisodesToBatch
from ray.rllib.env.env_context import EnvContext
from ray.rllib.utils import force_list
from ray.rllib.utils.annotations import override
from typing_extensions import Self

from rllib_impass.connectors.stack_states import StackStates, stacked_space
from rllib_impass.env.trajectory_env_runner import TrajectoryEnvRunner
from rllib_impass.env.vector_envs import BACKENDS, BackendChoice, choose_backend

EPISODE_CALLBACKS = (
    "on_episode_created",
    "on_episode_start",
    "on_episode_step",
    "on_episode_end",
    "on_sample_end",
)

# Evaluation measures the policy, not its exploration; and one env at a time, because
# the first n episodes to finish among many envs are the short ones.
EVALUATION_DEFAULTS = {"explore": False, "num_envs_per_env_runner": 1}

# Settings of RLlib's IMPALA that nothing here would read.
MEANINGLESS_SETTINGS = {
    "vtrace": "it is what the algorithm does",
    "entropy_coeff_schedule": "give entropy_coeff the schedule",
    "lr_schedule": "give lr the schedule",
    "replay_proportion": "every step is trained once",
    "opt_type": "the optimizer is Adam",
    "shuffle_batch_per_epoch": "minibatches are always shuffled",
    "learner_queue_size": "set minibatch_queue_size",
    "num_aggregator_actors_per_learner": "learners batch trajectories themselves",
    "torch_skip_nan_gradients": "set max_consecutive_skipped_updates",
    "grad_clip_by": "gradients are clipped by global norm, encoder and critic apart",
    "use_env_runner_state_server": "weights always go through our own server",
}


class ActorLearnerConfig(IMPALAConfig):
    """Base of the configs of IMPASS, IMPALA-noSS and D4PG."""

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class=algo_class)

        self.vector_backend = "auto"
        self.num_stacked_states = 1
        self.minibatch_queue_size = 2
        self.max_consecutive_skipped_updates = 100

        # The learner pushes weights to a server of our own (see RunnerStateServer).
        self.use_env_runner_state_server = False
        self.env_runner_cls = TrajectoryEnvRunner
        # In the driver: on a small machine a process of its own costs more than it
        # gives. Set 1 to put the learner on another machine or GPU.
        self.num_learners = 0
        # The next fragment starts while the last one is on its way.
        self.max_requests_in_flight_per_env_runner = 2
        # The driver sleeps until a sample is ready, for at most this long.
        self.timeout_s_sampler_manager = 0.5
        self.min_time_s_per_iteration = 5
        # Without a sample for this long, training stops with an error.
        self.sample_timeout_s = 300.0
        # Failures of one env runner in a row until training stops with its error.
        self.num_consecutive_env_runner_failures_tolerance = 5
        # An actor whose process must end comes back at once.
        self.delay_between_env_runner_restarts_s = 1.0
        # Longer waits would stall the healthy runners while one restarts.
        self.env_runner_health_probe_timeout_s = 0.1

    @override(IMPALAConfig)
    def training(
        self,
        *,
        num_stacked_states: int = NotProvided,
        minibatch_queue_size: int = NotProvided,
        max_consecutive_skipped_updates: int = NotProvided,
        **kwargs: Any,
    ) -> Self:
        """Sets the training-related settings.

        Args:
            num_stacked_states: k of equation 9: how many states make one observation.
            minibatch_queue_size: how many train batches may wait for the learner.
            max_consecutive_skipped_updates: gradient steps skipped in a row (because a
                loss or gradient was not finite, or no data was valid) until training
                stops with an error.
            **kwargs: settings of the parent classes.
        """
        super().training(**kwargs)
        return self.set_given(
            num_stacked_states=num_stacked_states,
            minibatch_queue_size=minibatch_queue_size,
            max_consecutive_skipped_updates=max_consecutive_skipped_updates,
        )

    @override(AlgorithmConfig)
    def env_runners(self, *, vector_backend: str = NotProvided, **kwargs: Any) -> Self:
        """Sets the sampling-related settings.

        Args:
            vector_backend: "auto" takes EnvPool where it has the env with the same
                spaces and gymnasium elsewhere; "envpool" and "gymnasium" insist.
            **kwargs: settings of the parent class.
        """
        super().env_runners(**kwargs)
        return self.set_given(vector_backend=vector_backend)

    def set_given(self, **settings: Any) -> Self:
        """Assigns the settings that a builder method was really called with."""
        for name, value in settings.items():
            if value is not NotProvided:
                setattr(self, name, value)
        return self

    @property
    def steps_per_sample(self) -> int:
        """Env steps in one Trajectory: fragment length times envs per runner."""
        return self.rollout_fragment_length * self.num_envs_per_env_runner

    @property
    def samples_per_batch(self) -> int:
        """How many Trajectories make one train batch of all learners together."""
        return self.total_train_batch_size // self.steps_per_sample

    def why_episodes(self) -> str | None:
        """The reason to sample RLlib episodes instead of Trajectories, or None."""
        connectors = {
            "env_to_module_connector": self._env_to_module_connector,
            "module_to_env_connector": self._module_to_env_connector,
            "learner_connector": self._learner_connector,
        }
        for name, connector in connectors.items():
            if connector is not None:
                return f"{name} is set"
        for name in EPISODE_CALLBACKS:
            if getattr(self, f"callbacks_{name}") is not None or any(
                getattr(cls, name, None) is not getattr(RLlibCallback, name)
                for cls in force_list(self.callbacks_class)
            ):
                return f"the callback {name} is set"
        return None

    def choose_backend(self) -> BackendChoice:
        """What steps the training environments; evaluation is gymnasium's."""
        if self.in_evaluation:
            return BackendChoice("gymnasium", "evaluation always runs there")
        return choose_backend(
            self.vector_backend, self.env, self.env_config, self.why_episodes()
        )

    @override(AlgorithmConfig)
    def get_evaluation_config_object(self) -> AlgorithmConfig | None:
        overrides = self.evaluation_config
        evaluation = super().get_evaluation_config_object()
        if evaluation is not None and not isinstance(overrides, AlgorithmConfig):
            for name, value in EVALUATION_DEFAULTS.items():
                if name not in (overrides or {}):
                    setattr(evaluation, name, value)
        return evaluation

    @override(AlgorithmConfig)
    def build_env_to_module_connector(self, *args: Any, **kwargs: Any) -> ConnectorV2:
        pipeline = super().build_env_to_module_connector(*args, **kwargs)
        if self.add_default_connectors_to_env_to_module_pipeline:
            # After the user's pieces, before RLlib's: it skips present observations.
            pipeline.insert_before(
                AddObservationsFromEpisodesToBatch,
                StackStates(num_stacked_states=self.num_stacked_states),
            )
        return pipeline

    @override(IMPALAConfig)
    def build_learner_connector(self, *args: Any, **kwargs: Any) -> ConnectorV2:
        pipeline = super().build_learner_connector(*args, **kwargs)
        if self.add_default_connectors_to_learner_pipeline:
            pipeline.insert_before(
                AddObservationsFromEpisodesToBatch,
                StackStates(
                    num_stacked_states=self.num_stacked_states,
                    as_learner_connector=True,
                ),
            )
        return pipeline

    @override(IMPALAConfig)
    def validate(self) -> None:
        self._validate_counts()
        # Stacks need k-1 states from before a fragment cut.
        self.episode_lookback_horizon = max(
            self.episode_lookback_horizon, self.num_stacked_states - 1
        )
        # Not IMPALAConfig's own: it wants minibatches of whole fragments, ours are of
        # single transitions.
        super(IMPALAConfig, self).validate()
        # RLlib validates the evaluation config, too; it never trains.
        if not self.in_evaluation:
            self._validate_batches()
            self._validate_optimization()
            self._validate_sampling()
            self._validate_spaces()

    def _validate_counts(self) -> None:
        minima = {
            "num_epochs": 1,
            "max_requests_in_flight_per_env_runner": 1,
            "max_requests_in_flight_per_learner": 1,
            "num_stacked_states": 1,
            "minibatch_queue_size": 1,
            "max_consecutive_skipped_updates": 1,
            "broadcast_interval": 1,
            "num_envs_per_env_runner": 1,
            "num_env_runners": 0,
            "num_learners": 0,
        }
        for name, minimum in minima.items():
            value = getattr(self, name)
            if not isinstance(value, int) or value < minimum:
                self._value_error(
                    f"{name} must be a whole number of at least {minimum}, got "
                    f"{value!r}."
                )
        if self.in_evaluation:
            return
        defaults = ActorLearnerConfig()
        for name, instead in MEANINGLESS_SETTINGS.items():
            if getattr(self, name) != getattr(defaults, name):
                self._value_error(
                    f"{name}={getattr(self, name)!r} has no effect on "
                    f"{self.algo_class.__name__}: {instead}."
                )

    def _validate_batches(self) -> None:
        if not isinstance(self.rollout_fragment_length, int):
            self._value_error(
                "rollout_fragment_length must be a whole number, got "
                f"{self.rollout_fragment_length!r}."
            )
        batch, sample = self.train_batch_size_per_learner, self.steps_per_sample
        if not isinstance(batch, int) or batch < 1 or batch % sample:
            nearest = max(1, round((batch or 0) / sample)) * sample
            self._value_error(
                f"train_batch_size_per_learner={batch} is not a multiple of "
                f"rollout_fragment_length x num_envs_per_env_runner = "
                f"{self.rollout_fragment_length} x {self.num_envs_per_env_runner} = "
                f"{sample}. Set it to {nearest}, or change one of the others."
            )
        size = self.minibatch_size
        if size is not None and not (isinstance(size, int) and 1 <= size <= batch):
            self._value_error(
                f"minibatch_size={size} must be a whole number between 1 and "
                f"train_batch_size_per_learner={batch}, or None for whole batches."
            )

    def _validate_optimization(self) -> None:
        if not 0.0 <= self.gamma <= 1.0:
            self._value_error(f"gamma must be between 0 and 1, got {self.gamma}.")
        if self.grad_clip is not None and not self.grad_clip > 0.0:
            self._value_error(
                f"grad_clip must be above 0, or None for no clip, got {self.grad_clip}."
            )
        if isinstance(self.lr, float | int) and not self.lr > 0.0:
            self._value_error(f"lr must be above 0, got {self.lr}.")

    def _validate_sampling(self) -> None:
        if self.vector_backend not in BACKENDS:
            self._value_error(
                f"vector_backend={self.vector_backend!r} must be one of "
                f"{', '.join(map(repr, BACKENDS))}."
            )
        if self.batch_mode != "truncate_episodes":
            self._value_error(
                f"batch_mode={self.batch_mode!r} is not supported: actors send "
                "fragments of fixed length. Use 'truncate_episodes'."
            )
        if not self.explore:
            self._value_error(
                "explore=False would train on actions without exploration. Set it in "
                "evaluation(evaluation_config={'explore': False}) only."
            )
        if self.is_multi_agent:
            self._value_error("multi-agent environments are not supported.")
        self.choose_backend()

    def _validate_spaces(self) -> None:
        observation_space, action_space = self._spaces()
        stacked_space(observation_space, self.num_stacked_states)
        if not isinstance(action_space, gym.spaces.Box) or not np.issubdtype(
            action_space.dtype, np.floating
        ):
            self._value_error(
                f"env={self.env!r} has the action space {action_space}; only "
                "continuous (Box) actions are supported."
            )
        if not action_space.is_bounded():
            self._value_error(
                f"env={self.env!r} has unbounded actions {action_space}, so there is "
                "no scale to explore at. Wrap the env with a bounded action space "
                "(gymnasium.wrappers.RescaleAction)."
            )
        if math.prod(action_space.shape) == 0 or len(action_space.shape) != 1:
            self._value_error(
                f"env={self.env!r} has actions of shape {action_space.shape}; they "
                "must be a vector."
            )

    def _spaces(self) -> tuple[gym.Space, gym.Space]:
        if self.env is None:
            self._value_error("env is not set: use .environment('Hopper-v5').")
        if self.observation_space is not None and self.action_space is not None:
            return self.observation_space, self.action_space
        try:
            _, creator = Algorithm._get_env_id_and_creator(self.env, self)
            env = creator(EnvContext(self.env_config, worker_index=0))
        except Exception as error:
            # From None: RLlib's own text repeats itself over thirty lines.
            cause = error.__cause__ or error.__context__ or error
            raise ValueError(
                f"env={self.env!r} with env_config={self.env_config} cannot be "
                f"created: {cause}"
            ) from None
        try:
            return env.observation_space, env.action_space
        finally:
            env.close()
