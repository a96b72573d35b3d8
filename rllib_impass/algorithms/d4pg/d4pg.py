"""D4PG: distributed distributional deterministic policy gradients; and Ape-X DPG.

Barth-Maron et al., https://arxiv.org/abs/1804.08617, and Horgan et al.,
https://arxiv.org/abs/1803.00933. README.md beside this file lists every setting and
every deviation from the papers.
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
from rllib_impass.algorithms.checked_config import MEANINGLESS_SETTINGS
from rllib_impass.algorithms.d4pg.d4pg_env_runner import D4PGEnvRunner
from rllib_impass.algorithms.d4pg.d4pg_learner import D4PGLearner
from rllib_impass.algorithms.d4pg.d4pg_rl_module import D4PGRLModule

# Exponent of the noise of the last actor (Ape-X, § 4.1).
_LADDER_EXPONENT = 7.0


class D4PGConfig(ActorLearnerConfig):
    """Configures D4PG.

    .. code-block:: python

        from rllib_impass import D4PGConfig

        config = D4PGConfig().environment("Hopper-v5").training(v_min=-20, v_max=400)
        print(config.build_algo().train()["env_runners"]["episode_return_mean"])
    """

    model_defaults: ClassVar[dict[str, Any]] = {
        "actor_hiddens": [256, 256],
        "critic_hiddens": [256, 256],
        "observation_clip": 10.0,
    }
    meaningless_settings: ClassVar[dict[str, str]] = MEANINGLESS_SETTINGS | {
        "vtrace": "there is none",
        "entropy_coeff_schedule": "set exploration_sigma",
        "grad_clip_by": "gradients are clipped by global norm, actor and critic apart",
        "minibatch_size": "an update takes train_batch_size_per_learner transitions",
        "num_epochs": "set updates_per_env_step",
        "shuffle_batch_per_epoch": "updates sample from the replay buffer",
        "replay_proportion": "set updates_per_env_step",
        "vf_loss_coeff": "set critic_lr",
        "entropy_coeff": "set exploration_sigma",
        "vtrace_clip_rho_threshold": "there is no V-trace",
        "vtrace_clip_pg_rho_threshold": "there is no V-trace",
    }

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class=algo_class or D4PG)

        self.distributional = True
        self.num_atoms = 51
        self.v_min = -150.0
        self.v_max = 150.0
        self.n_step = 5
        self.reward_scale = 1.0
        self.updates_per_env_step = 1 / 8
        self.num_steps_sampled_before_learning_starts = 10_000
        self.replay_capacity = 1_000_000
        self.prioritized_replay = False
        self.replay_alpha = 0.6
        self.replay_beta: float | list = 0.4
        self.store_replay_in_checkpoints = False
        self.target_update_interval = 100
        self.tau = 1.0
        self.action_gradient_clip: float | None = 1.0
        self.exploration_sigma = 0.2
        self.exploration_ladder = False
        self.act_with_target_policy = False

        self.env_runner_cls = D4PGEnvRunner
        self.lr = 3e-4
        self.critic_lr = 3e-4
        self.grad_clip = 40.0
        self.num_env_runners = 2
        self.num_envs_per_env_runner = 8
        self.rollout_fragment_length = 16
        self.train_batch_size_per_learner = 256

    @override(ActorLearnerConfig)
    def training(
        self,
        *,
        distributional: bool = NotProvided,
        num_atoms: int = NotProvided,
        v_min: float = NotProvided,
        v_max: float = NotProvided,
        n_step: int = NotProvided,
        reward_scale: float = NotProvided,
        updates_per_env_step: float = NotProvided,
        num_steps_sampled_before_learning_starts: int = NotProvided,
        replay_capacity: int = NotProvided,
        prioritized_replay: bool = NotProvided,
        replay_alpha: float = NotProvided,
        replay_beta: float | list = NotProvided,
        store_replay_in_checkpoints: bool = NotProvided,
        target_update_interval: int = NotProvided,
        tau: float = NotProvided,
        action_gradient_clip: float | None = NotProvided,
        act_with_target_policy: bool = NotProvided,
        **kwargs: Any,
    ) -> Self:
        """Sets the training-related settings.

        Args:
            distributional: a critic of distributions (D4PG) or of means (Ape-X DPG).
            num_atoms: of the distribution.
            v_min: its smallest discounted return, in scaled rewards.
            v_max: its largest.
            n_step: how many rewards a target looks ahead.
            reward_scale: what rewards are multiplied with before learning. Reported
                returns stay raw.
            updates_per_env_step: gradient steps for each step that is stored.
            num_steps_sampled_before_learning_starts: transitions stored before that.
            replay_capacity: transitions of the buffer.
            prioritized_replay: sample in proportion to the last error.
            replay_alpha: how much so; 0 is uniform.
            replay_beta: how far importance weights correct for it, a number or RLlib's
                schedule ``[[step, value], ...]``.
            store_replay_in_checkpoints: whether a resumed run has its buffer again.
            target_update_interval: updates between two moves of the target networks.
            tau: how far they move; 1 copies.
            action_gradient_clip: largest norm of dQ/da; None for any.
            act_with_target_policy: actors get the target policy, as in Acme.
            **kwargs: settings of the parent classes.
        """
        super().training(**kwargs)
        return self.set_given(
            distributional=distributional,
            num_atoms=num_atoms,
            v_min=v_min,
            v_max=v_max,
            n_step=n_step,
            reward_scale=reward_scale,
            updates_per_env_step=updates_per_env_step,
            num_steps_sampled_before_learning_starts=(
                num_steps_sampled_before_learning_starts
            ),
            replay_capacity=replay_capacity,
            prioritized_replay=prioritized_replay,
            replay_alpha=replay_alpha,
            replay_beta=replay_beta,
            store_replay_in_checkpoints=store_replay_in_checkpoints,
            target_update_interval=target_update_interval,
            tau=tau,
            action_gradient_clip=action_gradient_clip,
            act_with_target_policy=act_with_target_policy,
        )

    @override(ActorLearnerConfig)
    def env_runners(
        self,
        *,
        exploration_sigma: float = NotProvided,
        exploration_ladder: bool = NotProvided,
        **kwargs: Any,
    ) -> Self:
        """Sets the sampling-related settings.

        Args:
            exploration_sigma: deviation of the Gaussian noise on actions in [-1, 1].
            exploration_ladder: Ape-X: the i-th of N actors explores with
                ``sigma ** (1 + 7 i / (N - 1))``, the first one most.
            **kwargs: settings of the parent classes.
        """
        super().env_runners(**kwargs)
        return self.set_given(
            exploration_sigma=exploration_sigma, exploration_ladder=exploration_ladder
        )

    @property
    @override(ActorLearnerConfig)
    def num_repeated_steps(self) -> int:
        return self.n_step - 1

    def exploration_sigma_of(self, worker_index: int) -> float:
        """The noise of one actor; actors are numbered from 1, a local one is 0."""
        if not self.exploration_ladder or self.num_env_runners < 2:
            return self.exploration_sigma
        place = max(0, worker_index - 1) / (self.num_env_runners - 1)
        return self.exploration_sigma ** (1.0 + _LADDER_EXPONENT * place)

    @override(ActorLearnerConfig)
    def validate(self) -> None:
        self._validate_critic()
        self._validate_replay()
        self._validate_policy()
        super().validate()
        Scheduler.validate(
            fixed_value_or_schedule=self.replay_beta,
            setting_name="replay_beta",
            description="importance exponent",
        )

    @override(AlgorithmConfig)
    def get_default_learner_class(self) -> type[D4PGLearner]:
        return D4PGLearner

    @override(AlgorithmConfig)
    def get_default_rl_module_spec(self) -> RLModuleSpec:
        return RLModuleSpec(module_class=D4PGRLModule)

    @property
    @override(ActorLearnerConfig)
    def _model_config_auto_includes(self) -> dict[str, Any]:
        shared = ("distributional", "num_atoms", "v_min", "v_max", "prioritized_replay")
        return super()._model_config_auto_includes | {
            name: getattr(self, name) for name in shared
        }

    def _validate_critic(self) -> None:
        if self.distributional:
            self.check_at_least(2, "num_atoms")
            if not -math.inf < self.v_min < self.v_max < math.inf:
                self._value_error(
                    f"v_min={self.v_min} must be below v_max={self.v_max}, both "
                    "finite: between them lie the discounted returns."
                )
        self.check_at_least(1, "n_step", "target_update_interval")
        if not 0.0 < self.tau <= 1.0:
            self._value_error(f"tau must be above 0 and at most 1, got {self.tau}.")
        self.check_above_zero("reward_scale")

    def _validate_replay(self) -> None:
        batch = "train_batch_size_per_learner"
        starts = "num_steps_sampled_before_learning_starts"
        self.check_at_least(1, "replay_capacity", batch, starts)
        for name in (batch, starts):
            if self.replay_capacity < getattr(self, name):
                self._value_error(
                    f"replay_capacity={self.replay_capacity} must be at least "
                    f"{name}={getattr(self, name)}."
                )
        self.check_above_zero("updates_per_env_step")
        for name in ("replay_alpha", "replay_beta"):
            value = getattr(self, name)
            if isinstance(value, float | int) and not value >= 0.0:
                self._value_error(f"{name} must be at least 0, got {value}.")

    def _validate_policy(self) -> None:
        self.check_above_zero("exploration_sigma")
        if self.exploration_ladder and not self.exploration_sigma < 1.0:
            self._value_error(
                f"exploration_sigma={self.exploration_sigma} must be below 1 for "
                "exploration_ladder: later actors would explore more, not less."
            )
        for name in ("actor_hiddens", "critic_hiddens"):
            if not self.model_config[name]:
                self._value_error(f"model_config[{name!r}] must name a layer's size.")
        clip = self.action_gradient_clip
        if clip is not None and not clip > 0.0:
            self._value_error(
                "action_gradient_clip must be above 0, or None for no clip, got "
                f"{clip}."
            )
        if not self.in_evaluation and (why := self.why_episodes()) is not None:
            self._value_error(
                f"{why}, but {self.algo_class.__name__} learns from transitions, not "
                "from RLlib's episodes. Set it in evaluation_config, or leave it out."
            )


class D4PG(ActorLearner):
    """Distributed distributional deterministic policy gradients."""

    @classmethod
    @override(Algorithm)
    def get_default_config(cls) -> D4PGConfig:
        return D4PGConfig()


class ApexDPGConfig(D4PGConfig):
    """Configures Ape-X DPG: a scalar critic, prioritised replay, a ladder of noise."""

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class=algo_class or ApexDPG)
        self.distributional = False
        self.prioritized_replay = True
        self.exploration_ladder = True


class ApexDPG(D4PG):
    """Ape-X with deterministic policy gradients."""

    @classmethod
    @override(Algorithm)
    def get_default_config(cls) -> ApexDPGConfig:
        return ApexDPGConfig()
