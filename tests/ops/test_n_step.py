"""N-step windows against a walk through whole episodes."""

import numpy as np
import pytest

from rllib_impass.ops.n_step import n_step_transitions

GAMMA = 0.9


def random_stream(T, B, seed=0):
    """Rewards with terminations, truncations and the reset steps after them.

    Rewards on reset steps are NaN: nobody may look at them.
    """
    rng = np.random.default_rng(seed)
    rewards = rng.normal(size=(T, B))
    terminated, truncated = rng.random((2, T, B)) < 0.1
    valid = np.ones((T, B), bool)
    for t in range(1, T):
        valid[t] = ~((terminated | truncated)[t - 1] & valid[t - 1])
    terminated &= valid
    truncated &= valid & ~terminated
    rewards[~valid] = np.nan
    return rewards, terminated, valid, truncated


def slow_transitions(rewards, terminated, truncated, valid, gamma, n):
    """``{(t, b): (return, discount, next step)}``, one start after the other.

    A window that runs into the end of the arrays is left out.
    """
    T, B = rewards.shape
    found = {}
    for b in range(B):
        for t in range(T):
            if not valid[t, b]:
                continue
            total, k = 0.0, 0
            while k < n and t + k < T:
                total += gamma**k * rewards[t + k, b]
                k += 1
                last = t + k - 1
                if terminated[last, b]:
                    found[t, b] = (total, 0.0, t + k)
                    break
                # The last step of the arrays may be a truncation, but only the next one
                # would tell.
                is_full = k == n
                if is_full or (truncated[last, b] and last < T - 1):
                    found[t, b] = (total, gamma**k, t + k)
                    break
    return found


def as_dict(transitions, *, num_starts=None, offset=0):
    """Complete starts among the first ones, with steps counted from the stream's."""
    starts = transitions.complete[:num_starts]
    return {
        (int(t) + offset, int(b)): (
            transitions.returns[t, b],
            transitions.discounts[t, b],
            int(transitions.next_steps[t, b]) + offset,
        )
        for t, b in np.argwhere(starts)
    }


@pytest.mark.parametrize("n", [1, 3, 5])
@pytest.mark.parametrize("T", [1, 2, 4, 60])
def test_equals_walking_through_each_episode(T, n):
    rewards, terminated, valid, truncated = random_stream(T, 16)
    if T == 60:
        assert terminated.any()
        assert truncated.any()
    found = as_dict(n_step_transitions(rewards, terminated, valid, gamma=GAMMA, n=n))
    expected = slow_transitions(rewards, terminated, truncated, valid, GAMMA, n)
    assert found.keys() == expected.keys()
    for start, transition in expected.items():
        assert found[start] == pytest.approx(transition), start


@pytest.mark.parametrize("n", [1, 3, 5])
@pytest.mark.parametrize("length", [4, 7, 20])
def test_overlapping_fragments_give_the_uncut_stream(length, n):
    rewards, terminated, valid, _ = random_stream(10 * length, 8, seed=1)
    whole = n_step_transitions(rewards, terminated, valid, gamma=GAMMA, n=n)
    taken = {}
    for end in range(length, 10 * length + 1, length):
        first = max(0, end - length - (n - 1))
        part = n_step_transitions(
            rewards[first:end],
            terminated[first:end],
            valid[first:end],
            gamma=GAMMA,
            n=n,
        )
        num_starts = max(0, end - first - (n - 1))
        starts = as_dict(part, num_starts=num_starts, offset=first)
        assert not taken.keys() & starts.keys()
        taken |= starts
    assert taken == as_dict(whole, num_starts=10 * length - (n - 1))


def test_every_valid_start_is_complete_except_among_the_last():
    rewards, terminated, valid, _ = random_stream(60, 16)
    out = n_step_transitions(rewards, terminated, valid, gamma=GAMMA, n=5)
    np.testing.assert_array_equal(out.complete[:56], valid[:56])
    assert (valid & ~out.complete)[56:].any()
    assert out.complete[56:].any()


def episode_end(*, terminated, n=3):
    """Three steps, the third ends the episode; its reset step; three steps more."""
    rewards = np.array([1.0, 2.0, 4.0, 100.0, 8.0, 16.0, 32.0], np.float32)[:, None]
    valid = np.array([1, 1, 1, 0, 1, 1, 1], bool)[:, None]
    ended = np.zeros((7, 1), bool)
    ended[2] = terminated
    return n_step_transitions(rewards, ended, valid, gamma=0.5, n=n)


def test_a_truncated_episode_bootstraps_from_the_state_at_its_reset_step():
    out = episode_end(terminated=False)
    assert out.returns[:3, 0].tolist() == [1.0 + 1.0 + 1.0, 2.0 + 2.0, 4.0]
    assert out.discounts[:3, 0].tolist() == [0.125, 0.25, 0.5]
    assert out.next_steps[:3, 0].tolist() == [3, 3, 3]


def test_a_terminated_episode_bootstraps_from_nothing():
    out = episode_end(terminated=True)
    assert out.returns[:3, 0].tolist() == [3.0, 4.0, 4.0]
    assert out.discounts[:3, 0].tolist() == [0.0, 0.0, 0.0]


def test_a_reset_step_is_no_start():
    out = episode_end(terminated=False)
    assert not out.complete[3, 0]
    assert out.returns[3, 0] == out.discounts[3, 0] == 0.0


def test_a_window_that_the_arrays_cut_is_not_complete():
    out = episode_end(terminated=False)
    assert out.complete[:, 0].tolist() == [True, True, True, False, True, False, False]


def test_a_termination_on_the_last_step_completes_its_windows():
    flags = np.zeros((3, 1), bool)
    flags[2] = True
    ones = np.ones((3, 1), np.float32)
    out = n_step_transitions(ones, flags, np.ones((3, 1), bool), gamma=0.5, n=5)
    assert out.complete.all()
    assert out.returns[:, 0].tolist() == [1.75, 1.5, 1.0]
    assert not out.discounts.any()


def test_an_invalid_column_has_no_starts():
    rewards, terminated, valid, _ = random_stream(20, 2)
    valid[:, 1] = False
    out = n_step_transitions(rewards, terminated, valid, gamma=GAMMA, n=3)
    assert not out.complete[:, 1].any()
    assert not out.returns[:, 1].any()


def test_single_precision_stays_single_precision():
    out = episode_end(terminated=False)
    assert out.returns.dtype == out.discounts.dtype == np.float32


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"rewards": np.zeros(3)}, "rewards"),
        ({"terminated": np.zeros((2, 3), bool)}, "terminated"),
        ({"valid": np.ones((3, 1), bool)}, "valid"),
        ({"valid": np.ones((3, 2), int)}, "valid must be boolean"),
        ({"gamma": 1.5}, "gamma"),
        ({"n": 0}, "n must be at least 1"),
    ],
)
def test_wrong_arguments_are_named(arguments, name):
    right = {
        "rewards": np.zeros((3, 2)),
        "terminated": np.zeros((3, 2), bool),
        "valid": np.ones((3, 2), bool),
        "gamma": GAMMA,
        "n": 3,
    }
    with pytest.raises(ValueError, match=name):
        n_step_transitions(**(right | arguments))
