"""Small runs that the tests of checkpoints share."""

import pytest

from configs import serial_config, serial_d4pg_config, small_config, train_and_save
from rllib_impass import IMPALANoSSConfig


@pytest.fixture(scope="session")
def run(ray_session, tmp_path_factory):
    """IMPASS on Hopper with one actor, evaluated in every iteration."""
    return train_and_save(small_config("Hopper-v5"), tmp_path_factory.mktemp("run"), 3)


@pytest.fixture(scope="session")
def single_state_run(ray_session, tmp_path_factory):
    """IMPALA-noSS, whose env takes actions in [-3, 3]; no seed."""
    config = serial_config("InvertedPendulum-v5", config_class=IMPALANoSSConfig)
    config.debugging(seed=None)
    return train_and_save(config, tmp_path_factory.mktemp("single"), 2)


@pytest.fixture(scope="session")
def d4pg_run(ray_session, tmp_path_factory):
    """D4PG, whose env takes actions in [-2, 2]."""
    config = serial_d4pg_config("Pendulum-v1")
    return train_and_save(config, tmp_path_factory.mktemp("d4pg"), 1)
