"""The D4PG actor: noise of its own, transitions instead of Trajectories."""

import dataclasses
from typing import Any

import torch
from ray.rllib.env.env_runner import EnvRunner
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner
from ray.rllib.utils.annotations import override

from rllib_impass.algorithms.d4pg import transitions as columns
from rllib_impass.algorithms.d4pg.transitions import Transitions, to_transitions
from rllib_impass.env.trajectory_env_runner import TrajectoryEnvRunner


class D4PGEnvRunner(TrajectoryEnvRunner):
    """Looks n steps ahead where the data is made: the learner has enough to do."""

    @override(EnvRunner)
    def make_module(self) -> None:
        super().make_module()
        if self.module is not None:
            self.module.exploration_sigma = self.config.exploration_sigma_of(
                self.worker_index
            )

    @override(SingleAgentEnvRunner)
    def _sample(self, **kwargs: Any) -> list[Any]:
        samples = super()._sample(**kwargs)
        if self._recorder is None:
            return samples
        (trajectory,) = samples
        made = to_transitions(trajectory, gamma=self.config.gamma, n=self.config.n_step)
        if self.config.prioritized_replay:
            made = dataclasses.replace(made, priorities=self._priorities(made))
        return [made]

    @torch.inference_mode()
    def _priorities(self, made: Transitions) -> columns.Array:
        """By this actor's own networks, as in Ape-X (Horgan et al., algorithm 1)."""
        module = self.module
        tensors = {
            name: torch.from_numpy(array).to(self._device)
            for name, array in made.columns.items()
        }
        states = module.normalize(tensors[columns.STATES])
        next_states = module.normalize(tensors[columns.NEXT_STATES])
        target = module.head.target(
            module.critic(next_states, module.actor(next_states)),
            tensors[columns.RETURNS] * self.config.reward_scale,
            tensors[columns.DISCOUNTS],
        )
        outputs = module.critic(states, tensors[columns.ACTIONS])
        return module.head.priorities(outputs, target).cpu().numpy()
