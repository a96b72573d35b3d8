"""Settings that all actor-learners share."""

from typing import Any

from ray.rllib.algorithms.algorithm_config import AlgorithmConfig, NotProvided
from ray.rllib.algorithms.impala import IMPALAConfig
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.connectors.learner import AddObservationsFromEpisodesToBatch
from ray.rllib.utils import force_list
from ray.rllib.utils.annotations import override
from typing_extensions import Self

from rllib_impass.algorithms.checked_config import CheckedConfig
from rllib_impass.connectors.stack_states import StackStates
from rllib_impass.env.registration import envpool_view
from rllib_impass.env.trajectory_env_runner import TrajectoryEnvRunner
from rllib_impass.env.vector_envs import BackendChoice, choose_backend

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


class ActorLearnerConfig(CheckedConfig):
    """Base of the configs of IMPASS, IMPALA-noSS and D4PG."""

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class=algo_class)

        self.vector_backend = "auto"
        self.num_stacked_states = 1
        self.critic_lr: float | list = 1e-3
        self.normalize_observations = True
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
        critic_lr: float | list = NotProvided,
        normalize_observations: bool = NotProvided,
        minibatch_queue_size: int = NotProvided,
        max_consecutive_skipped_updates: int = NotProvided,
        **kwargs: Any,
    ) -> Self:
        """Sets the training-related settings.

        Args:
            num_stacked_states: k of equation 9: how many states make one observation.
            critic_lr: learning rate of the critic, a number or RLlib's schedule
                ``[[step, value], ...]``; ``lr`` is the policy's.
            normalize_observations: shift and scale single states by running statistics.
            minibatch_queue_size: how many train batches may wait for the learner.
            max_consecutive_skipped_updates: gradient steps skipped in a row (because a
                loss or gradient was not finite, or no data was valid) until training
                stops with an error.
            **kwargs: settings of the parent classes.
        """
        super().training(**kwargs)
        return self.set_given(
            num_stacked_states=num_stacked_states,
            critic_lr=critic_lr,
            normalize_observations=normalize_observations,
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
    def num_repeated_steps(self) -> int:
        """How many steps each Trajectory repeats of the one before."""
        return 0

    @property
    def steps_per_sample(self) -> int:
        """Env steps in one Trajectory: fragment length times envs per runner."""
        return self.rollout_fragment_length * self.num_envs_per_env_runner

    @property
    def samples_per_batch(self) -> int:
        """How many Trajectories the learners take at a time, all of them together."""
        return max(1, self.num_learners)

    @property
    def steps_per_batch(self) -> int:
        """Env steps that one learner takes at a time."""
        steps = self.samples_per_batch * self.steps_per_sample
        return steps // max(1, self.num_learners)

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

    @property
    def envpool_id(self) -> str:
        """What EnvPool calls the environment, where it steps it."""
        return envpool_view(self.env).env_id

    @property
    @override(AlgorithmConfig)
    def _model_config_auto_includes(self) -> dict[str, Any]:
        return super()._model_config_auto_includes | {
            **self.model_defaults,
            "num_stacked_states": self.num_stacked_states,
            "normalize_observations": self.normalize_observations,
        }

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
