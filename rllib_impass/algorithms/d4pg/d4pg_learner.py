"""The D4PG learner: a replay buffer, and updates in a set ratio to what goes in.

Barth-Maron et al., "Distributed Distributional Deterministic Policy Gradients",
https://arxiv.org/abs/1804.08617, Algorithm 1.
"""

import logging
from collections.abc import Collection
from typing import Any

import numpy as np
import torch
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.learner.learner import Learner
from ray.rllib.core.rl_module.apis import InferenceOnlyAPI
from ray.rllib.core.rl_module.torch.torch_rl_module import TorchRLModule
from ray.rllib.utils.annotations import override
from ray.rllib.utils.checkpoints import Checkpointable
from ray.rllib.utils.metrics import NUM_ENV_STEPS_SAMPLED_LIFETIME
from ray.rllib.utils.schedules.scheduler import Scheduler
from ray.rllib.utils.typing import ModuleID, StateDict
from torch import Tensor

from rllib_impass.algorithms.actor_critic_learner import CRITIC, ActorCriticLearner
from rllib_impass.algorithms.async_learner import AsyncLearner
from rllib_impass.algorithms.collectives import max_over_learners, rank
from rllib_impass.algorithms.d4pg.d4pg_rl_module import D4PGRLModule
from rllib_impass.algorithms.d4pg.transitions import (
    ACTIONS,
    DISCOUNTS,
    NEXT_STATES,
    RETURNS,
    STATES,
    Transitions,
    replay_fields,
)
from rllib_impass.ops.deterministic_policy import (
    clip_action_gradients,
    policy_loss,
)
from rllib_impass.utils.replay import PrioritizedReplayBuffer, ReplayBuffer

logger = logging.getLogger(__name__)

CRITIC_LOSS = "critic_loss"
ACTOR_LOSS = "actor_loss"
Q_MEAN = "q_mean"
CLIPPED_MASS = "clipped_target_mass"
POLICY_LAG_MEAN = "policy_lag_mean"
REPLAY_SIZE = "replay_size"
NUM_UPDATES = "num_updates_lifetime"

# Columns of a batch and of what the networks make of it, beside the transitions'.
WEIGHTS = "weights"
VALUES = "values"
TARGETS = "targets"

PROGRESS = "d4pg_progress"
REPLAY = "replay"

# Of the target's mass, on one end of the support, before it is worth a warning.
MAX_CLIPPED_MASS = 0.05


