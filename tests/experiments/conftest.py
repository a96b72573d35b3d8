"""One small run that the tests of checkpoints share."""

import dataclasses
from pathlib import Path

import pytest

from configs import serial_config, small_config
from rllib_impass import IMPALANoSSConfig

EPISODES = 3


@dataclasses.dataclass
class Run:
    """Checkpoints in the order they were saved, and the evaluation of each."""

    checkpoints: list[Path]
    evaluations: list[dict]


def train(config, folder, num_iterations):
    config.evaluation(evaluation_interval=1, evaluation_duration=EPISODES)
    algorithm = config.build_algo()
    run = Run([], [])
    try:
        for i in range(num_iterations):
            run.evaluations.append(algorithm.train()["evaluation"]["env_runners"])
            path = algorithm.save_to_path(str(folder / f"saved_{i}"))
            run.checkpoints.append(Path(path))
    finally:
        algorithm.stop()
    return run


@pytest.fixture(scope="session")
def run(ray_session, tmp_path_factory):
    """IMPASS on Hopper with one actor, evaluated in every iteration."""
    return train(small_config("Hopper-v5"), tmp_path_factory.mktemp("run"), 3)


@pytest.fixture(scope="session")
def single_state_run(ray_session, tmp_path_factory):
    """IMPALA-noSS, whose env takes actions in [-3, 3]; no seed."""
    config = serial_config("InvertedPendulum-v5", config_class=IMPALANoSSConfig)
    config.debugging(seed=None)
    return train(config, tmp_path_factory.mktemp("single"), 2)
