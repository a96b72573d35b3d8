"""IMPASS: IMPALA for continuous control with stacked states.

Xu et al., "Distributed Reinforcement Learning with States Feature Encoding and States
Stacking in Continuous Action Space". README.md beside this file lists every setting and
every deviation from the paper.
"""

import math
from typing import Any, ClassVar

from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig, NotProvided
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.utils.annotations import override
from ray.rllib.utils.schedules.scheduler import Scheduler
from typing_extensions import Self

from rllib_impass.algorithms.actor_learner import ActorLearner
from rllib_impass.algorithms.actor_learner_config import ActorLearnerConfig
from rllib_impass.algorithms.impass.impass_learner import IMPASSLearner
from rllib_impass.algorithms.impass.impass_rl_module import GaussianEncoderRLModule
from rllib_impass.algorithms.networks import ACTIVATIONS


class IMPASSConfig(ActorLearnerConfig):
    """Configures IMPASS.

    .. code-block:: python

        from rllib_impass import IMPASSConfig

        algo = IMPASSConfig().environment("Hopper-v5").build_algo()
        print(algo.train()["env_runners"]["episode_return_mean"])
    """

    model_defaults: ClassVar[dict[str, Any]] = {
        "fcnet_hiddens": [64, 64],
        "fcnet_activation": "tanh",
        "observation_clip": 10.0,
        "initial_sigma": 0.7,
        "sigma_floor": 0.1,
        "sigma_ceiling": 1.0,
    }

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class=algo_class or IMPASS)

        self.num_stacked_states = 4
        self.vtrace_clip_c_threshold = 1.0
        self.vtrace_lambda = 0.95
        self.scale_rewards = True
        self.normalize_advantages = True
        self.policy_ratio_clip: float | None = 0.2

        # Defaults of the parent classes that serve continuous control better.
        self.lr = 3e-4
        self.grad_clip = 0.5
        self.vf_loss_coeff = 0.5
        self.entropy_coeff = 0.0
        self.num_env_runners = 2
        # Many envs share the Python around each step of all of them.
        self.num_envs_per_env_runner = 64
        self.rollout_fragment_length = 32
        # Two fragments make a batch: with two runners, both start the next fragment
        # while this one is trained, at a lag of about one version.
        self.train_batch_size_per_learner = 4096
        self.minibatch_size = 128

    @override(ActorLearnerConfig)
    def training(
        self,
        *,
        vtrace_clip_c_threshold: float = NotProvided,
        vtrace_lambda: float = NotProvided,
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
            scale_rewards=scale_rewards,
            normalize_advantages=normalize_advantages,
            policy_ratio_clip=policy_ratio_clip,
        )

    @override(ActorLearnerConfig)
    def validate(self) -> None:
        self._validate_model()
        self._validate_vtrace()
        super().validate()
        Scheduler.validate(
            fixed_value_or_schedule=self.entropy_coeff,
            setting_name="entropy_coeff",
            description="entropy weight",
        )
        if not self.in_evaluation:
            self._validate_batches()

    @override(AlgorithmConfig)
    def get_default_learner_class(self) -> type[IMPASSLearner]:
        return IMPASSLearner

    @override(AlgorithmConfig)
    def get_default_rl_module_spec(self) -> RLModuleSpec:
        return RLModuleSpec(module_class=GaussianEncoderRLModule)

    @property
    @override(ActorLearnerConfig)
    def samples_per_batch(self) -> int:
        return self.total_train_batch_size // self.steps_per_sample

    def _validate_model(self) -> None:
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

    def _validate_batches(self) -> None:
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
