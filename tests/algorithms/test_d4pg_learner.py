"""How transitions are stored and trained on."""

import copy

import numpy as np
import pytest
import torch
from ray.rllib.core import DEFAULT_MODULE_ID

from configs import serial_d4pg_config
from rllib_impass import ApexDPGConfig, D4PGConfig
from rllib_impass.algorithms import actor_critic_learner
from rllib_impass.algorithms.d4pg import d4pg_learner
from rllib_impass.algorithms.d4pg.d4pg_env_runner import D4PGEnvRunner
from rllib_impass.algorithms.d4pg.d4pg_learner import (
    ACTIONS,
    NEXT_STATES,
    REPLAY,
    RETURNS,
    STATES,
    TARGETS,
    VALUES,
    WEIGHTS,
)
from rllib_impass.algorithms.d4pg.transitions import DISCOUNTS
from toy_envs import CountingEnv

BOTH = pytest.mark.parametrize("config_class", [D4PGConfig, ApexDPGConfig])


@pytest.fixture
def make():
    """Makes learners of their own, each with an actor to sample with."""
    learners = []

    def make(config_class=D4PGConfig, **training):
        config = serial_d4pg_config(CountingEnv, config_class)
        config.training(**training).validate()
        runner = D4PGEnvRunner(config=config, worker_index=0)
        learner = config.build_learner(spaces=runner.get_spaces())
        learner.build()
        learners.append(learner)
        return learner, runner

    yield make
    for learner in learners:
        learner.shutdown()


@pytest.fixture
def make_filled(make):
    """The same with a buffer that was never trained on, and lively networks."""

    def make_filled(*args, num_samples=4, **training):
        learner, runner = make(*args, **training)
        for _ in range(num_samples):
            learner._store(runner.sample())
        torch.manual_seed(2)
        for parameter in learner._networks.parameters():
            torch.nn.init.normal_(parameter, std=0.3)
        return learner, runner

    return make_filled


def draw(learner):
    """The batch that the next update will draw, with its tickets."""
    rng = copy.deepcopy(learner._rng)
    size = learner.config.train_batch_size_per_learner
    sample = learner._replay.sample(size, rng)
    columns = sample.batch | {WEIGHTS: sample.weights}
    batch = {name: torch.from_numpy(column) for name, column in columns.items()}
    return batch, sample.tickets


def loss_of(learner, batch):
    return learner.compute_loss_for_module(
        module_id=DEFAULT_MODULE_ID,
        config=learner.config,
        batch=batch,
        fwd_out=learner._forward(batch),
    )


def weights(network):
    return [parameter.detach().clone() for parameter in network.parameters()]


def assert_equal(ours, theirs):
    for a, b in zip(ours, theirs, strict=True):
        assert torch.equal(a, b)


