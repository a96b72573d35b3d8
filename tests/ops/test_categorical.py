"""The categorical projection against the loop of C51's Algorithm 1."""

import math

import pytest
import torch

from rllib_impass.ops.categorical import (
    cross_entropy,
    end_atom_mass,
    mean_value,
    project_distribution,
)


def ground_truth(probs, rewards, discounts, atoms):
    """Bellemare et al. (2017), Algorithm 1, one atom after the other."""
    B, N = probs.shape
    z = [float(x) for x in atoms]
    v_min, v_max = z[0], z[-1]
    dz = (v_max - v_min) / (N - 1)
    m = torch.zeros(B, N, dtype=torch.double)
    for i in range(B):
        for j in range(N):
            Tz = float(rewards[i]) + float(discounts[i]) * z[j]
            b = (min(max(Tz, v_min), v_max) - v_min) / dz
            lower, upper = math.floor(b), math.ceil(b)
            p = float(probs[i, j])
            if lower == upper:
                m[i, lower] += p
            else:
                m[i, lower] += p * (upper - b)
                m[i, upper] += p * (b - lower)
    return m


def random_inputs(B, N, *, reward_scale=1.0, dtype=torch.double, seed=0):
    """A support of [-2, 3], and discounts of which every third is zero."""
    g = torch.Generator().manual_seed(seed)
    probs = (torch.randn(B, N, generator=g, dtype=dtype) * 2.0).softmax(-1)
    rewards = torch.randn(B, generator=g, dtype=dtype) * reward_scale
    discounts = torch.rand(B, generator=g, dtype=dtype)
    discounts[::3] = 0.0
    return probs, rewards, discounts, torch.linspace(-2.0, 3.0, N, dtype=dtype)


@pytest.mark.parametrize("N", [2, 3, 11, 51])
@pytest.mark.parametrize("reward_scale", [0.0, 0.1, 3.0, 100.0])
def test_equals_the_loop(N, reward_scale):
    inputs = random_inputs(16, N, reward_scale=reward_scale)
    _, rewards, discounts, atoms = inputs
    if reward_scale == 3.0:
        # Both sides of the clip are really there.
        targets = rewards[:, None] + discounts[:, None] * atoms
        assert (targets < atoms[0]).any()
        assert (targets > atoms[-1]).any()
    projected = project_distribution(*inputs)
    torch.testing.assert_close(projected, ground_truth(*inputs))


