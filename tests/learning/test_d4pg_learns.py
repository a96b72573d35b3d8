"""D4PG learns."""

import pytest

from rllib_impass import D4PGConfig

pytestmark = [pytest.mark.learning, pytest.mark.timeout(400)]

MAX_STEPS = 40_000


def test_d4pg_balances_the_inverted_pendulum(build):
    # In turns and counted in steps: the same run on any machine.
    config = (
        D4PGConfig()
        .environment("InvertedPendulum-v5")
        .env_runners(num_env_runners=0)
        # At most 1 a step, discounted by 0.99.
        .training(v_min=0, v_max=100, num_steps_sampled_before_learning_starts=1_000)
        .reporting(min_time_s_per_iteration=0)
        .reporting(min_sample_timesteps_per_iteration=2_000)
        .evaluation(evaluation_duration=2)
        .debugging(seed=0)
    )
    algorithm = build(config)
    is_good, num_steps = False, 0
    while not is_good and num_steps < MAX_STEPS:
        result = algorithm.train()
        num_steps = result["num_env_steps_sampled_lifetime"]
        # With its noise it falls now and then; the policy itself must not.
        is_good = mean_return(result) >= 100 and mean_return(algorithm.evaluate()) > 900
    assert is_good


def mean_return(result):
    return result["env_runners"]["episode_return_mean"]
