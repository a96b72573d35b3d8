"""V-trace against the formula as it is written."""

import math

import pytest
import torch

from rllib_impass.ops.vtrace import lambda_advantages, vtrace


def ground_truth(
    log_rhos, discounts, rewards, values, bootstrap, clip_rho, clip_c, clip_pg_rho, lam
):
    """v_s = V(x_s) + sum_t (prod_{i<t} discount_i c_i) rho_t delta_t; slow on purpose.

    The sum runs over t = s ... s+n-1, the product over i = s ... t-1 (equation 1).
    """
    T, B = log_rhos.shape
    V = torch.cat([values, bootstrap[None]])
    vs = torch.zeros(T + 1, B, dtype=values.dtype)
    vs[T] = bootstrap
    advantages = torch.zeros(T, B, dtype=values.dtype)
    for b in range(B):
        ratio = [math.exp(float(x)) for x in log_rhos[:, b]]
        for s in range(T):
            total = float(V[s, b])
            for t in range(s, T):
                product = 1.0
                for i in range(s, t):
                    product *= float(discounts[i, b]) * lam * min(clip_c, ratio[i])
                delta = min(clip_rho, ratio[t]) * float(
                    rewards[t, b] + discounts[t, b] * V[t + 1, b] - V[t, b]
                )
                total += product * delta
            vs[s, b] = total
        for s in range(T):
            target = lam * vs[s + 1, b] + (1 - lam) * V[s + 1, b]
            advantage = rewards[s, b] + discounts[s, b] * target - V[s, b]
            advantages[s, b] = min(clip_pg_rho, ratio[s]) * advantage
    return vs[:T], advantages


def random_inputs(T, B, seed=0):
    """Ratios from e^-2.5 to e^2.5, terminations, and auto-reset steps after them."""
    g = torch.Generator().manual_seed(seed)
    log_rhos = torch.rand(T, B, generator=g) * 5.0 - 2.5
    terminated = torch.rand(T, B, generator=g) < 0.1
    truncated = (torch.rand(T, B, generator=g) < 0.1) & ~terminated
    valid = torch.ones(T, B, dtype=torch.bool)
    valid[1:] = ~(terminated | truncated)[:-1]
    discounts = 0.9 * (~terminated & valid).float()
    log_rhos = log_rhos.masked_fill(~valid, -math.inf)
    rewards = torch.randn(T, B, generator=g) * valid
    values = torch.randn(T, B, generator=g) * 3.0
    return log_rhos, discounts, rewards, values, torch.randn(B, generator=g)


