"""The IMPASS learner: one V-trace computation, then minibatches, then discard.

Equation numbers refer to the IMPASS paper.
"""

import math
from typing import Any

import torch
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from ray.rllib.core.learner.learner import Learner
from ray.rllib.core.rl_module.apis import InferenceOnlyAPI, ValueFunctionAPI
from ray.rllib.core.rl_module.torch.torch_rl_module import TorchRLModule
from ray.rllib.utils.annotations import override
from ray.rllib.utils.checkpoints import Checkpointable
from ray.rllib.utils.metrics import (
    NUM_ENV_STEPS_SAMPLED_LIFETIME,
)
from ray.rllib.utils.schedules.scheduler import Scheduler
from ray.rllib.utils.typing import ModuleID, StateDict
from torch import Tensor

from rllib_impass.algorithms.actor_critic_learner import ActorCriticLearner
from rllib_impass.algorithms.async_learner import AsyncLearner
from rllib_impass.algorithms.collectives import (
    max_over_learners,
    moments_over_learners,
)
from rllib_impass.algorithms.impass.impass_rl_module import GaussianEncoderRLModule
from rllib_impass.algorithms.impass.targets import (
    OffPolicyness,
    Targets,
    compute_targets,
)
from rllib_impass.algorithms.impass.train_batch import (
    TrainBatch,
    empty_batch,
    from_episode_columns,
    from_trajectories,
)
from rllib_impass.env.trajectory import Trajectory
from rllib_impass.ops import gaussian
from rllib_impass.ops.moments import Moments, batch_moments, merge_moments
from rllib_impass.ops.policy_gradient import masked_mean, policy_objective

POLICY_LOSS = "policy_loss"
VALUE_LOSS = "value_loss"
ENTROPY = "entropy"
ENTROPY_COEFF = "entropy_coeff"
KL = "kl_behaviour_target"
RHO_MEAN = "rho_mean"
RHO_CLIPPED = "rho_clipped_fraction"
POLICY_LAG_MEAN = "policy_lag_mean"
POLICY_LAG_MAX = "policy_lag_max"
REWARD_SCALE = "reward_scale"

RETURN_MOMENTS = "return_moments"