@pytest.mark.parametrize("reward_scale", [0.1, 3.0, 100.0])
def test_single_precision_is_good_enough(reward_scale):
    inputs = random_inputs(16, 51, reward_scale=reward_scale, dtype=torch.float)
    projected = project_distribution(*inputs)
    assert projected.dtype == torch.float
    assert (projected >= 0).all()
    torch.testing.assert_close(
        projected.double(), ground_truth(*inputs), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("reward_scale", [0.0, 3.0, 100.0])
def test_mass_sums_to_one(reward_scale):
    projected = project_distribution(*random_inputs(64, 51, reward_scale=reward_scale))
    assert (projected >= 0).all()
    torch.testing.assert_close(projected.sum(-1), torch.ones(64, dtype=torch.double))


def test_the_mean_is_kept_when_nothing_is_clipped():
    probs, rewards, _, atoms = random_inputs(64, 51)
    rewards, discounts = rewards.clamp(-0.5, 0.5), torch.full_like(rewards, 0.7)
    projected = project_distribution(probs, rewards, discounts, atoms)
    torch.testing.assert_close(
        mean_value(projected, atoms), rewards + 0.7 * mean_value(probs, atoms)
    )


def test_a_target_on_an_atom_stays_whole():
    atoms = torch.arange(-2.0, 3.0)
    probs = torch.tensor([[0.1, 0.2, 0.3, 0.4, 0.0]])
    still = project_distribution(probs, torch.zeros(1), torch.ones(1), atoms)
    assert torch.equal(still, probs)
    shifted = project_distribution(probs, torch.ones(1), torch.ones(1), atoms)
    assert torch.equal(shifted, torch.tensor([[0.0, 0.1, 0.2, 0.3, 0.4]]))


def test_targets_beyond_the_support_go_to_the_end_atoms():
    probs, _, discounts, atoms = random_inputs(2, 11)
    rewards = torch.tensor([-1e6, math.inf], dtype=torch.double)
    projected = project_distribution(probs, rewards, discounts, atoms)
    low, high = end_atom_mass(projected)
    assert low.tolist() == pytest.approx([1.0, 0.0])
    assert high.tolist() == pytest.approx([0.0, 1.0])


def test_after_termination_only_the_reward_is_left():
    probs, _, _, atoms = random_inputs(1, 6)
    half_way = torch.tensor([0.25], dtype=torch.double)
    projected = project_distribution(probs, half_way, torch.zeros_like(half_way), atoms)
    # The atoms are -2, -1, 0, 1, 2, 3.
    assert projected[0].tolist() == pytest.approx([0.0, 0.0, 0.75, 0.25, 0.0, 0.0])


@pytest.mark.parametrize("index", [0, 1, 2])
def test_a_nan_spoils_its_own_row_only(index):
    inputs = random_inputs(4, 11)
    expected = project_distribution(*inputs)
    inputs[index][1] = math.nan
    projected = project_distribution(*inputs)
    assert projected[1].isnan().any()
    others = [0, 2, 3]
    torch.testing.assert_close(projected[others], expected[others])


def test_no_gradient_flows_through_targets():
    probs, rewards, discounts, atoms = random_inputs(4, 11)
    probs.requires_grad_()
    rewards.requires_grad_()
    projected = project_distribution(probs, rewards, discounts, atoms)
    assert not projected.requires_grad


def test_inputs_are_left_as_they_were():
    inputs = random_inputs(4, 11)
    copies = [tensor.clone() for tensor in inputs]
    project_distribution(*inputs)
    assert all(torch.equal(a, b) for a, b in zip(inputs, copies, strict=True))


@pytest.mark.parametrize(
    ("index", "shape", "name"),
    [
        (0, (11,), "probs"),
        (1, (4, 1), "rewards"),
        (2, (3,), "discounts"),
        (3, (10,), "atoms"),
        (3, (1, 11), "atoms"),
    ],
)
def test_wrong_shapes_are_named(index, shape, name):
    inputs = list(random_inputs(4, 11))
    inputs[index] = torch.zeros(shape, dtype=torch.double)
    with pytest.raises(ValueError, match=name):
        project_distribution(*inputs)


@pytest.mark.parametrize(
    "atoms",
    [[2.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 3.0], [0.0, 1.0, math.nan]],
)
def test_atoms_that_do_not_increase_evenly_are_refused(atoms):
    zeros = torch.zeros(4)
    with pytest.raises(ValueError, match="atoms must increase in even steps"):
        project_distribution(torch.zeros(4, 3), zeros, zeros, torch.tensor(atoms))


def test_a_single_atom_is_refused():
    zeros = torch.zeros(4)
    with pytest.raises(ValueError, match="at least 2"):
        project_distribution(torch.ones(4, 1), zeros, zeros, torch.zeros(1))


def test_the_mean_value_is_the_weighted_sum_and_carries_the_gradient():
    probs, _, _, atoms = random_inputs(4, 11)
    probs.requires_grad_()
    mean = mean_value(probs, atoms)
    torch.testing.assert_close(mean, (probs * atoms).sum(-1))
    (gradient,) = torch.autograd.grad(mean.sum(), probs)
    torch.testing.assert_close(gradient, atoms.expand(4, 11))


def test_the_mean_value_names_wrong_atoms():
    with pytest.raises(ValueError, match="atoms"):
        mean_value(torch.zeros(4, 11), torch.zeros(10))


def test_cross_entropy_is_the_formula():
    target, _, _, _ = random_inputs(4, 11, seed=1)
    logits = torch.randn(4, 11, dtype=torch.double)
    p = logits.softmax(-1)
    expected = [-sum(target[i] * p[i].log()).item() for i in range(4)]
    assert cross_entropy(target, logits).tolist() == pytest.approx(expected)


def test_the_gradient_of_cross_entropy_is_softmax_minus_target():
    target, _, _, _ = random_inputs(4, 11, seed=1)
    target.requires_grad_()
    logits = torch.randn(4, 11, dtype=torch.double, requires_grad=True)
    cross_entropy(target, logits).sum().backward()
    torch.testing.assert_close(logits.grad, (logits.softmax(-1) - target).detach())
    assert target.grad is None


def test_cross_entropy_names_wrong_shapes():
    with pytest.raises(ValueError, match="logits"):
        cross_entropy(torch.zeros(4, 11), torch.zeros(4, 10))
