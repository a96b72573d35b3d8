"""Transitions of cut-up streams against a walk through whole episodes."""

import dataclasses

import gymnasium as gym
import numpy as np
import pytest

from rllib_impass.algorithms.d4pg import transitions as columns
from rllib_impass.algorithms.d4pg.transitions import to_transitions
from rllib_impass.env.trajectory_recorder import TrajectoryRecorder
from toy_envs import CountingEnv

GAMMA, NUM_ENVS, NUM_STEPS = 0.9, 3, 240


@dataclasses.dataclass
class Episode:
    """All that happened, and at which step of its env's life it began."""

    first_step: int
    states: list
    actions: list = dataclasses.field(default_factory=list)
    rewards: list = dataclasses.field(default_factory=list)
    terminated: bool = False


def record(*, n, k, fragment_length):
    """Steps real envs; returns the fragments, and the episodes as they came."""
    envs = gym.vector.SyncVectorEnv([CountingEnv] * NUM_ENVS)
    recorder = TrajectoryRecorder(
        num_steps=fragment_length,
        num_envs=NUM_ENVS,
        frame_size=2,
        action_size=2,
        num_stacked_states=k,
        gamma=GAMMA,
        num_repeated=n - 1,
    )
    rng = np.random.default_rng(0)
    observations, _ = envs.reset(seed=3)
    recorder.reset(observations)
    current = [Episode(0, [state.copy()]) for state in observations]
    episodes, fragments = [*current], []
    over = np.zeros(NUM_ENVS, bool)
    for t in range(NUM_STEPS):
        actions = rng.uniform(-1.0, 1.0, (NUM_ENVS, 2)).astype(np.float32)
        observations, rewards, terminated, truncated, _ = envs.step(actions)
        for b in range(NUM_ENVS):
            if over[b]:
                current[b] = Episode(t + 1, [observations[b].copy()])
                episodes.append(current[b])
                continue
            current[b].states.append(observations[b].copy())
            current[b].actions.append(actions[b])
            current[b].rewards.append(rewards[b])
            current[b].terminated = terminated[b]
        over = terminated | truncated
        recorder.record(
            actions,
            np.zeros((NUM_ENVS, 4)),
            observations,
            rewards,
            terminated,
            truncated,
        )
        if (t + 1) % fragment_length == 0:
            fragments.append(recorder.cut(7))
    return fragments, episodes


def slow_transitions(episode, n, k):
    """One start after the other, as if the episode had never been cut."""
    states, length = episode.states, len(episode.rewards)

    def stack(t):
        return np.concatenate([states[max(0, t - j)] for j in range(k - 1, -1, -1)])

    for t in range(length):
        # What is still to come for the last ones, nobody knows yet.
        if episode.first_step + t >= NUM_STEPS - (n - 1):
            return
        steps = min(n, length - t)
        died = episode.terminated and t + steps == length
        yield {
            columns.STATES: stack(t),
            columns.ACTIONS: episode.actions[t],
            columns.RETURNS: sum(
                GAMMA**i * episode.rewards[t + i] for i in range(steps)
            ),
            columns.DISCOUNTS: 0.0 if died else GAMMA**steps,
            columns.NEXT_STATES: stack(t + steps),
        }


def by_start(rows):
    """Each state of a run is different from all others."""
    found = {tuple(np.float32(row[columns.STATES][-2:])): row for row in rows}
    assert len(found) == len(rows), "a start was taken twice"
    return found


@pytest.mark.parametrize("n", [1, 3, 5])
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("fragment_length", [2, 12])
def test_a_cut_up_stream_has_the_transitions_of_its_episodes(n, k, fragment_length):
    fragments, episodes = record(n=n, k=k, fragment_length=fragment_length)
    ended = episodes[:-NUM_ENVS]
    assert {bool(episode.terminated) for episode in ended} == {False, True}
    made = [to_transitions(f, gamma=GAMMA, n=n) for f in fragments]
    rows = by_start(
        [
            {name: column[i] for name, column in part.columns.items()}
            for part in made
            for i in range(len(part))
        ]
    )
    expected = by_start([row for e in episodes for row in slow_transitions(e, n, k)])
    assert rows.keys() == expected.keys()
    for start, row in expected.items():
        for name, value in row.items():
            np.testing.assert_allclose(
                rows[start][name], value, rtol=1e-6, err_msg=f"{start} {name}"
            )


def test_new_steps_are_counted_once():
    fragments, episodes = record(n=5, k=1, fragment_length=12)
    made = [to_transitions(f, gamma=GAMMA, n=5) for f in fragments]
    assert sum(part.num_env_steps for part in made) == sum(
        len(episode.rewards) for episode in episodes
    )
    assert {part.weights_version for part in made} == {7}


def test_a_column_that_was_left_out_gives_no_transitions():
    fragments, _ = record(n=3, k=1, fragment_length=12)
    frames = fragments[1].frames.copy()
    frames[5, 1] = np.nan
    clean, _ = dataclasses.replace(
        fragments[1], frames=frames
    ).without_nonfinite_columns()
    made = to_transitions(clean, gamma=GAMMA, n=3)
    whole = to_transitions(fragments[1], gamma=GAMMA, n=3)
    assert 0 < len(made) < len(whole)
    for column in made.columns.values():
        assert np.isfinite(column).all()
