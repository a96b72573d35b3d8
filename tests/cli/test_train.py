"""The `rllib` command, as a user starts it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

RLLIB = Path(sys.executable).with_name("rllib")

SMALL = """
small:
  run: IMPASS
  env: InvertedPendulum-v5
  stop: {training_iteration: 2}
  checkpoint_config: {checkpoint_at_end: true}
  config:
    num_env_runners: 1
    num_envs_per_env_runner: 4
    rollout_fragment_length: 8
    train_batch_size_per_learner: 64
    minibatch_size: 16
    min_time_s_per_iteration: 1
"""


def rllib(*arguments):
    return subprocess.run(
        [str(RLLIB), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def test_versions_are_printed():
    done = rllib("--version")
    assert done.returncode == 0
    for package in ("rllib_impass", "ray", "torch", "gymnasium", "mujoco"):
        assert f"{package} " in done.stdout


@pytest.mark.parametrize("arguments", [("--help",), ("train", "--help")])
def test_help_is_there(arguments):
    assert rllib(*arguments).returncode == 0


def test_a_file_is_trained_to_its_end(tmp_path):
    (tmp_path / "small.yaml").write_text(SMALL)
    done = rllib(
        "train", "file", tmp_path / "small.yaml", "--storage-path", tmp_path / "results"
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert str(tmp_path / "results" / "small") in "".join(lines[:2])
    assert any("env steps" in line and "return" in line for line in lines)
    assert max(map(len, (line for line in lines if str(tmp_path) not in line))) <= 80
    checkpoint = next(line for line in lines if line.startswith("checkpoint: "))
    assert Path(checkpoint.removeprefix("checkpoint: ")).is_dir()
    (results,) = (tmp_path / "results").rglob("result.json")
    rows = [json.loads(line) for line in results.read_text().splitlines()]
    assert [row["training_iteration"] for row in rows] == [1, 2]
    assert "Traceback" not in done.stderr
    assert "deprecated" not in done.stderr


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("env: Inv", "env: Unv", "cannot be created"),
        ("minibatch_size: 16", "minibatch_sise: 16", "did you mean 'minibatch_size'"),
        ("train_batch_size_per_learner: 64", "train_batch_size_per_learner: 65", "64"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(tmp_path, old, new, message):
    (tmp_path / "small.yaml").write_text(SMALL.replace(old, new))
    done = rllib(
        "train", "file", tmp_path / "small.yaml", "--storage-path", tmp_path / "results"
    )
    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("rllib: ")
    assert message in line
    assert not (tmp_path / "results").exists()
