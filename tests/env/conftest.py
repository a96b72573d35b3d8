"""The environment that two files of tests look at."""

import gymnasium as gym
import pytest
from striker_scenes import ENV_ID


@pytest.fixture
def env():
    env = gym.make(ENV_ID)
    yield env
    env.close()
