"""Moments, returns so far, and smoothness."""

import math

import numpy as np
import pytest
import torch

from rllib_impass.ops.moments import Moments, batch_moments, merge_moments
from rllib_impass.ops.returns import (
    action_smoothness,
    discounted_returns,
    mean_abs_second_difference,
)


def test_merged_moments_equal_those_of_all_samples_at_once():
    torch.manual_seed(0)
    samples = torch.randn(1000, 3) * torch.tensor([1.0, 10.0, 0.1]) + 1000.0
    valid = torch.rand(1000) < 0.7
    merged = Moments(
        torch.tensor(0.0, dtype=torch.double),
        torch.zeros(3, dtype=torch.double),
        torch.ones(3, dtype=torch.double),
    )
    for start in range(0, 1000, 137):
        rows = slice(start, start + 137)
        merged = merge_moments(merged, batch_moments(samples[rows], valid[rows]))
    kept = samples[valid].double()
    assert merged.count.item() == len(kept)
    torch.testing.assert_close(merged.mean, kept.mean(0))
    torch.testing.assert_close(merged.var, kept.var(0, correction=0))


@pytest.mark.parametrize("num_rows", [10, 0])
def test_a_batch_without_valid_rows_changes_nothing(num_rows):
    before = batch_moments(torch.randn(10, 2), torch.ones(10, dtype=torch.bool))
    nothing = batch_moments(
        torch.randn(num_rows, 2), torch.zeros(num_rows, dtype=torch.bool)
    )
    after = merge_moments(before, nothing)
    for a, b in zip(before, after, strict=True):
        assert torch.equal(a, b)


def test_returns_so_far_restart_with_each_episode():
    rewards = np.array([[1.0], [2.0], [4.0], [8.0]])
    starts = np.array([[False], [False], [True], [False]])
    returns = discounted_returns(rewards, starts, np.array([10.0]), 0.5)
    np.testing.assert_allclose(returns[:, 0], [6.0, 5.0, 4.0, 10.0])


def test_returns_so_far_forget_a_nan_with_the_next_episode():
    rewards = np.array([[np.nan], [1.0], [1.0]])
    starts = np.array([[False], [False], [True]])
    returns = discounted_returns(rewards, starts, np.zeros(1), 0.9)
    assert np.isnan(returns[:2]).all()
    assert returns[2, 0] == 1.0


def test_smoothness_is_the_mean_second_difference_inside_episodes():
    actions = np.array([0.0, 1.0, 4.0, 0.0, 0.0, 3.0]).reshape(6, 1, 1)
    ages = np.array([0, 1, 2, 0, 1, 2]).reshape(6, 1)
    # |4 - 2 + 0| and |3 - 0 + 0|; triples over the reset do not count.
    assert mean_abs_second_difference(actions, ages) == pytest.approx(2.5)


def test_smoothness_of_an_episode_is_of_what_its_actions_do():
    # Both dimensions: |-1 - 2 + 1| and |0 - 0 + 0|; beyond 1 nothing happens.
    actions = np.array([[1.0, 0.0], [1.0, 0.0], [-7.0, 0.0]])
    assert action_smoothness(actions) == pytest.approx(1.0)
    assert math.isnan(action_smoothness(actions[:2]))


def test_smoothness_of_too_short_episodes_is_nan():
    actions = np.zeros((4, 1, 1))
    ages = np.array([0, 1, 0, 1]).reshape(4, 1)
    assert math.isnan(mean_abs_second_difference(actions, ages))
