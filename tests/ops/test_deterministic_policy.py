"""The deterministic policy gradient against autograd through Q."""

import pytest
import torch

from rllib_impass.ops.deterministic_policy import clip_action_gradients, policy_loss


@pytest.mark.parametrize(
    ("gradient", "expected"),
    [
        ([0.3, 0.4], [0.3, 0.4]),
        ([0.6, 0.8], [0.6, 0.8]),
        ([30.0, -40.0], [0.6, -0.8]),
        ([0.0, 0.0], [0.0, 0.0]),
    ],
)
def test_a_gradient_is_shortened_to_the_norm_and_never_lengthened(gradient, expected):
    clipped = clip_action_gradients(torch.tensor([gradient]), 1.0)
    torch.testing.assert_close(clipped, torch.tensor([expected]))


def test_each_row_is_clipped_by_its_own_norm():
    rows = torch.tensor([[3.0, 4.0], [0.03, 0.04], [0.0, -7.0]])
    clipped = clip_action_gradients(rows, 0.5)
    torch.testing.assert_close(clipped.norm(dim=-1), torch.tensor([0.5, 0.05, 0.5]))
    torch.testing.assert_close(clipped[1], rows[1])


def test_without_a_norm_gradients_stay_as_they_are():
    rows = torch.tensor([[300.0, 400.0], [0.0, 0.0]])
    assert torch.equal(clip_action_gradients(rows, None), rows)


@pytest.fixture
def policy_and_q():
    """A small policy and a critic that is anything but linear in the action."""
    torch.manual_seed(0)
    policy = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Tanh())
    steepness = torch.randn(3, 2)

    def q(states, actions):
        return ((states @ steepness) * actions.sin()).sum(-1) - actions.pow(4).sum(-1)

    return policy, q, torch.randn(8, 3)


def test_its_gradient_is_that_of_q_along_the_policy(policy_and_q):
    policy, q, states = policy_and_q
    parameters = list(policy.parameters())
    expected = torch.autograd.grad(-q(states, policy(states)).mean(), parameters)

    actions = policy(states)
    proposed = actions.detach().requires_grad_()
    (slopes,) = torch.autograd.grad(q(states, proposed).sum(), proposed)
    found = torch.autograd.grad(policy_loss(actions, slopes), parameters)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_the_slopes_are_constants(policy_and_q):
    policy, _, states = policy_and_q
    slopes = torch.ones(8, 2, requires_grad=True)
    policy_loss(policy(states), slopes).backward()
    assert slopes.grad is None


def test_shapes_must_agree():
    with pytest.raises(ValueError, match=r"\(8, 2\) and \(8,\)"):
        policy_loss(torch.zeros(8, 2), torch.zeros(8))
