"""States stacking for RLlib's episode path."""

from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.rl_module import RLModule
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.utils.annotations import override
from ray.rllib.utils.typing import EpisodeType

from rllib_impass.ops.state_stack import stack_states


class StackStates(ConnectorV2):
    """Replaces each observation by the last k of its episode, oldest first.

    Takes any Box; more than one dimension is flattened. The first state of an episode
    stands in for its missing predecessors. Put one piece into the env-to-module
    pipeline and one, with ``as_learner_connector=True``, into the learner pipeline, and
    set ``episode_lookback_horizon`` to at least k-1, so that a fragment cut inside an
    episode keeps the states its first stacks need. ``IMPASSConfig`` does all of that.

    Args:
        input_observation_space: the env's (single) observation space.
        input_action_space: the env's (single) action space.
        num_stacked_states: k.
        as_learner_connector: whether episodes arrive whole, as on a Learner.
    """

    def __init__(
        self,
        input_observation_space: gym.Space | None = None,
        input_action_space: gym.Space | None = None,
        # Not keyword-only: ConnectorV2 records only positional parameters for restore.
        num_stacked_states: int = 4,
        as_learner_connector: bool = False,
        **kwargs: Any,
    ) -> None:
        if num_stacked_states < 1:
            raise ValueError(
                f"num_stacked_states must be at least 1, got {num_stacked_states}"
            )
        # Before super().__init__(), which already asks for the output space.
        self.num_stacked_states = num_stacked_states
        self._as_learner_connector = as_learner_connector
        super().__init__(input_observation_space, input_action_space, **kwargs)

    @override(ConnectorV2)
    def recompute_output_observation_space(
        self, input_observation_space: gym.Space, input_action_space: gym.Space
    ) -> gym.Space:
        # The learner pipeline is built with the module's space, which the
        # env-to-module pipeline has stacked already.
        if self._as_learner_connector:
            return input_observation_space
        return stacked_space(input_observation_space, self.num_stacked_states)

    @override(ConnectorV2)
    def __call__(
        self,
        *,
        rl_module: RLModule,
        batch: dict[str, Any],
        episodes: list[EpisodeType],
        explore: bool | None = None,
        shared_data: dict | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        for episode in self.single_agent_episode_iterator(
            episodes, agents_that_stepped_only=not self._as_learner_connector
        ):
            if self._as_learner_connector:
                self.add_n_batch_items(
                    batch=batch,
                    column=Columns.OBS,
                    items_to_add=self._stack(episode, 0, len(episode)),
                    num_items=len(episode),
                    single_agent_episode=episode,
                )
            else:
                newest = len(episode)
                self.add_batch_item(
                    batch=batch,
                    column=Columns.OBS,
                    item_to_add=self._stack(episode, newest, newest + 1)[0],
                    single_agent_episode=episode,
                )
        return batch

    def _stack(
        self, episode: SingleAgentEpisode, start: int, stop: int
    ) -> NDArray[np.float32]:
        """S_t for the steps ``start`` to ``stop`` of an episode or a piece of one."""
        # `t_started` counts the steps before this piece of the episode.
        age = episode.t_started + start
        num_earlier = min(self.num_stacked_states - 1, age)
        states = episode.get_observations(
            slice(start - num_earlier, stop), neg_index_as_lookback=True
        )
        if len(states) < num_earlier + stop - start:
            raise ValueError(
                f"StackStates(num_stacked_states={self.num_stacked_states}) needs "
                f"{num_earlier} states from before a fragment cut, but the episode "
                f"kept {len(states) - (stop - start)}. Set "
                "env_runners(episode_lookback_horizon="
                f"{self.num_stacked_states - 1}) or more."
            )
        num_missing = self.num_stacked_states - 1 - num_earlier
        frames = np.asarray(states, np.float32).reshape(len(states), 1, -1)
        frames = np.concatenate([np.zeros_like(frames[:1])] * num_missing + [frames])
        ages = np.arange(age, age + stop - start)[:, None]
        return stack_states(frames, ages)[:, 0]


def stacked_space(space: gym.Space, num_stacked_states: int) -> gym.spaces.Box:
    """The space of S_t, given the space of s_t."""
    if not isinstance(space, gym.spaces.Box):
        raise ValueError(
            "StackStates stacks Box observations, but the observation space is "
            f"{space}. Wrap the env so that it returns one array "
            "(for example gymnasium.wrappers.FlattenObservation)."
        )
    return gym.spaces.Box(
        np.tile(space.low.ravel(), num_stacked_states).astype(np.float32),
        np.tile(space.high.ravel(), num_stacked_states).astype(np.float32),
        dtype=np.float32,
    )
