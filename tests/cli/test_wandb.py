"""`rllib train --wandb`, offline, read back with W&B's own reader."""

import itertools
import json
import struct
import subprocess
import sys

import numpy as np
import pytest
from rllib_command import SMALL_FLAGS, assert_usage_error, rllib, rllib_many
from tensorboardX.proto.event_pb2 import Event

# The first test of a shared process waits for all of its commands.
pytestmark = pytest.mark.timeout(600)

# W&B refuses what does not look like a key.
KEY = "0123456789abcdef0123456789abcdef01234567"
MODULE = """
from pathlib import Path
from gymnasium.envs.mujoco.inverted_pendulum_v5 import InvertedPendulumEnv
from gymnasium.wrappers import TimeLimit

class Fragile(TimeLimit):
    def __init__(self, config):
        super().__init__(InvertedPendulumEnv(render_mode=config.get("render_mode")), 20)
        self.failures, self.num_steps = Path(config["failures"]), 0

    def step(self, action):
        self.num_steps += 1
        if self.num_steps > 230 and len(self.failures.read_text()) < 2:
            self.failures.write_text(self.failures.read_text() + "x")
            raise OSError("a cable came loose")
        return super().step(action)
"""
TRAIN = ["train", "--run", "IMPASS", "--storage-path", ".", "-q", *SMALL_FLAGS]


