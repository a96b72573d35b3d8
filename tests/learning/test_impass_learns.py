"""IMPASS learns, and stacking does what it is for."""

import time

import pytest

from rllib_impass import IMPALANoSSConfig, IMPASSConfig
from toy_envs import BrakeEnv

pytestmark = [pytest.mark.learning, pytest.mark.timeout(400)]


def mean_return(result):
    return result["env_runners"].get("episode_return_mean", float("-inf"))


def test_impass_balances_the_inverted_pendulum(build):
    config = (
        IMPASSConfig()
        .environment("InvertedPendulum-v5")
        .reporting(min_time_s_per_iteration=2)
        .debugging(seed=0)
    )
    algorithm = build(config)
    started = time.monotonic()
    is_good = False
    while not is_good and time.monotonic() - started < 180:
        # A lucky iteration is not enough: the deterministic policy must do it, too.
        is_good = mean_return(algorithm.train()) >= 900 and evaluated(algorithm) >= 900
    assert is_good


def evaluated(algorithm):
    return algorithm.evaluate()["env_runners"]["episode_return_mean"]


def braking_return(build, config_class, num_steps=120_000):
    """Deterministic return after the same number of steps for everyone."""
    config = (
        config_class()
        .environment(BrakeEnv)
        .env_runners(num_env_runners=0, rollout_fragment_length=25)
        .training(
            gamma=0.95, train_batch_size_per_learner=25 * 32 * 2, minibatch_size=100
        )
        .reporting(min_sample_timesteps_per_iteration=20_000)
        .reporting(min_time_s_per_iteration=0)
        .evaluation(evaluation_duration=30)
        .debugging(seed=0)
    )
    algorithm = build(config)
    while algorithm.train()["num_env_steps_sampled_lifetime"] < num_steps:
        pass
    score = evaluated(algorithm)
    algorithm.stop()
    return score


def test_stacking_shows_a_velocity_that_single_states_hide(build):
    stacked = braking_return(build, IMPASSConfig)
    single = braking_return(build, IMPALANoSSConfig)
    # Fifty steps, each at most 1; the cart starts at a speed of 1, worth 0.
    assert stacked > 40
    assert stacked > single + 10