@pytest.mark.parametrize("T", [1, 5, 50])
@pytest.mark.parametrize("B", [1, 16])
@pytest.mark.parametrize(
    ("clip_rho", "clip_c", "clip_pg_rho", "lam"),
    [(1.0, 1.0, 1.0, 1.0), (0.7, 1.3, 2.5, 0.9), (3.7, 0.5, 0.6, 0.95)],
)
def test_equals_the_formula(T, B, clip_rho, clip_c, clip_pg_rho, lam):
    inputs = random_inputs(T, B)
    if T * B > 16:
        # Both sides of every clip are really there.
        ratios = inputs[0].exp()
        for clip in (clip_rho, clip_c, clip_pg_rho):
            assert (ratios > clip).any()
            assert ((ratios < clip) & (ratios > 0)).any()
        assert (inputs[0] == -math.inf).any()
    out = vtrace(
        *inputs, clip_rho=clip_rho, clip_c=clip_c, clip_pg_rho=clip_pg_rho, lambda_=lam
    )
    vs, advantages = ground_truth(*inputs, clip_rho, clip_c, clip_pg_rho, lam)
    torch.testing.assert_close(out.vs, vs, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(out.pg_advantages, advantages, rtol=1e-5, atol=1e-5)


def test_on_policy_targets_are_n_step_returns():
    T, B, gamma = 20, 3, 0.9
    rewards, values = torch.randn(T, B), torch.randn(T, B)
    bootstrap = torch.randn(B)
    out = vtrace(
        torch.zeros(T, B), torch.full((T, B), gamma), rewards, values, bootstrap
    )
    expected = bootstrap
    for t in reversed(range(T)):
        expected = rewards[t] + gamma * expected
        torch.testing.assert_close(out.vs[t], expected, rtol=1e-5, atol=1e-5)


def test_on_policy_advantages_are_gae():
    T, B, gamma, lam = 20, 3, 0.97, 0.9
    rewards, values, bootstrap = torch.randn(T, B), torch.randn(T, B), torch.randn(B)
    out = vtrace(
        torch.zeros(T, B),
        torch.full((T, B), gamma),
        rewards,
        values,
        bootstrap,
        lambda_=lam,
    )
    gae, next_value = torch.zeros(B), bootstrap
    for t in reversed(range(T)):
        gae = rewards[t] + gamma * next_value - values[t] + gamma * lam * gae
        next_value = values[t]
        torch.testing.assert_close(out.pg_advantages[t], gae, rtol=1e-4, atol=1e-5)


def episode_end(*, terminated):
    """Two steps, the second ends the episode; its auto-reset step; two steps more."""
    rewards = torch.tensor([1.0, 1.0, 0.0, 1.0, 1.0])[:, None]
    values = torch.tensor([10.0, 20.0, 50.0, 7.0, 8.0])[:, None]
    valid = torch.tensor([True, True, False, True, True])[:, None]
    ended = torch.tensor([False, terminated, False, False, False])[:, None]
    log_rhos = torch.zeros(5, 1).masked_fill(~valid, -math.inf)
    discounts = 0.99 * (valid & ~ended).float()
    return vtrace(log_rhos, discounts, rewards, values, torch.tensor([9.0]))


def test_a_truncated_episode_bootstraps_from_its_final_state():
    out = episode_end(terminated=False)
    # The final state, seen on the reset step, is worth 50.
    assert out.vs[1].item() == pytest.approx(1.0 + 0.99 * 50.0)
    assert out.vs[0].item() == pytest.approx(1.0 + 0.99 * (1.0 + 0.99 * 50.0))


def test_a_terminated_episode_bootstraps_from_zero():
    out = episode_end(terminated=True)
    assert out.vs[1].item() == pytest.approx(1.0)
    assert out.vs[0].item() == pytest.approx(1.0 + 0.99 * 1.0)


@pytest.mark.parametrize("terminated", [False, True])
def test_nothing_leaks_over_a_reset_step(terminated):
    out = episode_end(terminated=terminated)
    assert out.vs[2].item() == pytest.approx(50.0)
    assert out.pg_advantages[2].item() == 0.0
    assert out.vs[3].item() == pytest.approx(1.0 + 0.99 * (1.0 + 0.99 * 9.0))


def test_no_gradient_flows_through_targets():
    log_rhos, discounts, rewards, values, bootstrap = random_inputs(5, 2)
    values.requires_grad_()
    bootstrap.requires_grad_()
    out = vtrace(log_rhos, discounts, rewards, values, bootstrap)
    assert not out.vs.requires_grad
    assert not out.pg_advantages.requires_grad


def test_advantages_without_weights_are_the_bracket_of_equation_12():
    inputs = random_inputs(9, 4)
    _, discounts, rewards, values, bootstrap = inputs
    on_policy = (torch.zeros_like(rewards), *inputs[1:])
    out = vtrace(*on_policy, lambda_=0.8)
    bracket = lambda_advantages(
        out.vs, discounts, rewards, values, bootstrap, lambda_=0.8
    )
    torch.testing.assert_close(out.pg_advantages, bracket)


@pytest.mark.parametrize(
    ("index", "shape", "name"),
    [
        (0, (3,), "log_rhos"),
        (1, (3, 1), "discounts"),
        (2, (2, 3), "rewards"),
        (3, (4, 2), "values"),
        (4, (3,), "bootstrap_value"),
    ],
)
def test_wrong_shapes_are_named(index, shape, name):
    inputs = list(random_inputs(3, 2))
    inputs[index] = torch.zeros(shape)
    with pytest.raises(ValueError, match=name):
        vtrace(*inputs)
