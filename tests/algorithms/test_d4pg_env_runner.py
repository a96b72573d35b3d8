"""What actors send, and how they act."""

import numpy as np
import pytest
import torch
from ray.rllib.core.columns import Columns
from scipy.special import xlogy

from configs import serial_d4pg_config, small_d4pg_config
from rllib_impass import ApexDPGConfig
from rllib_impass.algorithms.d4pg import transitions as columns
from rllib_impass.algorithms.d4pg.d4pg_env_runner import D4PGEnvRunner
from toy_envs import CountingEnv

SCALE = 0.5


def make_runner(config, worker_index=0):
    config.validate()
    runner = D4PGEnvRunner(config=config, worker_index=worker_index)
    # Untrained networks output next to nothing.
    torch.manual_seed(5)
    for parameter in runner.module.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    runner.module.normalizer.mean.fill_(2.0)
    return runner


def test_actions_are_what_the_env_got():
    config = serial_d4pg_config(CountingEnv).training(n_step=1)
    runner = make_runner(config.env_runners(exploration_sigma=0.8))
    rows = [runner.sample()[0].columns for _ in range(4)]
    actions = np.concatenate([row[columns.ACTIONS] for row in rows])
    assert np.abs(actions).max() == 1.0, "some should have been clipped"
    # The env's reward is its step plus the action, which lies in [-2, 1].
    steps = np.concatenate([row[columns.STATES][:, 1] for row in rows]) + 1
    got = np.concatenate([row[columns.RETURNS] for row in rows]) - steps
    np.testing.assert_allclose(got, -2.0 + (actions[:, 0] + 1.0) * 1.5, atol=1e-5)


def test_every_actor_has_its_own_rung_of_the_ladder():
    config = small_d4pg_config(CountingEnv, ApexDPGConfig)
    config.env_runners(num_env_runners=3, exploration_sigma=0.5)
    for worker_index, sigma in ((1, 0.5), (2, 0.5**4.5), (3, 0.5**8)):
        runner = make_runner(config, worker_index)
        assert runner.module.exploration_sigma == pytest.approx(sigma)


def test_an_evaluation_acts_without_noise():
    config = serial_d4pg_config(CountingEnv).evaluation(evaluation_interval=1)
    config.validate()
    runner = make_runner(config.get_evaluation_config_object())
    episodes = runner.sample(num_episodes=5)
    for episode in episodes:
        states = torch.tensor(episode.get_observations()[:-1], dtype=torch.float32)
        actions = runner.module.forward_inference({Columns.OBS: states})
        np.testing.assert_allclose(
            episode.get_actions(), actions[Columns.ACTIONS], atol=1e-6
        )


def sampled(distributional):
    """A prioritised actor's module and what it sent."""
    config = serial_d4pg_config(CountingEnv).training(
        distributional=distributional,
        prioritized_replay=True,
        reward_scale=SCALE,
        num_stacked_states=3,
        num_atoms=7,
        v_min=-2.0,
        v_max=6.0,
    )
    runner = make_runner(config)
    for _ in range(2):
        (made,) = runner.sample()
    assert 0.0 in made.columns[columns.DISCOUNTS]
    return runner.module, made


@torch.no_grad()
def critic_outputs(module, rows):
    """At the transitions, and at their next states along the policy."""
    tensors = {name: torch.from_numpy(column) for name, column in rows.items()}
    states = module.normalize(tensors[columns.STATES])
    later = module.normalize(tensors[columns.NEXT_STATES])
    return (
        module.critic(states, tensors[columns.ACTIONS]).double(),
        module.critic(later, module.actor(later)).double(),
    )


def test_first_priorities_of_a_scalar_critic_are_absolute_errors():
    module, made = sampled(distributional=False)
    values, next_values = critic_outputs(module, made.columns)
    for i, priority in enumerate(made.priorities):
        target = (
            SCALE * made.columns[columns.RETURNS][i]
            + made.columns[columns.DISCOUNTS][i] * next_values[i].item()
        )
        assert priority == pytest.approx(abs(values[i].item() - target), rel=1e-4)


def test_first_priorities_of_a_categorical_critic_are_kls():
    module, made = sampled(distributional=True)
    logits, next_logits = critic_outputs(module, made.columns)
    atoms = np.linspace(-2.0, 6.0, 7)
    spacing = atoms[1] - atoms[0]
    for i, priority in enumerate(made.priorities):
        # C51's equation 7, as it is written.
        shifted = np.clip(
            SCALE * made.columns[columns.RETURNS][i]
            + made.columns[columns.DISCOUNTS][i] * atoms,
            -2.0,
            6.0,
        )
        shares = np.clip(1.0 - np.abs(shifted - atoms[:, None]) / spacing, 0.0, 1.0)
        target = shares @ next_logits[i].softmax(-1).numpy()
        log_probs = logits[i].log_softmax(-1).numpy()
        kl = (xlogy(target, target) - target * log_probs).sum()
        assert priority == pytest.approx(kl, rel=1e-3, abs=1e-5)


def test_uniform_replay_needs_no_priorities():
    (made,) = make_runner(serial_d4pg_config(CountingEnv)).sample()
    assert made.priorities is None
