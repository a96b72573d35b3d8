"""A task without its velocities: what is seen, and that all else stays the same."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from ray.tune.registry import ENV_CREATOR, _global_registry

import rllib_impass  # noqa: F401  (registers the env)
from rllib_impass.env.hide_velocities import HideVelocities

ENV_ID = "rllib_impass/HopperPositions-v0"


@pytest.fixture
def envs():
    envs = gym.make(ENV_ID), gym.make("Hopper-v5")
    yield envs
    for env in envs:
        env.close()


def test_it_is_hopper_of_which_only_the_positions_are_seen(envs):
    ours, hopper = envs
    rng = np.random.default_rng(0)
    seen, _ = ours.reset(seed=3)
    whole, _ = hopper.reset(seed=3)
    for _ in range(15):
        np.testing.assert_array_equal(seen, whole[:5])
        np.testing.assert_array_equal(seen, hopper.unwrapped.data.qpos[1:])
        action = rng.uniform(-1, 1, 3).astype(np.float32)
        seen, *ours_rest = ours.step(action)
        whole, *hopper_rest = hopper.step(action)
        assert ours_rest == hopper_rest


def test_gymnasium_finds_nothing_wrong_with_it(envs):
    ours, _ = envs
    assert ours.observation_space.shape == (5,)
    assert ours.spec.max_episode_steps == 1000
    assert gym.make(ours.spec).observation_space.shape == (5,)
    check_env(HideVelocities(gym.make("Hopper-v5").unwrapped), skip_render_check=True)


def test_tune_knows_it_and_names_an_unknown_option():
    create = _global_registry.get(ENV_CREATOR, "HopperPositions-v0")
    assert create({}).observation_space.shape == (5,)
    with pytest.raises(ValueError, match=r"HopperPositions-v0 has no option 'widht'"):
        create({"widht": 100})


@pytest.mark.parametrize(
    ("name", "num_positions"), [("Walker2d-v5", 8), ("Swimmer-v5", 3)]
)
def test_other_tasks_lose_theirs(name, num_positions):
    env = HideVelocities(gym.make(name))
    assert env.reset(seed=0)[0].shape == env.observation_space.shape == (num_positions,)


@pytest.mark.parametrize("name", ["Ant-v5", "Reacher-v5", "Pendulum-v1"])
def test_an_env_that_does_not_end_with_velocities_is_refused(name):
    with pytest.raises(ValueError, match=f"cannot hide the velocities of .*{name}"):
        HideVelocities(gym.make(name))
