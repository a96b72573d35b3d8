"""One Ray for the whole run; toy environments; nothing left behind."""

import logging
import os
from pathlib import Path

import pytest
import ray


@pytest.fixture(scope="session")
def ray_session():
    """A small local Ray, started by the first test that needs one."""
    # Workers import the toy environments from this folder.
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    ray.init(
        num_cpus=8,
        object_store_memory=300 * 1024 * 1024,
        include_dashboard=False,
        logging_level=logging.ERROR,
        log_to_driver=False,
    )
    yield
    ray.shutdown()


@pytest.fixture
def build(ray_session):
    """Builds algorithms and stops them again, whatever the test does."""
    algorithms = []

    def build(config):
        algorithms.append(config.build_algo())
        return algorithms[-1]

    yield build
    for algorithm in algorithms:
        algorithm.stop()


SLOW_FOLDERS = ("cli", "algorithms", "learning")


def pytest_collection_modifyitems(items):
    """Fast tests first: a broken formula should not cost ten minutes."""
    tests = Path(__file__).parent

    def tier(item):
        folder = item.path.relative_to(tests).parts[0]
        return SLOW_FOLDERS.index(folder) + 1 if folder in SLOW_FOLDERS else 0

    items.sort(key=tier)
