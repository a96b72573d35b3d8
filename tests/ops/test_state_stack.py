import numpy as np
import pytest

from rllib_impass.ops.state_stack import stack_states


def slow_stacks(episode, k):
    """S_t of a whole episode, as equation 9 and the reset rule say."""
    padded = [episode[0]] * (k - 1) + list(episode)
    return np.stack([np.concatenate(padded[t : t + k]) for t in range(len(episode))])


@pytest.mark.parametrize("k", [1, 2, 4, 8])
def test_equals_stacking_each_episode_by_itself(k):
    rng = np.random.default_rng(0)
    lengths = [1, 2, 3, 5, 11]
    episodes = [rng.normal(size=(n, 3)).astype(np.float32) for n in lengths]
    frames = np.concatenate([np.full((k - 1, 3), np.nan, np.float32), *episodes])
    ages = np.concatenate([np.arange(n) for n in lengths])
    stacks = stack_states(frames[:, None], ages[:, None])[:, 0]
    expected = np.concatenate([slow_stacks(episode, k) for episode in episodes])
    np.testing.assert_array_equal(stacks, expected)


def test_the_first_state_is_copied_four_times():
    frames = np.array([9.0, 9.0, 9.0, 1.0], np.float32).reshape(4, 1, 1)
    stack = stack_states(frames, np.zeros((1, 1), int))
    np.testing.assert_array_equal(stack[0, 0], [1.0, 1.0, 1.0, 1.0])


def test_the_oldest_state_comes_first():
    frames = np.arange(4, dtype=np.float32).reshape(4, 1, 1)
    stack = stack_states(frames, np.full((1, 1), 3))
    np.testing.assert_array_equal(stack[0, 0], [0.0, 1.0, 2.0, 3.0])


def test_columns_are_independent():
    frames = np.arange(8, dtype=np.float32).reshape(4, 2, 1)
    stack = stack_states(frames, np.array([[0, 2]]))
    np.testing.assert_array_equal(stack[0, 0], [6.0, 6.0, 6.0, 6.0])
    np.testing.assert_array_equal(stack[0, 1], [3.0, 3.0, 5.0, 7.0])


def test_wrong_shapes_are_refused():
    with pytest.raises(ValueError, match="frames must be"):
        stack_states(np.zeros((4, 2, 1)), np.zeros((1, 3), int))
    with pytest.raises(ValueError, match="need as many frames"):
        stack_states(np.zeros((2, 1, 1)), np.zeros((4, 1), int))
