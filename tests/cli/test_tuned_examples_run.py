"""Every shipped tuned file runs through the command, small."""

import json

import pytest
from rllib_command import rllib_many, running_ray, small_flags

from rllib_impass.experiments.examples import list_examples

# The first test waits for all of them.
pytestmark = pytest.mark.timeout(600)

EXAMPLES = list_examples()
FEWER_TRIALS = ["--set", "lr=1e-4", "--set", "entropy_coeff=0"]


@pytest.fixture(scope="module")
def runs(ray_session, tmp_path_factory):
    """What the command said of each, and where their results are."""
    storage = tmp_path_factory.mktemp("results")
    flags = ["--stop", "{training_iteration: 2}", "--storage-path", storage]
    commands = [
        [*("train", "file", e.path), *flags, *small_flags(e.run), *running_ray()]
        # Two trials of a sweep tell as much as twelve.
        + (FEWER_TRIALS if e.id == "sweep_impass" else [])
        for e in EXAMPLES
    ]
    done = rllib_many(commands, cwd=storage)
    return dict(zip((e.id for e in EXAMPLES), done, strict=True)), storage


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.id)
def test_a_tuned_file_runs(runs, example):
    commands, storage = runs
    assert commands[example.id].returncode == 0, commands[example.id].stderr
    folder = storage / example.id.replace("_", "-")
    results = list(folder.rglob("result.json"))
    assert len(results) == (2 if example.id == "sweep_impass" else 1)
    for file in results:
        last = json.loads(file.read_text().splitlines()[-1])
        assert last["training_iteration"] == 2
        # Two iterations of 32 steps or more, of which some may be spent on resets.
        assert last["num_env_steps_sampled_lifetime"] > 32
        assert last["evaluation"]["env_runners"]["num_episodes"] == 1
    assert list(folder.rglob("checkpoint_*"))
