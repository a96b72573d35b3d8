import gymnasium as gym
import numpy as np
import pytest
import torch
from ray.rllib.core.columns import Columns

from rllib_impass import IMPASSConfig
from rllib_impass.algorithms.impass.impass_rl_module import GaussianEncoderRLModule
from rllib_impass.ops.moments import batch_moments

FRAME, K, ACTION = 5, 4, 3


def make_module(*, inference_only=False, normalize=True, **model_config):
    config = IMPASSConfig().training(normalize_observations=normalize)
    config.rl_module(model_config=model_config)
    return GaussianEncoderRLModule(
        observation_space=gym.spaces.Box(-np.inf, np.inf, (K * FRAME,), np.float32),
        action_space=gym.spaces.Box(-1.0, 1.0, (ACTION,), np.float32),
        inference_only=inference_only,
        model_config=config.model_config,
    )


@pytest.fixture
def states():
    torch.manual_seed(0)
    return torch.randn(7, K * FRAME)


def test_two_hidden_layers_lead_to_mean_and_sigma_and_value(states):
    module = make_module(fcnet_hiddens=[32, 16])
    out = module.forward_train({Columns.OBS: states})[Columns.ACTION_DIST_INPUTS]
    assert out.shape == (7, 2 * ACTION)
    assert module.compute_values({Columns.OBS: states}).shape == (7,)
    linear = [m for m in module.encoder if isinstance(m, torch.nn.Linear)]
    assert [(m.in_features, m.out_features) for m in linear] == [(20, 32), (32, 16)]


def test_sigma_starts_where_it_is_told(states):
    _, sigma = make_module(initial_sigma=0.4).encode(states)
    torch.testing.assert_close(sigma, torch.full_like(sigma, 0.4), atol=0.05, rtol=0)


@pytest.mark.parametrize(("shift", "bound"), [(-50.0, 0.1), (50.0, 1.0)])
def test_sigma_stays_between_floor_and_ceiling(states, shift, bound):
    module = make_module()
    with torch.no_grad():
        module.sigma_head.bias.add_(shift)
    _, sigma = module.encode(states)
    torch.testing.assert_close(sigma, torch.full_like(sigma, bound))


def test_inference_is_the_mean_and_exploration_is_not(states):
    module = make_module()
    mean, _ = module.encode(states)
    batch = {Columns.OBS: states}
    assert torch.equal(module.forward_inference(batch)[Columns.ACTIONS], mean)
    first = module.forward_exploration(batch)
    second = module.forward_exploration(batch)
    assert not torch.equal(first[Columns.ACTIONS], second[Columns.ACTIONS])
    assert not first[Columns.ACTIONS].requires_grad


def test_losses_of_encoder_and_critic_do_not_touch_each_other(states):
    module = make_module()
    batch = {Columns.OBS: states}
    module.forward_train(batch)[Columns.ACTION_DIST_INPUTS].sum().backward()
    assert all(p.grad is None for p in module.critic.parameters())
    module.zero_grad(set_to_none=True)
    module.compute_values(batch).sum().backward()
    assert all(p.grad is None for p in module.encoder.parameters())
    assert all(p.grad is not None for p in module.critic.parameters())


def test_the_actors_copy_has_no_critic_but_the_statistics(states):
    learner, actor = make_module(), make_module(inference_only=True)
    seen = torch.randn(100, FRAME) * 3.0 + 5.0
    learner.normalizer.update(batch_moments(seen, torch.ones(100, dtype=torch.bool)))
    actor.set_state(learner.get_state(inference_only=True))
    assert not hasattr(actor, "critic")
    batch = {Columns.OBS: states}
    ours = learner.forward_inference(batch)[Columns.ACTIONS]
    assert torch.equal(ours, actor.forward_inference(batch)[Columns.ACTIONS])


def test_every_frame_of_a_stack_is_normalised_alike():
    module = make_module()
    seen = torch.randn(1000, FRAME) * 3.0 + 5.0
    module.normalizer.update(batch_moments(seen, torch.ones(1000, dtype=torch.bool)))
    normalized = module.normalizer(seen.repeat(1, K)).reshape(1000, K, FRAME)
    assert torch.equal(normalized[:, 0], normalized[:, -1])
    assert normalized.mean().abs() < 1e-4
    assert normalized.std().item() == pytest.approx(1.0, abs=1e-2)
    far = module.normalizer(torch.full((1, K * FRAME), 1e9))
    assert torch.equal(far, torch.full_like(far, 10.0))


def test_normalisation_can_be_switched_off(states):
    module = make_module(normalize=False)
    assert module.normalizer is None
    assert not any("normalizer" in name for name in module.state_dict())
    assert torch.isfinite(module.encode(states)[0]).all()
