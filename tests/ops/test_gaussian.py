import pytest
import torch
from torch.distributions import Independent, Normal, kl_divergence

from rllib_impass.ops import gaussian


@pytest.fixture
def parameters():
    torch.manual_seed(0)
    return torch.randn(5, 3), torch.rand(5, 3) + 0.1


def torch_twin(mean, sigma):
    return Independent(Normal(mean, sigma), 1)


def test_log_prob_and_entropy_equal_torch(parameters):
    mean, sigma = parameters
    actions = torch.randn(5, 3)
    twin = torch_twin(mean, sigma)
    torch.testing.assert_close(
        gaussian.log_prob(actions, mean, sigma), twin.log_prob(actions)
    )
    torch.testing.assert_close(gaussian.entropy(sigma), twin.entropy())


def test_kl_equals_torch_and_is_not_symmetric(parameters):
    mean, sigma = parameters
    other_mean, other_sigma = mean + 0.3, sigma * 1.7
    kl = gaussian.kl_divergence(mean, sigma, other_mean, other_sigma)
    twin = kl_divergence(torch_twin(mean, sigma), torch_twin(other_mean, other_sigma))
    torch.testing.assert_close(kl, twin)
    back = gaussian.kl_divergence(other_mean, other_sigma, mean, sigma)
    assert not torch.allclose(kl, back)


def test_kl_of_a_distribution_with_itself_is_zero(parameters):
    mean, sigma = parameters
    assert gaussian.kl_divergence(mean, sigma, mean, sigma).abs().max() < 1e-6


def test_samples_have_the_right_moments_and_gradients():
    mean = torch.full((200_000, 1), 0.5, requires_grad=True)
    sigma = torch.full((200_000, 1), 2.0, requires_grad=True)
    actions = gaussian.sample(mean, sigma)
    assert actions.mean().item() == pytest.approx(0.5, abs=0.03)
    assert actions.std().item() == pytest.approx(2.0, abs=0.03)
    actions.sum().backward()
    assert torch.equal(mean.grad, torch.ones_like(mean))
    eps = (actions - mean) / sigma
    torch.testing.assert_close(sigma.grad, eps)


def test_shapes_must_agree(parameters):
    mean, sigma = parameters
    with pytest.raises(ValueError, match="shapes must be equal"):
        gaussian.log_prob(torch.zeros(5, 2), mean, sigma)
    with pytest.raises(ValueError, match="shapes must be equal"):
        gaussian.sample(mean, sigma[:, :1])
