"""Trajectories against a step-by-step account of what happened."""

import dataclasses
import itertools

import numpy as np
import pytest

from rllib_impass.env.trajectory import Trajectory
from rllib_impass.env.trajectory_recorder import TrajectoryRecorder
from rllib_impass.ops.state_stack import stack_states

K, T, GAMMA = 4, 5, 0.9


class Script:
    """One env whose episodes last ``lengths`` steps; odd ones end by time limit."""

    def __init__(self, lengths, offset):
        self.rows = []
        self.lengths, self.offset = lengths, offset
        self.episode, self.t, self.over = 0, 0, False

    def observation(self):
        return np.array([self.episode + self.offset / 10.0, self.t])

    def step(self):
        if self.over:
            self.episode, self.t, self.over = self.episode + 1, 0, False
            return self.observation(), 0.0, False, False
        self.t += 1
        self.over = self.t == self.lengths[self.episode % len(self.lengths)]
        truncated = bool(self.over and self.episode % 2)
        reward = float(self.t)
        return self.observation(), reward, self.over and not truncated, truncated


def run(num_fragments, lengths=((2, 3), (1, 7)), num_repeated=0):
    """Records two scripted envs; returns fragments and what was acted on."""
    envs = [Script(lengths[0], 0), Script(lengths[1], 1)]
    recorder = TrajectoryRecorder(
        num_steps=T,
        num_envs=2,
        frame_size=2,
        action_size=1,
        num_stacked_states=K,
        gamma=GAMMA,
        num_repeated=num_repeated,
    )
    recorder.reset(np.stack([env.observation() for env in envs]))
    fragments, acted_on, account = [], [], []
    for version in range(num_fragments):
        for _ in range(T):
            acted_on.append(recorder.states.copy())
            resets = [env.over for env in envs]
            results = [np.stack(x) for x in zip(*(e.step() for e in envs), strict=True)]
            account.append((resets, *results[1:]))
            actions = np.full((2, 1), len(acted_on), float)
            recorder.record(actions, np.tile(actions, 2), *results)
        fragments.append(recorder.cut(version))
    return fragments, np.stack(acted_on), account, recorder


def test_the_learner_rebuilds_every_state_the_actor_saw():
    fragments, acted_on, _, _ = run(8)
    rebuilt = [stack_states(f.frames, f.ages) for f in fragments]
    np.testing.assert_array_equal(np.concatenate([r[:-1] for r in rebuilt]), acted_on)
    for earlier, later in itertools.pairwise(rebuilt):
        # The bootstrap state of a fragment is the first one of the next.
        np.testing.assert_array_equal(earlier[-1], later[0])


def test_stacks_stay_inside_their_episode():
    fragments, *_ = run(8)
    for fragment in fragments:
        stacks = stack_states(fragment.frames, fragment.ages)
        episodes = stacks.reshape(T + 1, 2, K, 2)[..., 0]
        assert (episodes == episodes[..., :1]).all()


def test_reset_steps_are_invalid_and_carry_nothing():
    fragments, _, account, _ = run(8)
    valid = np.concatenate([f.valid for f in fragments])
    np.testing.assert_array_equal(valid, [~np.array(row[0]) for row in account])
    rewards = np.concatenate([f.rewards for f in fragments])
    np.testing.assert_array_equal(rewards, [row[1] for row in account])
    terminated = np.concatenate([f.terminated for f in fragments])
    np.testing.assert_array_equal(terminated, [row[2] for row in account])
    assert terminated.any()
    assert (~valid).any()
    assert not (terminated & ~valid).any()


def test_returns_so_far_run_on_over_fragment_cuts():
    fragments, _, account, _ = run(8)
    returns = np.concatenate([f.returns for f in fragments])
    valid = np.concatenate([f.valid for f in fragments])
    running = np.zeros(2)
    for t, (resets, rewards, *_) in enumerate(account):
        running = np.where(resets, 0.0, GAMMA * running + rewards)
        np.testing.assert_allclose(returns[t][valid[t]], running[valid[t]], rtol=1e-6)


def test_finished_episodes_are_reported_once_with_raw_returns():
    *_, recorder = run(8, lengths=((2, 3), (4,)))
    done = [(e.episode_return, e.length) for e in recorder.finished_episodes]
    assert done.count((3.0, 2)) >= 4
    assert done.count((6.0, 3)) >= 4
    assert done.count((10.0, 4)) == 8
    assert set(done) == {(3.0, 2), (6.0, 3), (10.0, 4)}


def test_cutting_early_is_an_error():
    *_, recorder = run(1)
    with pytest.raises(RuntimeError, match="0 of 5 steps"):
        recorder.cut(0)