def differ(ours, theirs):
    return any(not torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


@BOTH
def test_each_loss_trains_its_own_network_and_no_other(make_filled, config_class):
    learner, _ = make_filled(config_class, action_gradient_clip=None, reward_scale=0.3)
    module, (batch, _) = learner._networks, draw(learner)
    # Each loss alone, as the papers write it, with autograd straight through Q.
    with torch.no_grad():
        states = module.normalizer(batch[STATES])
        later = module.normalizer(batch[NEXT_STATES])
        target = module.head.target(
            module.target_critic(later, module.target_actor(later)),
            0.3 * batch[RETURNS],
            batch[DISCOUNTS],
        )
    errors = module.head.loss(module.critic(states, batch[ACTIONS]), target)
    critic_alone = torch.autograd.grad(
        (batch[WEIGHTS] * errors).mean(), list(module.critic.parameters())
    )
    q = module.head.mean(module.critic(states, module.actor(states)))
    actor_alone = torch.autograd.grad(-q.mean(), list(module.actor.parameters()))

    module.zero_grad(set_to_none=True)
    loss_of(learner, batch).backward()
    for network, expected in (
        (module.critic, critic_alone),
        (module.actor, actor_alone),
    ):
        for parameter, gradient in zip(network.parameters(), expected, strict=True):
            torch.testing.assert_close(parameter.grad, gradient, atol=1e-6, rtol=1e-4)
    for network in (module.target_actor, module.target_critic):
        assert all(parameter.grad is None for parameter in network.parameters())


def test_a_steep_critic_moves_the_policy_no_further_than_the_clip(make_filled):
    learner, _ = make_filled(ApexDPGConfig, action_gradient_clip=1e-3)
    batch, _ = draw(learner)
    module = learner._networks
    loss_of(learner, batch).backward()
    clipped = [parameter.grad.norm() for parameter in module.actor.parameters()]
    module.zero_grad(set_to_none=True)
    learner.config.action_gradient_clip = None
    loss_of(learner, batch).backward()
    free = [parameter.grad.norm() for parameter in module.actor.parameters()]
    assert all(a < 0.1 * b for a, b in zip(clipped, free, strict=True))


def test_optimizers_have_what_they_train_and_no_targets(make):
    learner, _ = make(lr=1e-3, critic_lr=5e-3)
    module = learner._networks
    for name, network in (("actor", module.actor), ("critic", module.critic)):
        (group,) = learner.optimizers()[name].param_groups
        assert {id(p) for p in group["params"]} == {id(p) for p in network.parameters()}
    learner.train_on([], {})
    rates = {n: o.param_groups[0]["lr"] for n, o in learner.optimizers().items()}
    assert rates == {"actor": 1e-3, "critic": 5e-3}


def test_targets_stand_still_until_they_are_copied(make_filled):
    learner, _ = make_filled(target_update_interval=3)
    module = learner._networks
    pairs = ((module.actor, module.target_actor), (module.critic, module.target_critic))
    for online, target in pairs:
        for a, b in zip(online.parameters(), target.parameters(), strict=True):
            b.data.copy_(a)
    for round_ in range(2):
        before = [weights(target) for _, target in pairs]
        for _ in range(2):
            learner._update()
            for (online, target), old in zip(pairs, before, strict=True):
                assert_equal(weights(target), old)
                assert differ(weights(online), old), round_
        learner._update()
        for online, target in pairs:
            assert_equal(weights(target), weights(online))


def test_soft_targets_move_by_tau_at_every_update(make_filled):
    learner, _ = make_filled(target_update_interval=1, tau=0.25)
    module = learner._networks
    before = weights(module.target_critic), weights(module.target_actor)
    learner._update()
    for network, target, old in zip(
        (module.critic, module.actor),
        (module.target_critic, module.target_actor),
        before,
        strict=True,
    ):
        for a, b, o in zip(network.parameters(), target.parameters(), old, strict=True):
            torch.testing.assert_close(b.data, 0.75 * o + 0.25 * a.data)


# Ratios that are sums of powers of two: there is no rounding to allow for.
@pytest.mark.parametrize("ratio", [3 / 64, 1 / 8, 1.25])
def test_updates_keep_their_ratio_to_what_is_stored(make, monkeypatch, ratio):
    learner, runner = make(
        updates_per_env_step=ratio, num_steps_sampled_before_learning_starts=40
    )
    updates = []
    monkeypatch.setattr(learner, "_update", lambda: updates.append(1))
    num_stored = num_steps = 0
    for _ in range(12):
        samples = runner.sample()
        num_stored += len(samples[0])
        learner.train_on(samples, {})
        if num_stored < 40:
            assert not updates
        else:
            num_steps += samples[0].num_env_steps
        assert len(updates) == int(num_steps * ratio)
    assert num_steps > 200


def test_states_are_stored_raw_and_normalised_when_sampled(make):
    learner, runner = make(num_stacked_states=3)
    sent = [runner.sample()[0] for _ in range(6)]
    for transitions in sent:
        learner.train_on([transitions], {})
    rows = learner._replay.get_state()["rows"]
    for name, column in rows.items():
        expected = np.concatenate([t.columns[name] for t in sent])
        np.testing.assert_array_equal(column, expected, err_msg=name)

    # Statistics are those of the newest frames, of the starts only.
    frames = rows[STATES][:, -2:]
    normalizer = learner._networks.normalizer
    assert normalizer.count.item() == len(frames)
    np.testing.assert_allclose(normalizer.mean, frames.mean(0), rtol=1e-5)
    np.testing.assert_allclose(normalizer.var, frames.var(0), rtol=1e-4)
    batch, _ = draw(learner)
    seen = learner._forward(batch)[STATES].reshape(-1, 3, 2)
    raw = batch[STATES].reshape(-1, 3, 2)
    expected = (raw - frames.mean(0)) / frames.std(0)
    torch.testing.assert_close(seen, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    ("support", "named"),
    [((-100.0, 0.5), "v_max=0.5"), ((50.0, 90.0), "v_min=50"), ((-50.0, 90.0), None)],
)
def test_a_support_that_is_too_narrow_is_said_once(make_filled, caplog, support, named):
    v_min, v_max = support
    learner, _ = make_filled(v_min=v_min, v_max=v_max)
    for parameter in learner._networks.parameters():
        parameter.data.mul_(0.1)
    for _ in range(4):
        learner._update()
    said = [r.getMessage() for r in caplog.records if "end atom" in r.getMessage()]
    assert len(said) == (named is not None)
    assert all(f"end atom {named}:" in message for message in said)


def test_a_nan_changes_neither_weights_nor_priorities(make_filled, monkeypatch):
    learner, _ = make_filled(ApexDPGConfig, target_update_interval=1, tau=0.5)
    learner._update()
    compute = learner.compute_loss_for_module
    monkeypatch.setattr(
        learner, "compute_loss_for_module", lambda **kw: compute(**kw) * torch.nan
    )
    before = weights(learner._networks)
    priorities = learner._replay.get_state()["tree_weights"]
    num_updates = learner._num_updates
    learner._update()
    assert_equal(weights(learner._networks), before)
    after = learner._replay.get_state()["tree_weights"]
    np.testing.assert_array_equal(after, priorities)
    assert learner._num_updates == num_updates
    key = (DEFAULT_MODULE_ID, "num_skipped_updates_lifetime")
    assert learner.metrics.peek(key) == 1


@BOTH
def test_sampled_rows_get_the_priorities_of_what_was_learnt(make_filled, config_class):
    learner, _ = make_filled(config_class, prioritized_replay=True)
    batch, tickets = draw(learner)
    with torch.no_grad():
        outputs = learner._forward(batch)
    expected = learner._networks.head.priorities(outputs[VALUES], outputs[TARGETS])
    before = learner._replay.get_state()["tree_weights"]
    learner._update()
    after = learner._replay.get_state()["tree_weights"]
    replay = learner._replay
    np.testing.assert_allclose(
        after[tickets], (expected.numpy() + replay.epsilon) ** replay.alpha, rtol=1e-5
    )
    others = np.setdiff1d(np.arange(len(after)), tickets)
    np.testing.assert_array_equal(after[others], before[others])


def test_beta_follows_its_schedule(make):
    learner, runner = make(
        ApexDPGConfig,
        replay_beta=[[0, 0.4], [100, 1.0]],
        num_steps_sampled_before_learning_starts=1,
        updates_per_env_step=1,
    )
    for steps, beta in ((0, 0.4), (50, 0.7), (1000, 1.0)):
        learner.train_on(runner.sample(), {"num_env_steps_sampled_lifetime": steps})
        assert learner._replay.beta == pytest.approx(beta)


@pytest.mark.parametrize("with_targets", [False, True])
def test_actors_get_the_policy_they_shall_act_with(make_filled, with_targets):
    learner, runner = make_filled(act_with_target_policy=with_targets)
    learner._update()
    module = learner._networks
    meant = module.target_actor if with_targets else module.actor
    assert differ(weights(module.target_actor), weights(module.actor))
    runner.set_state(learner.state_for_actors())
    assert_equal(weights(runner.module.actor), weights(meant))
    assert torch.equal(runner.module.normalizer.mean, module.normalizer.mean)


def test_learners_meet_as_often_with_data_as_without(make, monkeypatch):
    # They would wait for each other for ever. Here, somebody else has no data yet.
    met = []
    monkeypatch.setattr(
        d4pg_learner,
        "max_over_learners",
        lambda x, _: (met.append("max"), max(x, 1))[1],
    )
    monkeypatch.setattr(
        actor_critic_learner, "moments_over_learners", lambda x: (met.append("m"), x)[1]
    )
    settings = {"num_steps_sampled_before_learning_starts": 1}
    (with_data, runner), (without, _) = make(**settings), make(**settings)
    with_data.train_on(runner.sample(), {})
    meetings, met[:] = met.copy(), []
    without.train_on([], {})
    assert met == meetings != []
    assert with_data._num_updates == without._num_updates == 0
    assert without._networks.normalizer.count == 0
    assert torch.isfinite(without._networks.normalizer.mean).all()


def test_a_busy_learner_can_be_restored(make):
    learner, runner = make()
    sample = runner.sample()
    wait, was_idle = learner.wait_until_idle, []

    def wait_while_busy():
        learner._queue.put((sample, {}))
        was_idle.append(wait(timeout_s=10))

    learner.wait_until_idle = wait_while_busy
    learner.set_state(learner.get_state())
    assert was_idle == [True]


def test_only_checkpoints_carry_the_buffer(make_filled):
    learner, _ = make_filled(store_replay_in_checkpoints=True)
    assert len(learner.get_state()[REPLAY]["rows"][RETURNS]) == len(learner._replay)
    assert REPLAY not in learner.get_state(components="rl_module", inference_only=True)
    learner.config.store_replay_in_checkpoints = False
    assert REPLAY not in learner.get_state()


def test_of_several_learners_only_the_first_takes_over_the_draws(make, monkeypatch):
    first, _ = make()
    state = first.get_state()
    first._rng.random()
    monkeypatch.setattr(d4pg_learner, "rank", lambda: 1)
    second, _ = make()
    own = copy.deepcopy(second._rng)
    second.set_state(state)
    assert second._rng.random() == own.random()
    monkeypatch.setattr(d4pg_learner, "rank", lambda: 0)
    first.set_state(state)
    second.set_state(state)
    assert first._rng.random() == second._rng.random()
