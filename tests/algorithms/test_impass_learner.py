"""How one batch is trained on."""

import numpy as np
import pytest
import torch
from ray.rllib.core import ALL_MODULES, DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns

from configs import serial_config
from rllib_impass.algorithms.impass import impass_learner
from rllib_impass.env.trajectory_env_runner import TrajectoryEnvRunner
from toy_envs import CountingEnv


@pytest.fixture
def learner_and_sample(ray_session):
    """A learner of its own, and a fragment in which episodes end."""
    learners = []

    def make(**training):
        config = serial_config(CountingEnv).training(
            train_batch_size_per_learner=32, minibatch_size=8, **training
        )
        config.validate()
        runner = TrajectoryEnvRunner(config=config, worker_index=0)
        learner = config.build_learner(spaces=runner.get_spaces())
        learner.build()
        learners.append(learner)
        return learner, runner.sample()

    yield make
    for learner in learners:
        learner.shutdown()


@pytest.mark.parametrize("num_epochs", [1, 3])
def test_one_v_trace_then_every_step_once_per_pass(
    learner_and_sample, monkeypatch, num_epochs
):
    learner, sample = learner_and_sample(num_epochs=num_epochs)
    calls, seen = [], []
    compute = impass_learner.compute_targets
    step = learner._take_gradient_step
    monkeypatch.setattr(
        impass_learner,
        "compute_targets",
        lambda *a, **kw: (calls.append(1), compute(*a, **kw))[1],
    )
    monkeypatch.setattr(
        learner,
        "_take_gradient_step",
        lambda minibatch: (seen.append(minibatch[Columns.OBS]), step(minibatch))[1],
    )
    learner.train_on(sample, {})
    assert len(calls) == 1
    assert [len(minibatch) for minibatch in seen] == [8] * 4 * num_epochs
    states = learner._make_batch(sample).states[:-1].flatten(0, 1).numpy()
    for epoch in range(num_epochs):
        rows = np.concatenate([m.numpy() for m in seen[4 * epoch : 4 * epoch + 4]])
        assert not np.array_equal(rows, states), "minibatches must be shuffled"
        order = np.lexsort(rows.T), np.lexsort(states.T)
        np.testing.assert_array_equal(rows[order[0]], states[order[1]])


def test_statistics_come_from_valid_newest_states_only(learner_and_sample):
    learner, sample = learner_and_sample()
    learner.train_on(sample, {})
    (trajectory,) = sample
    assert not trajectory.valid.all()
    seen = trajectory.frames[3:-1][trajectory.valid]
    normalizer = learner.module[DEFAULT_MODULE_ID].normalizer
    assert normalizer.count.item() == trajectory.num_valid_steps
    np.testing.assert_allclose(normalizer.mean, seen.mean(0), rtol=1e-5)
    np.testing.assert_allclose(normalizer.var, seen.var(0), rtol=1e-4)
    returns = trajectory.returns[trajectory.valid]
    assert learner._reward_scale == pytest.approx(1.0 / returns.std(), rel=1e-4)


def test_rewards_can_stay_as_they_are(learner_and_sample):
    learner, sample = learner_and_sample(scale_rewards=False)
    learner.train_on(sample, {})
    assert learner._reward_scale == 1.0


@pytest.mark.parametrize("policy_ratio_clip", [None, 0.2])
def test_advantages_are_normalised_over_valid_steps(
    learner_and_sample, policy_ratio_clip
):
    learner, sample = learner_and_sample(policy_ratio_clip=policy_ratio_clip)
    batch = learner._make_batch(sample)
    advantages = learner._compute_targets(batch).advantages[batch.valid]
    assert advantages.mean().item() == pytest.approx(0.0, abs=1e-5)
    assert advantages.std(correction=0).item() == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("policy_ratio_clip", [None, 0.2])
def test_actions_that_the_policy_never_takes_do_not_move_it(
    learner_and_sample, policy_ratio_clip
):
    learner, sample = learner_and_sample(policy_ratio_clip=policy_ratio_clip)
    batch = learner._make_batch(sample)
    far = torch.arange(len(batch.valid)).unsqueeze(1) % 2 == 0
    away = 1e3 * far.unsqueeze(2)
    batch = batch._replace(actions=batch.actions + away, means=batch.means + away)
    targets = learner._compute_targets(batch)
    module = learner.module[DEFAULT_MODULE_ID]
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    learner._train_in_minibatches(batch._replace(valid=batch.valid & far), targets)
    # Nor the critic: of ratio zero, a target is the value itself.
    assert (batch.valid & far).any()
    for name, tensor in module.state_dict().items():
        torch.testing.assert_close(tensor, before[name], msg=name)


def test_a_batch_whose_samples_were_lost_changes_no_weights(learner_and_sample):
    learner, _ = learner_and_sample()
    before = learner.get_state()["rl_module"][DEFAULT_MODULE_ID]
    learner.train_on([], {})
    after = learner.get_state()["rl_module"][DEFAULT_MODULE_ID]
    for name in before:
        np.testing.assert_array_equal(before[name], after[name], err_msg=name)


def test_encoder_and_critic_have_optimizers_of_their_own(learner_and_sample):
    learner, _ = learner_and_sample(lr=1e-3, critic_lr=5e-3)
    optimizers = dict(learner.get_optimizers_for_module(DEFAULT_MODULE_ID))
    sizes = {
        name.split("_")[-1]: sum(p.numel() for p in o.param_groups[0]["params"])
        for name, o in optimizers.items()
    }
    module = learner.module[DEFAULT_MODULE_ID]
    critic_size = sum(p.numel() for p in module.critic.parameters())
    total = sum(p.numel() for p in module.parameters())
    assert sizes == {"critic": critic_size, "encoder": total - critic_size}


def test_a_busy_learner_can_be_restored(learner_and_sample):
    learner, sample = learner_and_sample()
    wait, was_idle = learner.wait_until_idle, []

    def wait_while_busy():
        learner._queue.put((sample, {}))
        was_idle.append(wait(timeout_s=10))

    learner.wait_until_idle = wait_while_busy
    learner.set_state(learner.get_state())
    assert was_idle == [True]


def test_reading_the_state_does_not_alias_the_weights(learner_and_sample):
    learner, sample = learner_and_sample()
    state = learner.get_state()["rl_module"][DEFAULT_MODULE_ID]
    copy = {name: np.copy(value) for name, value in state.items()}
    learner.train_on(sample, {})
    for name in state:
        np.testing.assert_array_equal(state[name], copy[name], err_msg=name)


def test_a_result_shows_the_mean_over_all_batches_since_the_last(learner_and_sample):
    learner, _ = learner_and_sample()
    for value in (1.0, 3.0):
        learner.log_values({"loss": value})
    assert learner.metrics.reduce()[ALL_MODULES]["loss"].peek() == 2.0
    learner.log_values({"loss": 5.0})
    assert learner.metrics.reduce()[ALL_MODULES]["loss"].peek() == 5.0
