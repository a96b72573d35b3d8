"""IMPASS: IMPALA for continuous control with stacked states.

Xu et al., "Distributed Reinforcement Learning with States Feature Encoding and States
Stacking in Continuous Action Space". README.md beside this file lists every setting and
every deviation from the paper.
"""

import difflib
import math
from typing import Any

from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig, NotProvided
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.utils.annotations import override
from ray.rllib.utils.schedules.scheduler import Scheduler
from typing_extensions import Self

from rllib_impass.algorithms.actor_learner import ActorLearner
from rllib_impass.algorithms.actor_learner_config import ActorLearnerConfig
from rllib_impass.algorithms.impass.impass_learner import IMPASSLearner
from rllib_impass.algorithms.impass.impass_rl_module import (
    ACTIVATIONS,
    GaussianEncoderRLModule,
)

# What `rl_module(model_config={...})` may set, with defaults.
MODEL_DEFAULTS: dict[str, Any] = {
    "fcnet_hiddens": [64, 64],
    "fcnet_activation": "tanh",
    "observation_clip": 10.0,
    "initial_sigma": 0.7,
    "sigma_floor": 0.1,
    "sigma_ceiling": 1.0,
}


class IMPASSConfig(ActorLearnerConfig):
    """Configures IMPASS.

    .. code-block:: python

        from rllib_impass import IMPASSConfig

        algo = IMPASSConfig().environment("Hopper-v5").build_algo()
        print(algo.train()["env_runners"]["episode_return_mean"])
    """

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class=algo_class or IMPASS)

        self.num_stacked_states = 4
        self.vtrace_clip_c_threshold = 1.0
        self.vtrace_lambda = 0.95
        self.critic_lr = 1e-3
        self.normalize_observations = True
        self.scale_rewards = True
        self.normalize_advantages = True
        self.policy_ratio_clip: float | None = 0.2

        # Defaults of the parent classes that serve continuous control better.
        self.lr = 3e-4
        self.grad_clip = 0.5
        self.vf_loss_coeff = 0.5
        self.entropy_coeff = 0.0
        self.num_env_runners = 2
        self.num_envs_per_env_runner = 32
        self.rollout_fragment_length = 32
        # Two fragments make a batch: with two runners, both start the next fragment
        # while this one is trained, at a lag of about one version.
        self.train_batch_size_per_learner = 2048
        self.minibatch_size = 128

    @override(ActorLearnerConfig)
    def training(
        self,
        *,
        vtrace_clip_c_threshold: float = NotProvided,
        vtrace_lambda: float = NotProvided,
        critic_lr: float | list = NotProvided,
        normalize_observations: bool = NotProvided,
        scale_rewards: bool = NotProvided,
        normalize_advantages: bool = NotProvided,
        policy_ratio_clip: float | None = NotProvided,
        **kwargs: Any,
    ) -> Self:
        """Sets the training-related settings.

        Args:
            vtrace_clip_c_threshold: c-bar: bounds how far targets reach along
                off-policy steps. rho-bar and its policy-gradient twin are RLlib's
                ``vtrace_clip_rho_threshold`` and ``vtrace_clip_pg_rho_threshold``.
            vtrace_lambda: scales c; 1 is the paper's V-trace.
            critic_lr: learning rate of the critic, a number or RLlib's schedule
                ``[[step, value], ...]``; ``lr`` is the encoder's.
            normalize_observations: shift and scale single states by running statistics.
            scale_rewards: divide rewards by the running standard deviation of the
                discounted return. Reported returns stay raw.
            normalize_advantages: zero mean and unit deviation in each batch.
            policy_ratio_clip: how far pi/mu may leave 1 before a step loses its policy
                gradient (PPO's clip), a guard against lag; None is the paper.
            **kwargs: settings of the parent classes.
        """
        super().training(**kwargs)
        return self.set_given(
            vtrace_clip_c_threshold=vtrace_clip_c_threshold,
            vtrace_lambda=vtrace_lambda,
            critic_lr=critic_lr,
            normalize_observations=normalize_observations,
            scale_rewards=scale_rewards,
            normalize_advantages=normalize_advantages,
            policy_ratio_clip=policy_ratio_clip,
        )

    @override(ActorLearnerConfig)
    def validate(self) -> None:
        self._validate_model()
        self._validate_vtrace()
        super().validate()
        schedules = {"critic_lr": "learning rate", "entropy_coeff": "entropy weight"}
        for name, description in schedules.items():
            Scheduler.validate(
                fixed_value_or_schedule=getattr(self, name),
                setting_name=name,
                description=description,
            )

    @override(AlgorithmConfig)
    def get_default_learner_class(self) -> type[IMPASSLearner]:
        return IMPASSLearner

    @override(AlgorithmConfig)
    def get_default_rl_module_spec(self) -> RLModuleSpec:
        return RLModuleSpec(module_class=GaussianEncoderRLModule)

    @property
    @override(AlgorithmConfig)
    def _model_config_auto_includes(self) -> dict[str, Any]:
        return super()._model_config_auto_includes | {
            **MODEL_DEFAULTS,
            "num_stacked_states": self.num_stacked_states,
            "normalize_observations": self.normalize_observations,
        }

    def _validate_model(self) -> None:
        # RLlib's DefaultModelConfig has keys for many modules; a dict names ours.
        if isinstance(self._model_config, dict):
            for key in self._model_config:
                if key not in MODEL_DEFAULTS:
                    close = difflib.get_close_matches(key, MODEL_DEFAULTS, n=1)
                    hint = f"did you mean {close[0]!r}? " if close else ""
                    self._value_error(
                        f"model_config has no setting {key!r}: {hint}There are "
                        f"{', '.join(MODEL_DEFAULTS)}."
                    )
        model = self.model_config
        if not model["fcnet_hiddens"]:
            self._value_error("model_config['fcnet_hiddens'] must name a layer's size.")
        if model["fcnet_activation"] not in ACTIVATIONS:
            self._value_error(
                f"model_config['fcnet_activation']={model['fcnet_activation']!r} must "
                f"be one of {', '.join(ACTIVATIONS)}."
            )
        floor, initial = model["sigma_floor"], model["initial_sigma"]
        if not 0.0 < floor < initial <= model["sigma_ceiling"]:
            self._value_error(
                "model_config must keep 0 < sigma_floor < initial_sigma <= "
                f"sigma_ceiling, got {floor}, {initial}, {model['sigma_ceiling']}."
            )

    def _validate_vtrace(self) -> None:
        for name in (
            "vtrace_clip_rho_threshold",
            "vtrace_clip_pg_rho_threshold",
            "vtrace_clip_c_threshold",
        ):
            value = getattr(self, name)
            if not isinstance(value, float | int) or not value > 0.0:
                self._value_error(f"{name} must be above 0, got {value}.")
        if not 0.0 <= self.vtrace_lambda <= 1.0:
            self._value_error(
                f"vtrace_lambda must be between 0 and 1, got {self.vtrace_lambda}."
            )
        clip = self.policy_ratio_clip
        if clip is not None and not 0.0 < clip < math.inf:
            self._value_error(
                f"policy_ratio_clip must be above 0, or None for no clip, got {clip}."
            )
        if clip is not None and self.vtrace_clip_pg_rho_threshold != 1.0:
            self._value_error(
                "vtrace_clip_pg_rho_threshold has no effect while policy_ratio_clip is "
                "set: the clipped objective brings the importance weight itself. Set "
                "policy_ratio_clip=None."
            )


class IMPASS(ActorLearner):
    """IMPALA with stacked states, a Gaussian encoder and a FIFO minibatch queue."""

    @classmethod
    @override(Algorithm)
    def get_default_config(cls) -> IMPASSConfig:
        return IMPASSConfig()


class IMPALANoSSConfig(IMPASSConfig):
    """Configures the ablation: IMPASS without states stacking."""

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class=algo_class or IMPALANoSS)
        self.num_stacked_states = 1


class IMPALANoSS(IMPASS):
    """The paper's ablation "IMPALA-noSS": a policy of single states."""

    @classmethod
    @override(Algorithm)
    def get_default_config(cls) -> IMPALANoSSConfig:
        return IMPALANoSSConfig()
