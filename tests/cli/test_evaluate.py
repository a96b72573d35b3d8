"""`rllib evaluate` and `rllib export`, as a user starts them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from configs import serial_config

RLLIB = Path(sys.executable).with_name("rllib")


def rllib(*arguments, cwd=None):
    # The tests' own folder is not a user's.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    return subprocess.run(
        [str(RLLIB), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        cwd=cwd,
        env=environment,
    )


@pytest.fixture(scope="module")
def trial(ray_session, tmp_path_factory):
    """A folder like that of a Tune trial, with one checkpoint."""
    folder = tmp_path_factory.mktemp("trial")
    config = serial_config().evaluation(evaluation_interval=1, evaluation_duration=3)
    algorithm = config.build_algo()
    result = algorithm.train()
    algorithm.save_to_path(str(folder / "checkpoint_000000"))
    algorithm.stop()
    score = float(result["evaluation"]["env_runners"]["episode_return_mean"])
    row = {
        "training_iteration": 1,
        "evaluation": {"env_runners": {"episode_return_mean": score}},
    }
    (folder / "result.json").write_text(json.dumps(row) + "\n")
    return folder


def test_figures_are_printed_and_written(trial, tmp_path):
    done = rllib("evaluate", trial, "--episodes", 3, "--json", tmp_path / "new/e.json")
    assert done.returncode == 0, done.stderr
    # Shown if anything below fails.
    print(done.stdout, done.stderr)
    first, *table, last = done.stdout.splitlines()
    assert first.startswith("IMPASS on InvertedPendulum-v5, iteration 1: ")
    assert str(trial / "checkpoint_000000") in first
    assert max(map(len, table)) <= 80
    assert last == f"wrote {tmp_path / 'new/e.json'}"
    figures = json.loads((tmp_path / "new/e.json").read_text())
    row = json.loads((trial / "result.json").read_text())
    score = row["evaluation"]["env_runners"]["episode_return_mean"]
    assert figures["return_mean"] == score
    assert any(f"{score:,.2f}" in line for line in table)
    assert "Traceback" not in done.stderr, done.stderr


def test_relative_paths_and_imports_are_of_the_current_folder(trial, tmp_path):
    (trial / "my_module.py").write_text("print('imported')")
    done = rllib("export", ".", tmp_path / "p.pt2", "--import", "my_module", cwd=trial)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "imported"
    assert (tmp_path / "p.pt2").stat().st_size > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--checkpoint", "5"), "no checkpoint 5; there are 0"),
        (("--checkpoint", "newest"), "choose best, last or a number"),
        (("--import", "no_such_module"), "No module named 'no_such_module'"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(trial, arguments, message):
    done = rllib("evaluate", trial, *arguments)
    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("rllib: ")
    assert message in line