class D4PGLearner(ActorCriticLearner):
    """Stores what arrives and trains on samples of all that is stored."""

    policy_name = "actor"

    @override(AsyncLearner)
    def set_up_training(self) -> None:
        super().set_up_training()
        seed = None if self.config.seed is None else [self.config.seed, rank()]
        self._rng = np.random.default_rng(seed)
        self._beta = Scheduler(fixed_value_or_schedule=self.config.replay_beta)
        self._num_updates = 0
        # Updates that the steps so far have earned and that are still to be made.
        self._updates_due = 0.0
        self._has_warned = False
        self._replay = self._make_replay()
        logger.info(
            "replay: %s transitions, %.0f MB when full",
            f"{self.config.replay_capacity:,}",
            self._replay.nbytes / 1e6,
        )

    @classmethod
    @override(Learner)
    def rl_module_required_apis(cls) -> list[type]:
        return [InferenceOnlyAPI]

    @override(ActorCriticLearner)
    def critic_attributes(self, module: TorchRLModule) -> tuple[str, ...]:
        return (CRITIC,)

    @override(AsyncLearner)
    def train_on(self, samples: list[Any], timesteps: dict[str, Any]) -> None:
        with self._metrics_lock:
            self.before_gradient_based_update(timesteps=timesteps)
        self._beta.update(timesteps.get(NUM_ENV_STEPS_SAMPLED_LIFETIME, 0))
        self._store(samples)
        num_steps = sum(transitions.num_env_steps for transitions in samples)
        for _ in range(self._num_updates_for(num_steps)):
            self._update()
        self.log_noted()
        self._log_progress(samples)
        with self._metrics_lock:
            self.after_gradient_based_update(timesteps=timesteps)
        self.log_steps_trained(num_steps)

    @override(AsyncLearner)
    def weights_for_actors(self) -> StateDict:
        weights = super().weights_for_actors()
        if self.config.act_with_target_policy:
            own = weights[DEFAULT_MODULE_ID]
            for name, tensor in self._networks.target_actor.state_dict().items():
                own[f"actor.{name}"] = tensor.detach().cpu().numpy()
        return weights

    @override(Checkpointable)
    def get_state(
        self,
        components: str | Collection[str] | None = None,
        *,
        not_components: str | Collection[str] | None = None,
        **kwargs: Any,
    ) -> StateDict:
        with self._weights_lock:
            state = super().get_state(
                components, not_components=not_components, **kwargs
            )
            state[PROGRESS] = {
                "num_updates": self._num_updates,
                "updates_due": self._updates_due,
                "rng": self._rng.bit_generator.state,
            }
            # Not for those who only want the weights, as every evaluation does.
            if self.config.store_replay_in_checkpoints and self._check_component(
                REPLAY, components, not_components
            ):
                state[REPLAY] = self._replay.get_state()
            return state

    @override(Checkpointable)
    def set_state(self, state: StateDict) -> None:
        # Not under the lock, which the thread needs to finish what is queued. And not
        # with the buffer, which need not be copied twice.
        super().set_state({k: v for k, v in state.items() if k != REPLAY})
        with self._weights_lock:
            if PROGRESS in state:
                progress = state[PROGRESS]
                self._num_updates = progress["num_updates"]
                self._updates_due = progress["updates_due"]
                # All learners get the first one's state; to draw what it draws would
                # make the others useless.
                if rank() == 0:
                    self._rng.bit_generator.state = progress["rng"]
            # Without the buffer, learning waits until there is enough in it again.
            if REPLAY in state:
                self._replay.set_state(state[REPLAY])

    @property
    def _networks(self) -> D4PGRLModule:
        return self.module[DEFAULT_MODULE_ID]

    def _make_replay(self) -> ReplayBuffer:
        config, module = self.config, self._networks
        fields = replay_fields(
            module.observation_space.shape, module.action_space.shape
        )
        if not config.prioritized_replay:
            return ReplayBuffer(config.replay_capacity, fields)
        return PrioritizedReplayBuffer(
            config.replay_capacity, fields, alpha=config.replay_alpha
        )

    def _store(self, samples: list[Transitions]) -> None:
        for transitions in samples:
            self._replay.add(transitions.columns, transitions.priorities)
        module = self._networks
        if module.normalizer is not None:
            # Once, even for nothing: all learners must take part.
            none = np.empty((0, *module.observation_space.shape), np.float32)
            rows = np.concatenate([none, *(t.columns[STATES] for t in samples)])
            states = torch.from_numpy(rows).to(self._device)
            valid = torch.ones(len(states), dtype=torch.bool, device=states.device)
            self.update_normalizer(module.normalizer, states, valid)

    def _num_updates_for(self, num_steps: int) -> int:
        """How many updates are due now; the same on every learner."""
        starts = self.config.num_steps_sampled_before_learning_starts
        if max_over_learners(int(len(self._replay) < starts), self._device):
            return 0
        num_steps = max_over_learners(num_steps, self._device)
        self._updates_due += num_steps * self.config.updates_per_env_step
        num_updates = int(self._updates_due)
        self._updates_due -= num_updates
        return num_updates

    def _update(self) -> None:
        config = self.config
        if isinstance(self._replay, PrioritizedReplayBuffer):
            self._replay.beta = float(self._beta.get_current_value())
        sample = self._replay.sample(config.train_batch_size_per_learner, self._rng)
        batch = {
            name: torch.from_numpy(array).to(self._device)
            for name, array in (sample.batch | {WEIGHTS: sample.weights}).items()
        }
        for optimizer in self.optimizers().values():
            optimizer.zero_grad(set_to_none=True)
        outputs = self._forward(batch)
        loss = self.compute_loss_for_module(
            module_id=DEFAULT_MODULE_ID, config=config, batch=batch, fwd_out=outputs
        )
        loss.backward()
        if not self.apply_gradients_of(loss, torch.tensor(len(sample.tickets))):
            return
        if isinstance(self._replay, PrioritizedReplayBuffer):
            priorities = self._networks.head.priorities(
                outputs[VALUES], outputs[TARGETS]
            )
            self._replay.update_priorities(sample.tickets, priorities.cpu().numpy())
        self._num_updates += 1
        if self._num_updates % config.target_update_interval == 0:
            self._networks.update_targets(config.tau)

    def _forward(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """The critic's outputs and their targets, and the policy's own actions."""
        module = self._networks
        states = module.normalize(batch[STATES])
        with torch.no_grad():
            next_states = module.normalize(batch[NEXT_STATES])
            next_actions = module.target_actor(next_states)
            targets = module.head.target(
                module.target_critic(next_states, next_actions),
                batch[RETURNS] * self.config.reward_scale,
                batch[DISCOUNTS],
            )
        return {
            STATES: states,
            ACTIONS: module.actor(states),
            VALUES: module.critic(states, batch[ACTIONS]),
            TARGETS: targets,
        }

    @override(Learner)
    def compute_loss_for_module(
        self,
        *,
        module_id: ModuleID,
        config: AlgorithmConfig,
        batch: dict[str, Tensor],
        fwd_out: dict[str, Tensor],
    ) -> Tensor:
        """The sum of both losses, each with gradients of its own network only."""
        module = self.module[module_id]
        errors = module.head.loss(fwd_out[VALUES], fwd_out[TARGETS])
        critic_loss = (batch[WEIGHTS] * errors).mean()

        # Through dQ/da alone, so that the critic's own gradients stay untouched.
        proposed = fwd_out[ACTIONS].detach().requires_grad_()
        q = module.head.mean(module.critic(fwd_out[STATES], proposed))
        (gradients,) = torch.autograd.grad(q.sum(), proposed)
        actor_loss = policy_loss(
            fwd_out[ACTIONS],
            clip_action_gradients(gradients, config.action_gradient_clip),
        )
        self._note_clipped_mass(module.head.clipped_mass(fwd_out[TARGETS]))
        self.note(
            {
                CRITIC_LOSS: critic_loss.item(),
                ACTOR_LOSS: actor_loss.item(),
                Q_MEAN: q.mean().item(),
            }
        )
        return critic_loss + actor_loss

    def _note_clipped_mass(self, mass: dict[str, float]) -> None:
        self.note({f"{CLIPPED_MASS}_{end}": share for end, share in mass.items()})
        settings = {"low": "v_min", "high": "v_max"}
        for end, share in mass.items():
            if share > MAX_CLIPPED_MASS and not self._has_warned:
                self._has_warned = True
                setting = settings[end]
                logger.warning(
                    "%.0f %% of the target's mass is on the end atom %s=%g: returns "
                    "may lie beyond it; widen the support, or scale rewards",
                    100.0 * share,
                    setting,
                    getattr(self.config, setting),
                )

    def _log_progress(self, samples: list[Transitions]) -> None:
        if samples:
            lags = [self._weights_seq_no - t.weights_version for t in samples]
            self.log_values(
                {POLICY_LAG_MEAN: sum(lags) / len(lags)}, key=DEFAULT_MODULE_ID
            )
        self.log_totals(
            {REPLAY_SIZE: len(self._replay), NUM_UPDATES: self._num_updates}
        )
