"""The sum tree against a cumulative sum."""

import numpy as np
import pytest

from rllib_impass.utils.sum_tree import SumTree


def whole_numbers(capacity, *, seed=0):
    """Weights whose sums are exact, a third of them zero."""
    weights = np.random.default_rng(seed).integers(1, 10, capacity).astype(float)
    weights[2::3] = 0.0
    return weights


def tree_of(weights):
    tree = SumTree(len(weights))
    tree.set(np.arange(len(weights)), weights)
    return tree


CAPACITIES = [1, 2, 3, 8, 13, 100, 1000]


@pytest.mark.parametrize("capacity", CAPACITIES)
def test_finds_what_the_cumulative_sum_says(capacity):
    weights = whole_numbers(capacity)
    tree = tree_of(weights)
    assert tree.total == weights.sum()
    sums = np.arange(0.0, weights.sum(), 0.25)
    expected = np.searchsorted(np.cumsum(weights), sums, side="right")
    np.testing.assert_array_equal(tree.find(sums), expected)


@pytest.mark.parametrize("capacity", CAPACITIES)
def test_at_a_border_the_next_leaf_with_a_weight_begins(capacity):
    weights = whole_numbers(capacity)
    tree = tree_of(weights)
    weighted = np.flatnonzero(weights)
    borders = np.cumsum(weights[weighted])
    np.testing.assert_array_equal(tree.find(borders - weights[weighted]), weighted)
    just_below = np.nextafter(borders, 0.0)
    np.testing.assert_array_equal(tree.find(just_below), weighted)


@pytest.mark.parametrize("capacity", CAPACITIES)
def test_the_total_belongs_to_the_last_leaf_with_a_weight(capacity):
    weights = whole_numbers(capacity)
    tree = tree_of(weights)
    assert tree.find([tree.total]).tolist() == [np.flatnonzero(weights)[-1]]


def test_rounding_never_finds_a_leaf_without_weight():
    rng = np.random.default_rng(0)
    for _ in range(50):
        weights = np.exp(rng.uniform(-40.0, 40.0, 100)) * (rng.random(100) < 0.3)
        weights[rng.integers(100)] = 1.0
        tree = tree_of(weights)
        cumulative = np.minimum(np.cumsum(weights), tree.total)
        sums = np.concatenate([cumulative, rng.random(1000) * tree.total])
        assert (tree.get(tree.find(sums)) > 0.0).all()


def test_sums_are_right_after_many_changes():
    rng = np.random.default_rng(0)
    tree, weights = SumTree(37), np.zeros(37)
    for _ in range(200):
        indices = rng.choice(37, size=rng.integers(1, 20), replace=False)
        values = rng.random(len(indices))
        tree.set(indices, values)
        weights[indices] = values
    np.testing.assert_array_equal(tree.get(np.arange(37)), weights)
    assert tree.total == pytest.approx(weights.sum(), rel=1e-14)
    sums = rng.random(1000) * weights.sum()
    expected = np.searchsorted(np.cumsum(weights), sums, side="right")
    np.testing.assert_array_equal(tree.find(sums), expected)


def test_of_equal_indices_the_last_one_wins():
    tree = SumTree(10)
    tree.set([3, 7, 3, 7, 3], [1.0, 2.0, 3.0, 4.0, 5.0])
    assert tree.get([3, 7]).tolist() == [5.0, 4.0]
    assert tree.total == 9.0


def test_no_leaves_at_all_change_and_find_nothing():
    tree = tree_of(np.ones(3))
    tree.set([], [])
    assert tree.total == 3.0
    assert tree.find([]).tolist() == []


def test_what_the_caller_holds_is_left_as_it_was():
    tree = tree_of(np.ones(5))
    indices, sums = np.array([4, 0]), np.array([0.5, 4.5])
    tree.find(sums)
    tree.set(indices, np.ones(2))
    assert (indices.tolist(), sums.tolist()) == ([4, 0], [0.5, 4.5])


@pytest.mark.parametrize("sums", [[-0.1], [3.1], [np.nan]])
def test_prefix_sums_out_of_range_are_refused(sums):
    with pytest.raises(ValueError, match="prefix sums"):
        tree_of(np.ones(3)).find(sums)


def test_nothing_is_found_in_a_tree_without_weight():
    with pytest.raises(ValueError, match="positive total"):
        SumTree(3).find([0.0])


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_values_that_are_no_weights_are_refused(value):
    tree = tree_of(np.ones(3))
    with pytest.raises(ValueError, match="values"):
        tree.set([0, 1], [2.0, value])
    assert tree.total == 3.0


@pytest.mark.parametrize("indices", [[-1], [3], [[0]]])
def test_wrong_indices_are_refused(indices):
    tree = SumTree(3)
    with pytest.raises(ValueError, match="indices"):
        tree.set(indices, np.ones_like(indices))
    with pytest.raises(ValueError, match="indices"):
        tree.get(indices)


def test_values_of_another_shape_are_refused():
    with pytest.raises(ValueError, match="values"):
        SumTree(3).set([0, 1], [1.0])


def test_a_tree_without_leaves_is_refused():
    with pytest.raises(ValueError, match="capacity"):
        SumTree(0)
