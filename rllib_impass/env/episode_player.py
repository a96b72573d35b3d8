"""Whole episodes from one env, for evaluation that takes no longer than it must."""

from collections.abc import Callable

import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray
from ray.rllib.env.single_agent_episode import SingleAgentEpisode

from rllib_impass.ops.state_stack import stack_states

# Maps stacked states [1, k * d] to the policy's actions, and to those for the env.
Act = Callable[[NDArray[np.float32]], tuple[NDArray, NDArray]]


def play_episode(
    env: VectorEnv, act: Act, *, num_stacked_states: int, seed: int | None
) -> SingleAgentEpisode:
    """Plays one episode.

    The episode is RLlib's own; what is left out are its connectors and its timers,
    which take twice as long as the env and the policy together.

    Args:
        env: a vector env of one env, with a list of infos.
        act: the policy.
        num_stacked_states: k.
        seed: of the env's random numbers; None goes on with them.
    """
    episode = SingleAgentEpisode(
        observation_space=env.single_observation_space,
        action_space=env.single_action_space,
    )
    observations, infos = env.reset(seed=seed)
    episode.add_env_reset(observation=observations[0], infos=infos[0])
    frames = np.zeros((num_stacked_states, 1, observations[0].size), np.float32)
    frames[-1] = observations.reshape(1, -1)
    ages = np.zeros((1, 1), np.int32)
    while not episode.is_done:
        actions, actions_for_env = act(stack_states(frames, ages)[0])
        observations, rewards, terminateds, truncateds, infos = env.step(
            actions_for_env
        )
        episode.add_env_step(
            observation=observations[0],
            action=actions[0],
            reward=rewards[0],
            infos=infos[0],
            terminated=terminateds[0],
            truncated=truncateds[0],
        )
        frames[:-1] = frames[1:]
        frames[-1] = observations.reshape(1, -1)
        ages += 1
    return episode
