"""Gradient steps: clipped apart, all or none, and never with a NaN."""

import math

import pytest
import torch

from rllib_impass.algorithms.guarded_updates import GuardedUpdates

RATE = 0.5


@pytest.fixture
def optimizers():
    """Plain gradient descent on two vectors."""
    return {
        name: torch.optim.SGD([torch.nn.Parameter(torch.zeros(2))], lr=RATE)
        for name in ("first", "second")
    }


def vector(optimizers, name):
    return optimizers[name].param_groups[0]["params"][0]


def step(updates, optimizers, slopes, num_valid=8):
    """One step on the loss ``sum_i slope_i . x_i``."""
    for optimizer in optimizers.values():
        optimizer.zero_grad()
    loss = sum(
        (torch.tensor(slope) * vector(optimizers, name)).sum()
        for name, slope in slopes.items()
    )
    loss.backward()
    return updates.step(optimizers, loss, torch.tensor(num_valid))


def test_each_optimizer_is_clipped_by_its_own_norm(optimizers):
    updates = GuardedUpdates(grad_clip=1.0, max_skipped_in_a_row=3)
    slopes = {"first": [3.0, 4.0], "second": [0.3, 0.4]}
    norms = step(updates, optimizers, slopes)
    assert norms == pytest.approx({"first": 5.0, "second": 0.5})
    first, second = (vector(optimizers, n).detach().numpy() for n in optimizers)
    assert first == pytest.approx([-RATE * 0.6, -RATE * 0.8], rel=1e-5)
    assert second == pytest.approx([-RATE * 0.3, -RATE * 0.4], rel=1e-5)


def test_without_a_clip_gradients_stay_as_they_are(optimizers):
    updates = GuardedUpdates(grad_clip=None, max_skipped_in_a_row=3)
    step(updates, optimizers, {"first": [30.0, 40.0], "second": [0.0, 0.0]})
    assert vector(optimizers, "first").tolist() == [-RATE * 30.0, -RATE * 40.0]


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_one_bad_gradient_stops_every_optimizer(optimizers, bad):
    updates = GuardedUpdates(grad_clip=1.0, max_skipped_in_a_row=3)
    slopes = {"first": [bad, 0.0], "second": [1.0, 1.0]}
    assert step(updates, optimizers, slopes) is None
    assert not any(vector(optimizers, name).any() for name in optimizers)


def test_a_minibatch_without_a_valid_step_changes_nothing(optimizers):
    updates = GuardedUpdates(grad_clip=1.0, max_skipped_in_a_row=3)
    slopes = {"first": [1.0, 0.0], "second": [1.0, 1.0]}
    assert step(updates, optimizers, slopes, num_valid=0) is None
    assert not vector(optimizers, "first").any()


@pytest.mark.parametrize(
    ("slope", "num_valid", "reason"),
    [(math.nan, 8, "not finite"), (1.0, 0, "no step was valid")],
)
def test_too_many_in_a_row_end_training_with_the_reason(
    optimizers, slope, num_valid, reason
):
    updates = GuardedUpdates(grad_clip=1.0, max_skipped_in_a_row=3)
    bad = {"first": [slope, 0.0], "second": [0.0, 0.0]}
    good = {"first": [1.0, 0.0], "second": [0.0, 0.0]}
    for slopes, count in ((bad, num_valid), (bad, num_valid), (good, 8)):
        step(updates, optimizers, slopes, count)
    # The good one ended the row.
    step(updates, optimizers, bad, num_valid)
    step(updates, optimizers, bad, num_valid)
    with pytest.raises(RuntimeError, match=f"3 updates in a row.*{reason}"):
        step(updates, optimizers, bad, num_valid)
