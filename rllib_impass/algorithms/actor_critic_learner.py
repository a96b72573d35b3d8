"""What learners of a policy and its critic share, whatever their losses are."""

import abc
from collections import defaultdict
from typing import ClassVar

import torch
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.core import ALL_MODULES, DEFAULT_MODULE_ID
from ray.rllib.core.learner.learner import Learner
from ray.rllib.core.rl_module.torch.torch_rl_module import TorchRLModule
from ray.rllib.utils.annotations import override
from ray.rllib.utils.metrics import (
    NUM_ENV_STEPS_TRAINED,
    NUM_ENV_STEPS_TRAINED_LIFETIME,
)
from ray.rllib.utils.typing import ModuleID
from torch import Tensor
from torch.optim import Optimizer

from rllib_impass.algorithms.async_learner import AsyncLearner
from rllib_impass.algorithms.collectives import moments_over_learners
from rllib_impass.algorithms.guarded_updates import GuardedUpdates
from rllib_impass.algorithms.networks import ObservationNormalizer
from rllib_impass.ops.moments import batch_moments

CRITIC = "critic"
GRAD_NORM = "grad_norm"
NUM_SKIPPED_UPDATES = "num_skipped_updates_lifetime"


class ActorCriticLearner(AsyncLearner, abc.ABC):
    """Trains a policy and a critic, each with an Adam and a gradient clip of its own.

    Attributes:
        policy_name: what the policy is called in metrics.
    """

    policy_name: ClassVar[str]

    @override(AsyncLearner)
    def set_up_training(self) -> None:
        super().set_up_training()
        self._updates = GuardedUpdates(
            grad_clip=self.config.grad_clip,
            max_skipped_in_a_row=self.config.max_consecutive_skipped_updates,
        )
        self._noted: defaultdict[str, list[float]] = defaultdict(list)

    @abc.abstractmethod
    def critic_attributes(self, module: TorchRLModule) -> tuple[str, ...]:
        """Attributes of the module that belong to the critic."""

    @override(Learner)
    def configure_optimizers_for_module(
        self, module_id: ModuleID, config: AlgorithmConfig | None = None
    ) -> None:
        """One Adam each for the policy and the critic, with rates of their own."""
        module = self.module[module_id]
        critic_attributes = self.critic_attributes(module)
        groups: dict[str, list[Tensor]] = {self.policy_name: [], CRITIC: []}
        for name, parameter in module.named_parameters():
            if parameter.requires_grad:
                is_critic = name.startswith(critic_attributes)
                groups[CRITIC if is_critic else self.policy_name].append(parameter)
        rates = {self.policy_name: config.lr, CRITIC: config.critic_lr}
        for name, parameters in groups.items():
            self.register_optimizer(
                module_id=module_id,
                optimizer_name=name,
                optimizer=torch.optim.Adam(parameters, eps=1e-5, fused=True),
                params=parameters,
                lr_or_lr_schedule=rates[name],
            )

    def optimizers(self) -> dict[str, Optimizer]:
        """The optimizers by the name of what they train."""
        return {
            name.split("_")[-1]: optimizer
            for name, optimizer in self.get_optimizers_for_module(DEFAULT_MODULE_ID)
        }

    def apply_gradients_of(self, loss: Tensor, num_valid: Tensor) -> bool:
        """Steps the optimizers with the gradients that are there, if all are finite.

        Args:
            loss: what they are gradients of.
            num_valid: how many steps it is the mean of.

        Returns:
            Whether the weights have changed.
        """
        norms = self._updates.step(self.optimizers(), loss, num_valid)
        if norms is None:
            with self._metrics_lock:
                key = (DEFAULT_MODULE_ID, NUM_SKIPPED_UPDATES)
                self.metrics.log_value(key, 1, reduce="lifetime_sum")
            return False
        self.note({f"{name}_{GRAD_NORM}": norm for name, norm in norms.items()})
        return True

    @torch.no_grad()
    def update_normalizer(
        self, normalizer: ObservationNormalizer, states: Tensor, valid: Tensor
    ) -> None:
        """Feeds the newest frame of each valid stacked state, ``[N, k * d]``."""
        frames = states[:, -len(normalizer.mean) :]
        normalizer.update(moments_over_learners(batch_moments(frames, valid)))

    def note(self, values: dict[str, float]) -> None:
        """Keeps what one gradient step measured; their means are logged, once."""
        for name, value in values.items():
            self._noted[name].append(value)

    def log_noted(self) -> None:
        """Logs the mean of all that was noted since the last time."""
        means = {name: sum(x) / len(x) for name, x in self._noted.items()}
        self._noted.clear()
        self.log_values(means, key=DEFAULT_MODULE_ID)

    def log_steps_trained(self, num_steps: int) -> None:
        """Counts steps that the optimizers have seen."""
        with self._metrics_lock:
            self.metrics.log_value(
                (ALL_MODULES, NUM_ENV_STEPS_TRAINED), num_steps, reduce="sum"
            )
            self.metrics.log_value(
                (ALL_MODULES, NUM_ENV_STEPS_TRAINED_LIFETIME),
                num_steps,
                reduce="lifetime_sum",
                with_throughput=True,
            )
