"""`rllib evaluate` and `rllib export`, as a user starts them."""

import json
import shutil

import pytest
from rllib_command import assert_usage_error, rllib, rllib_many

from configs import serial_config


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


def test_bad_input_is_one_line_and_exit_code_2(trial, tmp_path):
    checkpoint = "checkpoint_000000"
    truncated = tmp_path / checkpoint
    shutil.copytree(trial / checkpoint, truncated)
    for file in truncated.rglob("module_state.*"):
        file.write_bytes(file.read_bytes()[:100])
    train = ["train", "--run", "IMPASS", "--env", "InvertedPendulum-v5"]
    train += ["--stop", "{training_iteration: 1}", "--restore"]
    cases = [
        (["evaluate", trial, "--checkpoint", "5"], "no checkpoint 5; there are 0"),
        (["evaluate", trial, "--checkpoint", "newest"], "best, last or a number"),
        (["evaluate", trial, "--import", "no_such_module"], "no_such_module"),
        (["evaluate", "gone"], "gone does not exist"),
        (["evaluate", truncated], "module_state"),
        (["export", truncated, "policy.pt2"], "module_state"),
        (["export", trial, tmp_path], "exists"),
        ([*train, truncated], "module_state"),
        ([*train, trial, "--run", "IMPALANoSS"], "a checkpoint of IMPASS, not of"),
    ]
    folder = tmp_path / "here"
    folder.mkdir()
    results = rllib_many([words for words, _ in cases], cwd=folder)
    for done, (_, message) in zip(results, cases, strict=True):
        assert_usage_error(done, message)
    assert not list(folder.iterdir())
