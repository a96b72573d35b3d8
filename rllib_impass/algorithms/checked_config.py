"""The checks that guard the settings of all actor-learners."""

import dataclasses
import difflib
import math
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.impala import IMPALAConfig
from ray.rllib.env.env_context import EnvContext
from ray.rllib.utils.annotations import override
from ray.rllib.utils.schedules.scheduler import Scheduler

from rllib_impass.connectors.stack_states import stacked_space
from rllib_impass.env.vector_envs import BACKENDS

# Settings of RLlib's IMPALA that nothing here would read.
MEANINGLESS_SETTINGS: dict[str, str] = {
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
    "epsilon": "Adam's is 1e-5",
    "momentum": "the optimizer is Adam",
    "decay": "the optimizer is Adam",
    "_separate_vf_optimizer": "the critic always has an optimizer of its own",
    "_lr_vf": "set critic_lr",
    "learner_queue_timeout": "the learner waits for as long as it takes",
    "num_gpu_loader_threads": "learners load their batches themselves",
    "replay_buffer_num_slots": "every step is trained once",
    "timeout_s_aggregator_manager": "learners batch trajectories themselves",
    "_env_runners_only": "`rllib benchmark throughput` measures sampling",
    "_skip_learners": "`rllib benchmark throughput` measures sampling",
}


class CheckedConfig(IMPALAConfig):
    """Refuses what cannot be meant, in ``validate()``, with the reason.

    Attributes:
        model_defaults: what ``rl_module(model_config={...})`` may set, with defaults.
        meaningless_settings: inherited settings that do nothing, and what does instead.
    """

    model_defaults: ClassVar[dict[str, Any]] = {}
    meaningless_settings: ClassVar[dict[str, str]] = MEANINGLESS_SETTINGS

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
            self._validate_fragments()
            self._validate_model_keys()
            self._validate_optimization()
            self._validate_sampling()
            self._validate_spaces()

    def check_at_least(self, minimum: int, *names: str) -> None:
        """Refuses settings that are no whole numbers, or too small ones."""
        for name in names:
            value = getattr(self, name)
            if not isinstance(value, int) or value < minimum:
                self._value_error(
                    f"{name} must be a whole number of at least {minimum}, got "
                    f"{value!r}."
                )

    def check_above_zero(self, *names: str) -> None:
        """Refuses settings that are no numbers above 0."""
        for name in names:
            value = getattr(self, name)
            if not isinstance(value, float | int) or not value > 0.0:
                self._value_error(f"{name} must be above 0, got {value!r}.")

    def _validate_counts(self) -> None:
        self.check_at_least(
            1,
            "num_epochs",
            "max_requests_in_flight_per_env_runner",
            "max_requests_in_flight_per_learner",
            "num_stacked_states",
            "minibatch_queue_size",
            "max_consecutive_skipped_updates",
            "broadcast_interval",
            "num_envs_per_env_runner",
        )
        self.check_at_least(0, "num_env_runners", "num_learners")
        if self.in_evaluation:
            return
        defaults = type(self)()
        for name, instead in self.meaningless_settings.items():
            if getattr(self, name) != getattr(defaults, name):
                self._value_error(
                    f"{name}={getattr(self, name)!r} has no effect on "
                    f"{self.algo_class.__name__}: {instead}."
                )

    def _validate_fragments(self) -> None:
        if not isinstance(self.rollout_fragment_length, int):
            self._value_error(
                "rollout_fragment_length must be a whole number, got "
                f"{self.rollout_fragment_length!r}."
            )

    def _validate_model_keys(self) -> None:
        given = self._model_config
        if not isinstance(given, dict):
            # RLlib's DefaultModelConfig has keys for many modules: those set count.
            defaults = dataclasses.asdict(type(given)())
            values = dataclasses.asdict(given)
            given = [key for key in values if values[key] != defaults[key]]
        for key in given:
            if key not in self.model_defaults:
                close = difflib.get_close_matches(key, self.model_defaults, n=1)
                hint = f"did you mean {close[0]!r}? " if close else ""
                self._value_error(
                    f"model_config has no setting {key!r}: {hint}There are "
                    f"{', '.join(self.model_defaults)}."
                )

    def _validate_optimization(self) -> None:
        if not 0.0 <= self.gamma <= 1.0:
            self._value_error(f"gamma must be between 0 and 1, got {self.gamma}.")
        if self.grad_clip is not None and not self.grad_clip > 0.0:
            self._value_error(
                f"grad_clip must be above 0, or None for no clip, got {self.grad_clip}."
            )
        for name in ("lr", "critic_lr"):
            value = getattr(self, name)
            if isinstance(value, float | int) and not value > 0.0:
                self._value_error(f"{name} must be above 0, got {value}.")
        Scheduler.validate(
            fixed_value_or_schedule=self.critic_lr,
            setting_name="critic_lr",
            description="learning rate",
        )

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