STEP_ARRAYS = (
    "actions",
    "means",
    "sigmas",
    "rewards",
    "returns",
    "terminated",
    "valid",
)


# More than a fragment has, too: then they come from several fragments before.
@pytest.mark.parametrize("num_repeated", [1, 4, 7])
def test_repeated_steps_are_the_last_ones_of_the_fragment_before(num_repeated):
    fragments, *_ = run(8, num_repeated=num_repeated)
    for earlier, later in itertools.pairwise(fragments):
        assert later.num_repeated == num_repeated
        for name in STEP_ARRAYS:
            np.testing.assert_array_equal(
                getattr(later, name)[:num_repeated],
                getattr(earlier, name)[-num_repeated:],
                err_msg=name,
            )
        # The state after the last step is the first one of the new steps.
        np.testing.assert_array_equal(
            stack_states(later.frames, later.ages)[: num_repeated + 1],
            stack_states(earlier.frames, earlier.ages)[-(num_repeated + 1) :],
        )


@pytest.mark.parametrize("num_repeated", [1, 4, 7])
def test_new_steps_are_the_same_whatever_is_repeated(num_repeated):
    plain, acted_on, *_ = run(8)
    fragments, acted_on_now, *_ = run(8, num_repeated=num_repeated)
    np.testing.assert_array_equal(acted_on_now, acted_on)
    for fragment, expected in zip(fragments, plain, strict=True):
        for name in STEP_ARRAYS:
            np.testing.assert_array_equal(
                getattr(fragment, name)[num_repeated:],
                getattr(expected, name),
                err_msg=name,
            )
        np.testing.assert_array_equal(
            stack_states(fragment.frames, fragment.ages)[num_repeated:],
            stack_states(expected.frames, expected.ages),
        )
        assert fragment.num_valid_steps == expected.num_valid_steps


def test_at_first_there_is_nothing_to_repeat():
    (fragment, *_), *_ = run(1, num_repeated=4)
    assert not fragment.valid[:4].any()
    assert not fragment.returns[:4].any()
    assert fragment.num_valid_steps == fragment.valid.sum()


def record_step(recorder, t):
    """One step of two envs that go on: they observe t, and their reward is 1."""
    ones, nobody = np.ones((2, 1)), np.zeros(2, bool)
    states = np.full((2, 2), t)
    recorder.record(ones, np.tile(ones, 2), states, ones[:, 0], nobody, nobody)


def test_after_a_reset_there_is_nothing_to_repeat():
    *_, recorder = run(3, num_repeated=4)
    # In the middle of a fragment, as when an env has failed.
    record_step(recorder, 50)
    recorder.reset(np.zeros((2, 2)))
    for t in range(T):
        record_step(recorder, t + 1)
    fragment = recorder.cut(3)
    assert fragment.valid.tolist() == [[False] * 2] * 4 + [[True] * 2] * T
    assert fragment.num_valid_steps == 2 * T
    running = [sum(GAMMA**i for i in range(t + 1)) for t in range(T)]
    np.testing.assert_allclose(fragment.returns[:, 0], [0.0] * 4 + running, rtol=1e-6)
    stacks = stack_states(fragment.frames, fragment.ages)[4:, 0]
    expected = [[max(0, t - j) for j in (3, 2, 1, 0)] for t in range(T + 1)]
    np.testing.assert_array_equal(stacks.reshape(T + 1, K, 2)[..., 0], expected)


@pytest.mark.parametrize(
    "field", ["frames", "actions", "means", "sigmas", "rewards", "returns"]
)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_non_finite_number_invalidates_its_column_only(field, bad):
    (fragment, *_), *_ = run(1)
    array = getattr(fragment, field).copy()
    array[1, 1] = bad
    dirty = dataclasses.replace(fragment, **{field: array})
    clean, num_bad = dirty.without_nonfinite_columns()
    assert num_bad == 1
    assert not clean.valid[:, 1].any()
    np.testing.assert_array_equal(clean.valid[:, 0], fragment.valid[:, 0])
    np.testing.assert_array_equal(clean.frames[:, 0], fragment.frames[:, 0])
    for name in (f.name for f in dataclasses.fields(Trajectory)):
        assert np.isfinite(getattr(clean, name)).all(), name
    assert (clean.sigmas > 0).all()


def test_a_clean_trajectory_is_passed_on_as_it_is():
    (fragment, *_), *_ = run(1)
    clean, num_bad = fragment.without_nonfinite_columns()
    assert clean is fragment
    assert num_bad == 0
