"""RLlib's episodes: played for evaluation, and completed for the learner."""

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.env.utils.infinite_lookback_buffer import InfiniteLookbackBuffer

from rllib_impass.ops.returns import discounted_returns
from rllib_impass.ops.state_stack import stack_states

RETURNS_SO_FAR = "returns_so_far"

# Maps stacked states [1, k * d] to the policy's actions, and to those for the env.
Act = Callable[[NDArray[np.float32]], tuple[NDArray, NDArray]]


class EnvFailedError(Exception):
    """Wraps what an env raised, to tell it from what a policy raises."""


def play_episode(
    env: VectorEnv, act: Act, *, num_stacked_states: int, seed: int | None
) -> SingleAgentEpisode:
    """Plays one episode.

    The episode is RLlib's own; what is left out are its connectors and its timers,
    which take nearly twice as long as the env and the policy together.

    Args:
        env: a vector env of one env, with a list of infos.
        act: the policy.
        num_stacked_states: k.
        seed: of the env's random numbers; None goes on with them.

    Raises:
        EnvFailedError: from whatever the env raised.
    """
    episode = SingleAgentEpisode(
        observation_space=env.single_observation_space,
        action_space=env.single_action_space,
    )
    observations, infos = _call(env.reset, seed=seed)
    episode.add_env_reset(observation=observations[0], infos=infos[0])
    frames = np.zeros((num_stacked_states, 1, observations[0].size), np.float32)
    frames[-1] = observations.reshape(1, -1)
    ages = np.zeros((1, 1), np.int32)
    while not episode.is_done:
        actions, actions_for_env = act(stack_states(frames, ages)[0])
        observations, rewards, terminateds, truncateds, infos = _call(
            env.step, actions_for_env
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


def _call(method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    try:
        return method(*args, **kwargs)
    except Exception as error:
        raise EnvFailedError from error


def is_finite(episode: SingleAgentEpisode, num_stacked_states: int) -> bool:
    """Whether a piece of episode, and the states its stacks reach back to, is."""
    lookback = num_stacked_states - 1
    columns = (
        episode.get_observations(slice(-lookback, None), neg_index_as_lookback=True)
        if lookback
        else episode.get_observations(),
        episode.get_rewards(),
        episode.get_actions(),
    )
    return all(np.isfinite(column).all() for column in columns)


class ReturnsSoFar:
    """Adds to pieces of episodes what their rewards came to since the first piece.

    Args:
        gamma: the discount.
    """

    def __init__(self, gamma: float) -> None:
        self._gamma = gamma
        self._carry: dict[str, float] = {}

    def add_to(self, episode: SingleAgentEpisode) -> None:
        """Adds the column RETURNS_SO_FAR to the next piece of an episode."""
        rewards = episode.get_rewards()[:, None]
        carry = np.array([self._carry.pop(episode.id_, 0.0)])
        starts = np.zeros(rewards.shape, bool)
        returns = discounted_returns(rewards, starts, carry, self._gamma)[:, 0]
        if not episode.is_done:
            self._carry[episode.id_] = returns[-1]
        episode.extra_model_outputs[RETURNS_SO_FAR] = InfiniteLookbackBuffer(
            returns.astype(np.float32)
        )

    def forget(self) -> None:
        """Drops episodes that will not go on."""
        self._carry.clear()
