"""The networks, what a critic's outputs mean, and how actors explore with them."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from ray.rllib.core.columns import Columns

from rllib_impass import D4PGConfig
from rllib_impass.algorithms.d4pg.critic_heads import CategoricalHead, ScalarHead
from rllib_impass.algorithms.d4pg.d4pg_rl_module import D4PGRLModule
from rllib_impass.ops.moments import batch_moments

FRAME, K, ACTION = 5, 2, 3


def make_module(*, inference_only=False, **training):
    config = D4PGConfig().training(num_stacked_states=K, **training)
    config.rl_module(model_config={"actor_hiddens": [8, 6], "critic_hiddens": [7, 9]})
    return D4PGRLModule(
        observation_space=gym.spaces.Box(-np.inf, np.inf, (K * FRAME,), np.float32),
        action_space=gym.spaces.Box(-1.0, 1.0, (ACTION,), np.float32),
        inference_only=inference_only,
        model_config=config.model_config,
    )


@pytest.fixture
def states():
    torch.manual_seed(0)
    return torch.randn(7, K * FRAME)


@pytest.mark.parametrize(("distributional", "size"), [(True, 51), (False, 1)])
def test_networks_have_the_sizes_they_are_told(states, distributional, size):
    module = make_module(distributional=distributional)

    def sizes(network):
        layers = [m for m in network.modules() if isinstance(m, torch.nn.Linear)]
        return [(m.in_features, m.out_features) for m in layers]

    assert sizes(module.actor) == [(10, 8), (8, 6), (6, 3)]
    assert sizes(module.critic) == [(13, 7), (7, 9), (9, size)]
    outputs = module.critic(states, module.actor(states))
    assert outputs.shape == (7, size)
    assert module.head.mean(outputs).shape == (7,)


def test_the_first_actions_are_not_saturated(states):
    actions = make_module().forward_inference({Columns.OBS: 100.0 * states})
    assert actions[Columns.ACTIONS].abs().max() < 0.2


def test_inference_is_the_policy_and_exploration_adds_noise_of_its_deviation():
    module = make_module()
    module.exploration_sigma = 0.1
    batch = {Columns.OBS: torch.randn(1, K * FRAME).repeat(20_000, 1)}
    mean = module.actor(module.normalize(batch[Columns.OBS]))
    assert torch.equal(module.forward_inference(batch)[Columns.ACTIONS], mean)
    explored = module.forward_exploration(batch)
    noise = explored[Columns.ACTIONS] - mean
    assert noise.mean().abs() < 0.005
    assert noise.std().item() == pytest.approx(0.1, rel=0.02)
    means, log_sigmas = explored[Columns.ACTION_DIST_INPUTS].chunk(2, dim=-1)
    assert torch.equal(means, mean)
    torch.testing.assert_close(log_sigmas.exp(), torch.full_like(mean, 0.1))


def test_no_noise_drives_an_action_out_of_its_space(states):
    module = make_module()
    module.exploration_sigma = 5.0
    actions = module.forward_exploration({Columns.OBS: states})[Columns.ACTIONS]
    assert actions.abs().max() == 1.0


@pytest.mark.parametrize("prioritized", [False, True])
def test_actors_have_the_critic_only_to_compute_priorities(states, prioritized):
    learner = make_module(prioritized_replay=prioritized)
    actor = make_module(prioritized_replay=prioritized, inference_only=True)
    seen = torch.randn(100, FRAME) * 3.0 + 5.0
    learner.normalizer.update(batch_moments(seen, torch.ones(100, dtype=torch.bool)))
    actor.set_state(learner.get_state(inference_only=True))
    assert hasattr(actor, "critic") is prioritized
    assert not hasattr(actor, "target_actor")
    assert not hasattr(actor, "target_critic")
    batch = {Columns.OBS: states}
    ours = learner.forward_inference(batch)[Columns.ACTIONS]
    assert torch.equal(ours, actor.forward_inference(batch)[Columns.ACTIONS])


def test_slow_copies_start_equal_and_never_ask_for_gradients():
    module = make_module()
    for online, slow in (
        (module.actor, module.target_actor),
        (module.critic, module.target_critic),
    ):
        for a, b in zip(online.parameters(), slow.parameters(), strict=True):
            assert torch.equal(a, b)
            assert a.requires_grad
            assert not b.requires_grad


def test_a_scalar_head_is_the_n_step_return_and_its_error():
    head = ScalarHead()
    outputs = torch.tensor([[2.0], [-1.0]])
    rewards, discounts = torch.tensor([1.0, 3.0]), torch.tensor([0.5, 0.0])
    target = head.target(outputs, rewards, discounts)
    assert head.mean(outputs).tolist() == [2.0, -1.0]
    assert target.tolist() == [1.0 + 0.5 * 2.0, 3.0]
    assert head.loss(outputs, target).tolist() == [0.0, 0.5 * 4.0**2]
    assert head.priorities(outputs, target).tolist() == [0.0, 4.0]
    assert head.clipped_mass(target) == {}


def test_a_scalar_target_has_no_gradient():
    outputs = torch.tensor([[2.0]], requires_grad=True)
    target = ScalarHead().target(outputs, torch.ones(1), torch.ones(1))
    assert not target.requires_grad


def test_a_categorical_priority_is_the_kl_to_the_target():
    torch.manual_seed(0)
    head = CategoricalHead(num_atoms=5, v_min=-1.0, v_max=1.0)
    outputs, target = torch.randn(6, 5), torch.randn(6, 5).softmax(-1)
    target[0] = torch.tensor([0.0, 1.0, 0.0, 0.0, 0.0])
    target[1] = outputs[1].softmax(-1)
    expected = [
        sum(q * (q / p).log() for q, p in zip(*row, strict=True) if q > 0)
        for row in zip(target, outputs.softmax(-1), strict=True)
    ]
    found = head.priorities(outputs, target)
    torch.testing.assert_close(found, torch.stack(expected), atol=1e-6, rtol=1e-5)
    assert found.min() >= 0.0


def test_the_atoms_are_no_weights():
    head = CategoricalHead(num_atoms=3, v_min=-2.0, v_max=4.0)
    assert head.atoms.tolist() == [-2.0, 1.0, 4.0]
    assert head.state_dict() == {}
    assert head.mean(torch.tensor([[0.0, 0.0, 0.0]])).item() == pytest.approx(1.0)
