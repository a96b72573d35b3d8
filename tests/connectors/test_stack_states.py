import gymnasium as gym
import numpy as np
import pytest
from ray.rllib.core.columns import Columns
from ray.rllib.env.single_agent_episode import SingleAgentEpisode

from rllib_impass.connectors import StackStates

SPACE = gym.spaces.Box(-1.0, 5.0, (2,), np.float64)


def episode_of(length, shape=(2,)):
    """States are (1, 1), (2, 2), ...: length + 1 of them."""
    episode = SingleAgentEpisode()
    episode.add_env_reset(np.full(shape, 1.0))
    for t in range(length):
        episode.add_env_step(np.full(shape, t + 2.0), np.zeros(1), 0.0)
    return episode


def act(connector, episode):
    batch = connector(rl_module=None, batch={}, episodes=[episode])
    ((stack,),) = batch[Columns.OBS].values()
    return stack


def learn(connector, episode):
    batch = connector(rl_module=None, batch={}, episodes=[episode])
    ((item,),) = batch[Columns.OBS].values()
    return np.asarray(item.list if hasattr(item, "list") else item)


def expected(t, k=4, size=2):
    states = [max(1, t + 2 - k + j) for j in range(k)]
    return np.repeat(np.array(states, np.float32), size)


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 9])
def test_acting_stacks_the_last_four_states(length):
    stack = act(StackStates(), episode_of(length))
    np.testing.assert_array_equal(stack, expected(length))
    assert stack.dtype == np.float32


@pytest.mark.parametrize("cut_at", [1, 2, 3, 5])
def test_acting_sees_over_a_fragment_cut(cut_at):
    rest = episode_of(cut_at).cut(len_lookback_buffer=3)
    np.testing.assert_array_equal(act(StackStates(), rest), expected(cut_at))
    rest.add_env_step(np.full(2, cut_at + 2.0), np.zeros(1), 0.0)
    np.testing.assert_array_equal(act(StackStates(), rest), expected(cut_at + 1))


@pytest.mark.parametrize("cut_at", [0, 1, 2, 3, 5])
def test_learning_rebuilds_what_acting_saw(cut_at):
    episode = episode_of(cut_at)
    if cut_at:
        episode = episode.cut(len_lookback_buffer=3)
    for t in range(cut_at, cut_at + 6):
        episode.add_env_step(np.full(2, t + 2.0), np.zeros(1), 0.0)
    connector = StackStates(as_learner_connector=True)
    stacks = learn(connector, episode.to_numpy())
    assert stacks.shape == (6, 8)
    for row, t in enumerate(range(cut_at, cut_at + 6)):
        np.testing.assert_array_equal(stacks[row], expected(t))


def test_a_lookback_that_is_too_short_is_an_error_not_padding():
    rest = episode_of(5).cut(len_lookback_buffer=1)
    with pytest.raises(ValueError, match="episode_lookback_horizon=3"):
        act(StackStates(), rest)


def test_more_dimensions_are_flattened():
    stack = act(StackStates(num_stacked_states=2), episode_of(3, shape=(2, 3)))
    np.testing.assert_array_equal(stack, expected(3, k=2, size=6))


def test_the_output_space_is_that_of_the_stacks():
    connector = StackStates(SPACE, None, num_stacked_states=3)
    assert connector.observation_space == gym.spaces.Box(-1.0, 5.0, (6,), np.float32)
    image = gym.spaces.Box(0, 255, (2, 2, 1), np.uint8)
    connector = StackStates(image, None, num_stacked_states=2)
    assert connector.observation_space.shape == (8,)


@pytest.mark.parametrize(
    "space", [gym.spaces.Discrete(3), gym.spaces.Dict({"a": SPACE})]
)
def test_other_spaces_are_refused_when_built(space):
    with pytest.raises(ValueError, match="StackStates stacks Box observations"):
        StackStates(space, None)


def test_a_stack_of_nothing_is_refused():
    with pytest.raises(ValueError, match="num_stacked_states must be at least 1"):
        StackStates(num_stacked_states=0)


def test_a_restored_connector_keeps_its_settings(tmp_path):
    path = StackStates(SPACE, None, num_stacked_states=7).save_to_path(str(tmp_path))
    assert StackStates.from_checkpoint(path).num_stacked_states == 7
