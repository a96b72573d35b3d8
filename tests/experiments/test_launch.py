"""Runs never share a folder, and each says how it came about."""

import json
import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from new_process import run_python
from rllib_impass.experiments.class_paths import import_modules
from rllib_impass.experiments.errors import UsageError
from rllib_impass.experiments.launch import claim_folder, newest_run
from rllib_impass.experiments.run_record import (
    git_commit,
    refuse_changes,
    without_secrets,
    write_record,
)
from rllib_impass.experiments.spec import make_experiment


def make(seeds):
    entry = {
        "run": "IMPASS",
        "env": "Pendulum-v1",
        "stop": {"training_iteration": 1},
        "config": {"seed": {"grid_search": seeds}},
    }
    return make_experiment("x", entry)


@pytest.fixture(scope="module")
def experiment():
    return make([3, 4])


def test_a_new_run_never_takes_the_folder_of_another(tmp_path):
    names = [claim_folder(tmp_path, "x").name for _ in range(3)]
    assert names == ["x", "x-2", "x-3"]
    assert claim_folder(tmp_path / "new", "x-2").is_dir()
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="results"):
        claim_folder(tmp_path / "file", "x")
    assert newest_run(tmp_path, "x") is None


def test_the_record_has_what_a_reader_needs_in_a_year(tmp_path, experiment):
    write_record(tmp_path, experiment, ["rllib", "train"])
    write_record(tmp_path, experiment, ["rllib", "train", "--resume"])
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["seeds"] == [3, 4]
    assert record["config"]["num_stacked_states"] == 4
    assert record["source"]["config"] == {"seed": {"grid_search": [3, 4]}}
    commands = [start["command"] for start in record["starts"]]
    assert commands == [["rllib", "train"], ["rllib", "train", "--resume"]]
    for package in ("python", "ray", "torch", "gymnasium", "mujoco"):
        assert record["starts"][0]["versions"][package][0].isdigit()


def test_a_run_is_resumed_only_as_it_was_started(tmp_path, experiment):
    write_record(tmp_path, experiment, ["rllib"])
    refuse_changes(tmp_path, experiment)
    changed = make([3, 5])
    with pytest.raises(UsageError, match=r"with config=.*4.* not .*5.*--restore"):
        refuse_changes(tmp_path, changed)
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(UsageError, match=r"run\.json cannot be read"):
        refuse_changes(tmp_path, changed)


@pytest.mark.parametrize(
    "change",
    [
        {"max_failures": 3},
        {"checkpoint_config": {"num_to_keep": 1}},
        {"stop": {"timestamp": 1}},
    ],
)
def test_no_change_goes_unnoticed(tmp_path, change):
    entry = {"run": "PPO", "env": "Pendulum-v1", "stop": {"training_iteration": 1}}
    entry["config"] = {"observation_filter": "MeanStdFilter"}
    write_record(tmp_path, make_experiment("x", entry), ["rllib"])
    loud = {"config": {"log_level": "DEBUG"}}
    refuse_changes(tmp_path, make_experiment("x", entry, loud))
    with pytest.raises(UsageError, match=next(iter(change))):
        refuse_changes(tmp_path, make_experiment("x", entry | change))


def test_secrets_are_not_recorded():
    assert without_secrets(
        {"a": [{"API_KEY": "x", "key_frames": 3, "token": "y"}]}
    ) == {"a": [{"API_KEY": "<redacted>", "key_frames": 3, "token": "<redacted>"}]}


def test_the_commit_of_a_checkout_is_known(tmp_path):
    assert git_commit(tmp_path) is None

    def git(*words):
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words],
            cwd=tmp_path,
            check=True,
            capture_output=True,
        )

    git("init")
    (tmp_path / "file").write_text("1")
    git("add", "file")
    git("commit", "-m", "x")
    commit = git_commit(tmp_path)
    assert len(commit) == 40
    (tmp_path / "file").write_text("2")
    assert git_commit(tmp_path) == f"{commit}-dirty"


def test_imported_modules_are_found_here_and_by_workers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    monkeypatch.syspath_prepend("first")
    import_modules([])
    assert os.environ["PYTHONPATH"] == "elsewhere"
    (tmp_path / "a_module_of_mine.py").write_text("")
    import_modules(["a_module_of_mine"])
    assert os.environ["PYTHONPATH"] == f"elsewhere{os.pathsep}{tmp_path}"
    with pytest.raises(UsageError, match="--import no_such_module"):
        import_modules(["no_such_module"])


def test_a_cluster_that_was_not_asked_for_is_not_joined():
    script = """
        from rllib_impass.experiments.launch import RayOptions, start_ray
        start_ray(RayOptions(num_cpus=1, object_store_memory=100 * 1024 * 1024))
    """
    # The path of Ray's sockets has to be short; its last process may still write there.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        left_behind = Path(folder) / "ray" / "ray_current_cluster"
        left_behind.parent.mkdir()
        left_behind.write_text("127.0.0.1:9")
        done = run_python(script, timeout=100, RAY_TMPDIR=folder)
    assert done.returncode == 0, done.stderr[-2000:]
