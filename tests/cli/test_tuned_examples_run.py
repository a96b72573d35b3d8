"""Every shipped tuned file runs through the command, small."""

import json

import pytest
from rllib_command import SMALL_FLAGS, rllib

from rllib_impass.experiments.examples import list_examples


@pytest.mark.parametrize("example", list_examples(), ids=lambda example: example.id)
def test_a_tuned_file_runs(example, tmp_path):
    words = ["--stop", "{training_iteration: 2}", "--storage-path", tmp_path]
    done = rllib("train", "file", example.path, *words, *SMALL_FLAGS)
    assert done.returncode == 0, done.stderr
    (results,) = tmp_path.rglob("result.json")
    last = json.loads(results.read_text().splitlines()[-1])
    assert last["training_iteration"] == 2
    assert last["num_env_steps_sampled_lifetime"] >= 64
    assert last["evaluation"]["env_runners"]["num_episodes"] == 1
    assert list(tmp_path.rglob("checkpoint_*"))
