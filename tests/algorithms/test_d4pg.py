"""D4PG and Ape-X DPG as a user runs them."""

import numpy as np
import pytest
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.core import ALL_MODULES, DEFAULT_MODULE_ID

from assertions import assert_same
from configs import serial_d4pg_config, small_d4pg_config
from metrics_page import assert_reported, documented_metrics
from rllib_impass import ApexDPGConfig, D4PGConfig
from rllib_impass.algorithms.d4pg.d4pg_learner import PROGRESS, REPLAY
from toy_envs import CountingEnv

BOTH = pytest.mark.parametrize("config_class", [D4PGConfig, ApexDPGConfig])


def weights(algorithm):
    return algorithm.learner_group.get_weights()[DEFAULT_MODULE_ID]


def learner(algorithm):
    return algorithm.learner_group._learner


def counts(result):
    return result["learners"][ALL_MODULES]


@BOTH
def test_actors_feed_a_learner_that_trains_everything(build, config_class):
    algorithm = build(small_d4pg_config("Hopper-v5", config_class))
    before = weights(algorithm)
    for _ in range(3):
        result = algorithm.train()
    after = weights(algorithm)
    assert all(np.isfinite(value).all() for value in after.values())
    changed = {name for name in before if not np.array_equal(before[name], after[name])}
    assert {name.split(".")[0] for name in changed} >= {"actor", "critic", "normalizer"}
    assert result["learners"][DEFAULT_MODULE_ID]["policy_lag_mean"] < 5

    documented = set(documented_metrics("D4PG"))
    assert len(documented) > 20
    clipped = {path for path in documented if "clipped_target_mass" in path}
    assert len(clipped) == 2
    if config_class is ApexDPGConfig:
        documented -= clipped
    assert_reported(documented, result)
    assert np.isfinite(algorithm.evaluate()["env_runners"]["episode_return_mean"])


def test_counts_are_those_of_now(build):
    config = serial_d4pg_config("Hopper-v5").training(updates_per_env_step=1 / 16)
    algorithm = build(config)
    for _ in range(3):
        result = algorithm.train()
        assert counts(result)["num_updates_lifetime"] == learner(algorithm)._num_updates
        assert counts(result)["replay_size"] == len(learner(algorithm)._replay)
        # Whoever samples and trains in turns is never behind.
        assert result["learners"][DEFAULT_MODULE_ID]["policy_lag_mean"] == 0.0
    sampled = result["num_env_steps_sampled_lifetime"]
    assert counts(result)["num_env_steps_trained_lifetime"] == sampled
    updates = counts(result)["num_updates_lifetime"]
    # Nothing is learnt of the first two samples.
    assert (sampled - 2 * 32) / 16 - 1 <= updates <= sampled / 16


def test_one_process_and_one_seed_give_one_result(build):
    results = []
    for _ in range(2):
        algorithm = build(serial_d4pg_config("Hopper-v5", ApexDPGConfig))
        algorithm.train()
        results.append(weights(algorithm))
        algorithm.stop()
    assert_same(*results)


@pytest.mark.parametrize("with_targets", [False, True])
def test_a_process_of_its_own_acts_with_the_policy_it_is_told(build, with_targets):
    config = serial_d4pg_config("Hopper-v5")
    algorithm = build(config.training(act_with_target_policy=with_targets))
    algorithm.train()
    networks = learner(algorithm)._networks
    meant = networks.target_actor if with_targets else networks.actor
    actor = algorithm.env_runner.module.actor
    for name, parameter in actor.state_dict().items():
        np.testing.assert_array_equal(parameter, meant.state_dict()[name])
    assert not np.array_equal(
        networks.actor[1].bias.detach(), networks.target_actor[1].bias
    )


def test_two_learners_agree(build):
    # The first sample of a run has fewer transitions than those after it: one learner
    # has enough to begin with a batch earlier than the other.
    config = serial_d4pg_config(CountingEnv, longest=5)
    config.training(num_steps_sampled_before_learning_starts=90)
    algorithm = build(config.learners(num_learners=2))
    for _ in range(3):
        result = algorithm.train()
    first, second = (
        r.get()
        for r in algorithm.learner_group.foreach_learner(
            lambda learner: (
                learner.wait_until_idle(),
                learner.get_state() | {"num_stored": learner._replay.num_added},
            )[1]
        )
    )
    assert first["num_stored"] != second["num_stored"]
    assert first[PROGRESS]["num_updates"] == second[PROGRESS]["num_updates"] > 0
    # Reports of the last batches may be on their way; updates are not added up.
    reported = counts(result)["num_updates_lifetime"]
    assert 0 < reported <= first[PROGRESS]["num_updates"]
    assert first[PROGRESS]["rng"] != second[PROGRESS]["rng"]
    ours, theirs = (s["rl_module"][DEFAULT_MODULE_ID] for s in (first, second))
    for name in ours:
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-5, atol=1e-6)


@pytest.fixture
def saved_and_restored(build, tmp_path):
    """Trains, saves and restores; both are there afterwards."""
    restored = []

    def save_and_restore(config):
        algorithm = build(config.training(target_update_interval=7))
        for _ in range(2):
            algorithm.train()
        path = algorithm.save_to_path(str(tmp_path / "checkpoint"))
        restored.append(Algorithm.from_checkpoint(path))
        return algorithm, restored[-1]

    yield save_and_restore
    for algorithm in restored:
        algorithm.stop()


def test_with_its_buffer_a_run_goes_on_as_if_nothing_had_been(saved_and_restored):
    config = serial_d4pg_config("Hopper-v5", ApexDPGConfig)
    config.training(store_replay_in_checkpoints=True, updates_per_env_step=3 / 64)
    original, twin = saved_and_restored(config)
    samples = original.env_runner.sample()
    states = []
    for algorithm in (original, twin):
        for _ in range(3):
            learner(algorithm).train_on(samples, {"num_env_steps_sampled_lifetime": 9})
        states.append(learner(algorithm).get_state())
    for part in ("rl_module", "optimizer", PROGRESS, REPLAY):
        assert_same(*(state[part] for state in states), part)
    assert states[0][PROGRESS]["num_updates"] > 20
    assert 0.0 < states[0][PROGRESS]["updates_due"] < 1.0


def test_without_its_buffer_a_run_fills_a_new_one_before_it_learns(saved_and_restored):
    original, twin = saved_and_restored(serial_d4pg_config("Hopper-v5"))
    before, after = (learner(a).get_state() for a in (original, twin))
    for part in ("rl_module", "optimizer", PROGRESS):
        assert_same(before[part], after[part], part)
    assert REPLAY not in before
    assert len(learner(twin)._replay) == 0
    sample = original.env_runner.sample()
    num_updates = before[PROGRESS]["num_updates"]
    while len(learner(twin)._replay) + len(sample[0]) < 32:
        learner(twin).train_on(sample, {})
        assert learner(twin)._num_updates == num_updates
    learner(twin).train_on(sample, {})
    assert learner(twin)._num_updates > num_updates

    sampled = original.metrics.peek(("env_runners", "num_env_steps_sampled_lifetime"))
    result = twin.train()
    assert result["num_env_steps_sampled_lifetime"] > sampled
    assert result["training_iteration"] == 3
    assert counts(result)["num_updates_lifetime"] == learner(twin)._num_updates
