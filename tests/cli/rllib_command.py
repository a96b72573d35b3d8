"""The `rllib` command, as a user starts it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import ray

RLLIB = Path(sys.executable).with_name("rllib")

# What makes any of our experiments take seconds: one process, little data.
SMALL = {
    "num_env_runners": 0,
    "num_envs_per_env_runner": 2,
    "rollout_fragment_length": 16,
    "train_batch_size_per_learner": 32,
    "min_time_s_per_iteration": 0.1,
    "evaluation_interval": 1,
    "evaluation_duration": 1,
}
# What it takes beyond that for each algorithm.
SMALL_EXTRA = {
    "IMPASS": {"minibatch_size": 16},
    "IMPALANoSS": {"minibatch_size": 16},
    "D4PG": {"num_steps_sampled_before_learning_starts": 32},
}


def small_flags(run="IMPASS"):
    """The same as flags of the command."""
    settings = SMALL | SMALL_EXTRA[run]
    return [word for k, v in settings.items() for word in ("--set", f"{k}={v}")]


SMALL_FLAGS = small_flags()


def rllib(*words, timeout=200, **arguments):
    """Runs the command to its end."""
    environment = {**os.environ, "COLUMNS": "80"}
    environment.pop("PYTHONPATH", None)
    return subprocess.run(
        [str(RLLIB), *map(str, words)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env=environment,
        **arguments,
    )


def rllib_many(commands, cwd, timeout=550):
    """Runs several commands in one process, which pays for importing Ray once.

    Returns a CompletedProcess for each, with the output of its own.
    """
    environment = dict(os.environ)
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("many_commands.py"))],
        input=json.dumps([[str(word) for word in words] for words in commands]),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        cwd=cwd,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    return [subprocess.CompletedProcess(**result) for result in results]


def running_ray():
    """Flags that have a command join the tests' own Ray instead of starting one."""
    return ["--ray-address", ray.get_runtime_context().gcs_address]


def assert_usage_error(done, *words):
    """One line on stderr that has these words, exit code 2, nothing on stdout."""
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert done.stdout == ""
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("rllib: ")
    for word in words:
        assert word in line