class IMPASSLearner(ActorCriticLearner):
    """Trains a Gaussian encoder and its critic on each batch exactly once."""

    policy_name = "encoder"

    @override(AsyncLearner)
    def set_up_training(self) -> None:
        super().set_up_training()
        self._return_moments = Moments(
            *(torch.tensor(x, dtype=torch.double) for x in (0.0, [0.0], [1.0]))
        )
        self._shuffle = torch.Generator()
        if self.config.seed is not None:
            self._shuffle.manual_seed(self.config.seed)
        self._entropy_coeff = Scheduler(
            fixed_value_or_schedule=self.config.entropy_coeff
        )

    @classmethod
    @override(Learner)
    def rl_module_required_apis(cls) -> list[type]:
        return [ValueFunctionAPI, InferenceOnlyAPI]

    @override(ActorCriticLearner)
    def critic_attributes(self, module: TorchRLModule) -> tuple[str, ...]:
        return tuple(module.get_non_inference_attributes())

    @override(AsyncLearner)
    def train_on(self, samples: list[Any], timesteps: dict[str, Any]) -> None:
        with self._metrics_lock:
            self.before_gradient_based_update(timesteps=timesteps)
        self._entropy_coeff.update(timesteps.get(NUM_ENV_STEPS_SAMPLED_LIFETIME, 0))
        batch = self._make_batch(samples).to(self._device)
        self._update_statistics(batch)
        targets = self._compute_targets(batch)
        self._train_in_minibatches(batch, targets)
        self.log_noted()
        with self._metrics_lock:
            self.after_gradient_based_update(timesteps=timesteps)
        self.log_steps_trained(int(batch.valid.sum()))

    @override(Learner)
    def compute_loss_for_module(
        self,
        *,
        module_id: ModuleID,
        config: AlgorithmConfig,
        batch: dict[str, Tensor],
        fwd_out: dict[str, Tensor],
    ) -> Tensor:
        """The three gradients of § 4.3, added up with their coefficients."""
        mean, sigma = gaussian.means_and_sigmas(fwd_out[Columns.ACTION_DIST_INPUTS])
        log_pi = gaussian.log_prob(batch[Columns.ACTIONS], mean, sigma)
        values = self.module[module_id].compute_values(
            batch, embeddings=fwd_out.get(Columns.EMBEDDINGS)
        )
        valid = batch[Columns.LOSS_MASK].float()

        objective = policy_objective(
            log_pi,
            batch[Columns.ACTION_LOGP],
            batch[Columns.ADVANTAGES],
            ratio_clip=config.policy_ratio_clip,
            clip_pg_rho=config.vtrace_clip_pg_rho_threshold,
        )
        policy_loss = -masked_mean(objective, valid)
        errors = values - batch[Columns.VALUE_TARGETS]
        value_loss = 0.5 * masked_mean(errors.square(), valid)
        entropy = masked_mean(gaussian.entropy(sigma), valid)
        self.note(
            {
                POLICY_LOSS: policy_loss.item(),
                VALUE_LOSS: value_loss.item(),
                ENTROPY: entropy.item(),
            }
        )
        return (
            policy_loss
            + config.vf_loss_coeff * value_loss
            # Maximised, against the paper's wording: it is there to explore.
            - self._entropy_coeff.get_current_value() * entropy
        )

    @override(Checkpointable)
    def get_state(self, *args: Any, **kwargs: Any) -> StateDict:
        with self._weights_lock:
            state = super().get_state(*args, **kwargs)
            state[RETURN_MOMENTS] = [moment.numpy() for moment in self._return_moments]
            return state

    @override(Checkpointable)
    def set_state(self, state: StateDict) -> None:
        # Not under the lock, which the thread needs to finish what is queued.
        super().set_state(state)
        with self._weights_lock:
            if RETURN_MOMENTS in state:
                moments = state[RETURN_MOMENTS]
                self._return_moments = Moments(
                    *(torch.as_tensor(x, dtype=torch.double) for x in moments)
                )

    def _make_batch(self, samples: list[Any]) -> TrainBatch:
        if not samples:
            module = self.module[DEFAULT_MODULE_ID]
            return empty_batch(module.observation_space, module.action_space)
        if isinstance(samples[0], Trajectory):
            return from_trajectories(samples)
        with self._metrics_lock:
            columns = self._learner_connector(
                rl_module=self.module,
                batch={},
                episodes=samples,
                shared_data={},
                metrics=self.metrics,
            )
        return from_episode_columns(columns[DEFAULT_MODULE_ID])

    @torch.no_grad()
    def _update_statistics(self, batch: TrainBatch) -> None:
        """Feeds the observation normaliser and the reward scale, on valid steps."""
        valid = batch.valid.flatten()
        module = self.module[DEFAULT_MODULE_ID]
        if (
            isinstance(module, GaussianEncoderRLModule)
            and module.normalizer is not None
        ):
            states = batch.states[:-1].flatten(0, 1)
            self.update_normalizer(module.normalizer, states, valid)
        if self.config.scale_rewards:
            returns = batch.returns.reshape(-1, 1)
            moments = moments_over_learners(batch_moments(returns, valid))
            self._return_moments = merge_moments(
                self._return_moments, Moments(*(m.cpu() for m in moments))
            )

    @property
    def _reward_scale(self) -> float:
        if not self.config.scale_rewards:
            return 1.0
        return float((self._return_moments.var + 1e-8).rsqrt())

    def _compute_targets(self, batch: TrainBatch) -> Targets:
        targets, off_policyness = compute_targets(
            self.module[DEFAULT_MODULE_ID],
            batch,
            self.config,
            reward_scale=self._reward_scale,
        )
        self._log_off_policyness(batch, off_policyness)
        return targets

    def _train_in_minibatches(self, batch: TrainBatch, targets: Targets) -> None:
        columns = {
            Columns.OBS: batch.states[:-1].flatten(0, 1),
            Columns.ACTIONS: batch.actions.flatten(0, 1),
            Columns.ACTION_LOGP: targets.log_mu.flatten(),
            Columns.ADVANTAGES: targets.advantages.flatten(),
            Columns.VALUE_TARGETS: targets.vs.flatten(),
            Columns.LOSS_MASK: batch.valid.flatten(),
        }
        num_rows = len(columns[Columns.LOSS_MASK])
        size = self.config.minibatch_size or num_rows
        num_minibatches = max_over_learners(math.ceil(num_rows / size), self._device)
        for _ in range(self.config.num_epochs):
            order = torch.randperm(num_rows, generator=self._shuffle).to(self._device)
            shuffled = {name: column[order] for name, column in columns.items()}
            for i in range(num_minibatches):
                # Past its own end a learner still contributes, with weight zero.
                rows = slice(i * size, (i + 1) * size)
                minibatch = {name: column[rows] for name, column in shuffled.items()}
                self._take_gradient_step(minibatch)

    def _take_gradient_step(self, minibatch: dict[str, Tensor]) -> None:
        module = self.module[DEFAULT_MODULE_ID]
        for optimizer in self.optimizers().values():
            optimizer.zero_grad(set_to_none=True)
        loss = self.compute_loss_for_module(
            module_id=DEFAULT_MODULE_ID,
            config=self.config,
            batch=minibatch,
            fwd_out=module.forward_train(minibatch),
        )
        loss.backward()
        self.apply_gradients_of(loss, minibatch[Columns.LOSS_MASK].sum())

    def _log_off_policyness(self, batch: TrainBatch, measured: OffPolicyness) -> None:
        if not batch.valid.any():
            return
        lags = (self._weights_seq_no - batch.weights_versions)[batch.valid].float()
        is_clipped = measured.rhos > self.config.vtrace_clip_rho_threshold
        self.log_values(
            {
                RHO_MEAN: measured.rhos.mean().item(),
                RHO_CLIPPED: is_clipped.float().mean().item(),
                KL: measured.kl.mean().item(),
                POLICY_LAG_MEAN: lags.mean().item(),
                REWARD_SCALE: self._reward_scale,
                ENTROPY_COEFF: float(self._entropy_coeff.get_current_value()),
            },
            key=DEFAULT_MODULE_ID,
        )
        with self._metrics_lock:
            key = (DEFAULT_MODULE_ID, POLICY_LAG_MAX)
            self.metrics.log_value(key, lags.max().item(), reduce="max", window=100)