def inspect(file):
    """The records of a W&B file."""
    done = subprocess.run(
        [sys.executable, "-m", "wandb", "leet", "inspect", "--json", str(file)],
        capture_output=True,
        text=True,
        check=True,
        cwd=file.parent,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


class Part:
    """One offline file: a run from a start to an end."""

    def __init__(self, file):
        records = inspect(file)
        self.file = file
        (self.run,) = (r["run"] for r in records if r["type"] == "run")
        self.config = self.run["config"]["update"]
        self.rows = [r["history"]["item"] for r in records if r["type"] == "history"]
        self.metrics = [r["metric"] for r in records if r["type"] == "metric"]
        (self.exit_code,) = (
            r["exit"]["exit_code"] for r in records if r["type"] == "exit"
        )


class Run:
    """A trial whose env failed twice: retried in the same process, then resumed."""

    def __init__(self, folder, commands):
        self.commands = commands
        self.folder = folder / "fragile"
        (self.results_file,) = self.folder.glob("*/result.json")
        self.trial = self.results_file.parent
        lines = self.results_file.read_text().splitlines()
        self.results = [json.loads(line) for line in lines]
        files = sorted(self.trial.glob("wandb/offline-run-*/*.wandb"))
        self.parts = [Part(file) for file in files]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wandb")
    (folder / "my_envs.py").write_text(MODULE)
    (folder / "failures").write_text("")
    words = [*TRAIN, "--import", "my_envs", "--env", "my_envs.Fragile", "-n", "fragile"]
    words += ["--set", f"env_config.failures={folder / 'failures'}"]
    words += ["--set", "env_config.password=hush", "--set", "seed=3"]
    words += ["--set", "min_time_s_per_iteration=0"]
    words += ["--set", "min_sample_timesteps_per_iteration=64"]
    words += ["--stop", "{training_iteration: 11}", "--checkpoint-freq", "3"]
    words += ["--max-failures", "1", "--wandb", "someone/things"]
    words += ["--wandb-mode", "offline", "--wandb-video"]
    changed = [*words[:-1], "--resume"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WANDB_API_KEY", KEY)
        commands = rllib_many([words, changed, [*words, "--resume"]], cwd=folder)
    return Run(folder, commands)


def test_a_failed_trial_is_resumed_to_its_end(run):
    failed, changed, resumed = run.commands
    assert failed.returncode == 1, failed.stdout + failed.stderr
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    assert_usage_error(changed, "as it was started", "wandb", "with_video")
    upload = f"  wandb sync {run.folder}/*/wandb/offline-run-*"
    for done in (failed, resumed):
        assert done.stderr == ""
        assert upload in done.stdout.splitlines()


def test_both_parts_are_one_run(run):
    assert len(run.parts) == 2
    assert len({part.run["run_id"] for part in run.parts}) == 1
    for part in run.parts:
        assert part.run["entity"] == "someone"
        assert part.run["project"] == "things"
        assert part.run["run_group"] == "fragile"
        # What has `wandb sync` append the second part to the first.
        assert part.run["resume"] is True
    assert [part.exit_code for part in run.parts] == [1, 0]


def test_no_step_is_logged_twice_though_the_trial_went_back(run):
    key = "num_env_steps_sampled_lifetime"
    taken = [result[key] for result in run.results]
    drops = sum(later <= sooner for sooner, later in itertools.pairwise(taken))
    assert drops == 2, taken

    logged = [row["global_step"] for part in run.parts for row in part.rows]
    assert logged == sorted(set(logged))
    assert set(logged) <= set(taken)
    assert logged[-1] == taken[-1]
    assert all(part.rows for part in run.parts)


def test_rows_have_rllibs_names_and_openrlbenchmarks(run):
    for row in (row for part in run.parts for row in part.rows):
        (result,) = (
            result
            for result in run.results
            if result["num_env_steps_sampled_lifetime"] == row["global_step"]
            and result["time_total_s"] == row["time_total_s"]
        )
        assert row["_step"] == row["global_step"]
        assert row["training_iteration"] == result["training_iteration"]
        assert row["charts/time_s"] == row["time_total_s"]
        sps = row["global_step"] / row["time_total_s"]
        assert row["charts/SPS"] == pytest.approx(sps)
        evaluated = result["evaluation"]["env_runners"]["episode_return_mean"]
        assert row["charts/eval_return"] == pytest.approx(evaluated)
        assert row["evaluation/env_runners/episode_return_mean"] == evaluated
        sampled = result["env_runners"]
        assert row["charts/episodic_return"] == sampled["episode_return_mean"]
        assert row["charts/episodic_length"] == sampled["episode_len_mean"]
        assert "learners/default_policy/policy_lag_mean" in row


def test_env_steps_are_the_axis_of_every_metric(run):
    for part in run.parts:
        axes = {m.get("glob_name"): m.get("step_metric") for m in part.metrics}
        assert axes["*"] == "global_step"


def test_the_config_says_what_was_chosen(run):
    config = run.parts[0].config
    assert config["env_id"] == "Fragile"
    assert config["exp_name"] == "IMPASS"
    assert config["seed"] == 3
    assert config["minibatch_size"] == 16
    assert config["num_stacked_states"] == 4
    assert config["train_batch_size_per_learner"] == 32
    # A default, which nobody chose.
    assert "gamma" not in config
    assert config["all"]["gamma"] == run.results[0]["config"]["gamma"]


def test_the_last_checkpoint_is_filmed(run):
    first, last = run.parts
    assert "videos.path" not in first.rows[-1]
    row = last.rows[-1]
    assert row["videos._type"] == "video-file"
    path = last.file.parent / "files" / row["videos.path"]
    assert path.stat().st_size == row["videos.size"] > 0


def files_with_the_key(folder):
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert folder / "tuner.pkl" in files
    return [path for path in files if KEY.encode() in path.read_bytes()]


def test_no_file_of_the_run_holds_the_key(run):
    assert files_with_the_key(run.folder) == []


def test_secrets_in_the_config_stay_here(run):
    for part in run.parts:
        assert part.config["env_config"]["password"] == "<redacted>"
        assert part.config["all"]["env_config"]["password"] == "<redacted>"
        for path in part.file.parent.rglob("*"):
            assert not path.is_file() or b"hush" not in path.read_bytes(), path


def test_a_server_that_does_not_answer_stops_no_training(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_API_KEY", KEY)
    # Nobody listens there.
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("WANDB_INIT_TIMEOUT", "2")
    words = [*TRAIN, "--env", "InvertedPendulum-v5", "--wandb", "things", "-n", "x"]
    done = rllib(*words, "--stop", "{training_iteration: 2}", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (line,) = done.stderr.splitlines()
    assert "W&B" in line
    assert "no longer logged" in line
    (results,) = tmp_path.glob("x/*/result.json")
    assert len(results.read_text().splitlines()) == 2
    assert files_with_the_key(tmp_path / "x") == []


def test_a_report_can_be_made_of_what_the_folder_knows(run, tmp_path):
    words = ["report", run.folder, "--wandb", "us/things", "--dry-run"]
    done = rllib(*words, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    file = tmp_path / "wandb_report.json"
    assert done.stdout == f"wrote {file}\n"
    content = json.loads(file.read_text())
    grids = [b for b in content["spec"]["blocks"] if b["type"] == "panel-grid"]
    names = [s["name"] for grid in grids for s in grid["metadata"]["runSets"]]
    assert names == ["IMPASS"] * 3
    assert "| Fragile | 1 |" in json.dumps(content)


def scalars(file):
    """Every (tag, step, value) in a file for TensorBoard: length, checksum, record."""
    content, at = file.read_bytes(), 0
    while at < len(content):
        (length,) = struct.unpack_from("<Q", content, at)
        event = Event.FromString(content[at + 12 : at + 12 + length])
        yield from ((v.tag, event.step, v.simple_value) for v in event.summary.value)
        at += length + 16


def test_tensorboard_has_the_same_results_under_tunes_names(run):
    files = run.trial.glob("events.out.tfevents*")
    shown = {scalar for file in files for scalar in scalars(file)}
    for result in run.results:
        for key in ("env_runners", "evaluation/env_runners"):
            value = result
            for part in (*key.split("/"), "episode_return_mean"):
                value = value[part]
            tag = f"ray/tune/{key}/episode_return_mean"
            assert (tag, result["training_iteration"], np.float32(value)) in shown
