"""`rllib train`, as a user starts it."""

import json
import math
import signal
import subprocess
import time
from pathlib import Path

import pytest
from rllib_command import (
    RLLIB,
    SMALL_FLAGS,
    assert_usage_error,
    rllib,
    rllib_many,
    running_ray,
)

# The first test of a shared process waits for all of its commands.
pytestmark = pytest.mark.timeout(600)

GOOD = """
small:
  run: IMPASS
  env: InvertedPendulum-v5
  stop: {training_iteration: 2}
  config: {lr: 1e-4}
"""


@pytest.fixture
def good(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(GOOD)
    return path


def rows(folder):
    (results,) = folder.rglob("result.json")
    return [json.loads(line) for line in results.read_text().splitlines()]


def test_a_file_is_trained_to_its_end(tmp_path, good):
    storage = tmp_path / "results"
    done = rllib("train", "file", good, "--storage-path", storage, *SMALL_FLAGS)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[:3] == [
        "IMPASS on InvertedPendulum-v5",
        "environments: envpool (it has this env with the same spaces)",
        f"results: {storage / 'small'}",
    ]
    assert any("env steps" in line and "return" in line for line in lines)
    assert max(map(len, (line for line in lines if str(tmp_path) not in line))) <= 80
    assert lines[-1] == f"  rllib evaluate {storage / 'small'}"
    for which in ("best", "last"):
        (checkpoint,) = (s for s in lines if s.startswith(f"{which} checkpoint: "))
        assert Path(checkpoint.partition(": ")[2]).is_dir()
    assert [row["training_iteration"] for row in rows(storage / "small")] == [1, 2]
    assert json.loads((storage / "small" / "run.json").read_text())["starts"]


FORMER = """
pendulum-impala:
  env: Pendulum-v1
  run: IMPALA
  stop: {episode_reward_mean: 0, timesteps_total: 400}
  config:
    framework: tf
    num_gpus: 0
    num_workers: 0
    train_batch_size: 100
    min_iter_time_s: 1
    observation_filter: MeanStdFilter
    model: {fcnet_hiddens: [16, 16]}
"""
PYTHON = """
from gymnasium.envs.classic_control import PendulumEnv
from gymnasium.wrappers import TimeLimit
from rllib_impass import IMPASSConfig

class Mine(TimeLimit):
    def __init__(self, config):
        super().__init__(PendulumEnv(), config["steps"])

config = IMPASSConfig().environment(Mine, env_config={"steps": 7})
stop = {"training_iteration": 1}
"""
MODULE = """
import gymnasium as gym
from gymnasium.envs.classic_control import PendulumEnv

class Late(PendulumEnv):
    lifetime, num_steps = 20, 0

    def step(self, action):
        self.num_steps += 1
        if self.num_steps > self.lifetime:
            raise OSError("a cable came loose")
        return super().step(action)

class Dead(Late):
    lifetime = 0

class Fading(gym.Wrapper):
    num_resets = 0

    def __init__(self, config):
        super().__init__(gym.make("Pendulum-v1", max_episode_steps=5))

    def reset(self, **kwargs):
        Fading.num_resets += 1
        return super().reset(**kwargs)

    def step(self, action):
        observation, _, *rest = super().step(action)
        return observation, -float(self.num_resets), *rest

gym.register("Mine-v0", "my_envs:PendulumEnv", max_episode_steps=50)
"""


def ppo_flags():
    words = ["--run", "PPO", "--env", "Pendulum-v1", "-q", "-n", "ppo"]
    words += [
        "--stop",
        '{"training_iteration": 9}',
        "--stop",
        "{training_iteration: 1}",
    ]
    words += ["--config", '{"num_env_runners": 0, "lr": 1e-3, "num_epochs": 30}']
    words += ["--set", "num_epochs=1", "--set", "train_batch_size=200"]
    words += ["--set", "gamma={grid_search: [0.9, 0.8]}", "--no-checkpoint-at-end"]
    return [*words, "--set", "model_config.fcnet_hiddens={grid_search: [[8], [9]]}"]


def sweep_flags():
    words = ["--run", "IMPASS", "-n", "sweep", "--scheduler", "asha", *SMALL_FLAGS]
    words += ["--set", "lr={grid_search: [1e-4, 1e-3]}"]
    # A single batch, however fast the machine is.
    words += ["--set", "min_time_s_per_iteration=0"]
    return [*words, "--stop", "{training_iteration: 2}"]


def fading_flags():
    words = ["--run", "IMPASS", "--import", "my_envs", "-n", "fading", *SMALL_FLAGS]
    words += ["--stop", "{training_iteration: 6}", "--checkpoint-freq", 1]
    words += ["--set", "evaluation_interval=2", "--keep-checkpoints-num", 2]
    key = "evaluation/env_runners/episode_return_mean"
    return [*words, "--checkpoint-score-attr", key]


@pytest.fixture(scope="module")
def trained(ray_session, tmp_path_factory):
    """What several commands said, and the folder that they ran in."""
    folder = tmp_path_factory.mktemp("trained")
    files = {"former.yaml": FORMER, "mine.py": PYTHON, "my_envs.py": MODULE}
    for name, text in files.items():
        (folder / name).write_text(text)
    mine = ["file", "mine.py", *SMALL_FLAGS]
    own = ["--run", "IMPASS", "--import", "my_envs", *SMALL_FLAGS, "-n", "own"]
    own += ["--set", "num_env_runners=1", "--env"]
    commands = {
        "flags": ppo_flags(),
        "former": ["file", "former.yaml"],
        "python": [*mine, "--set", "num_env_runners=1"],
        "restored": [*mine, "--restore", "mine", "--stop", "{training_iteration: 2}"],
        "own": [*own, "Mine-v0", "--stop", "{num_env_steps_sampled_lifetime: 64}"],
        "dead": [*own, "my_envs.Dead", "--stop", "{training_iteration: 1}"],
        "sweep": [*sweep_flags(), "--env", "Pendulum-v1"],
        "fading": [*fading_flags(), "--env", "my_envs.Fading"],
        "late": [*own, "my_envs.Late", "--stop", "{training_iteration: 1_000}"],
    }
    common = ["--storage-path", ".", *running_ray()]
    words = [["train", *command, *common] for command in commands.values()]
    return dict(zip(commands, rllib_many(words, cwd=folder), strict=True)), folder


def test_flags_alone_train_rllibs_own_algorithms_too(trained):
    commands, folder = trained
    done = commands["flags"]
    assert done.returncode == 0, done.stderr
    assert "train_batch_size -> train_batch_size_per_learner" in done.stderr
    results = (folder / "ppo").rglob("result.json")
    trials = [json.loads(path.read_text()) for path in results]
    assert sorted(trial["config"]["gamma"] for trial in trials) == [0.8, 0.8, 0.9, 0.9]
    for trial in trials:
        assert trial["training_iteration"] == 1
        assert trial["config"]["num_epochs"] == 1
        assert trial["config"]["lr"] == 1e-3
    assert not list((folder / "ppo").rglob("checkpoint_*"))
    assert "env steps" not in done.stdout


def test_a_file_of_the_former_rllib_runs(trained):
    commands, folder = trained
    done = commands["former"]
    assert done.returncode == 0, done.stderr
    assert "num_workers -> num_env_runners" in done.stderr
    last = rows(folder / "pendulum-impala")[-1]
    assert last["num_env_steps_sampled_lifetime"] >= 400


def test_a_python_file_trains_with_its_own_classes(trained):
    commands, folder = trained
    assert commands["python"].returncode == 0, commands["python"].stderr
    assert "IMPASS on Mine" in commands["python"].stdout
    last = rows(folder / "mine")[-1]
    assert last["evaluation"]["env_runners"]["episode_len_mean"] == 7


def test_a_restored_run_counts_on_in_a_folder_of_its_own(trained):
    commands, folder = trained
    assert commands["restored"].returncode == 0, commands["restored"].stderr
    before, after = rows(folder / "mine")[-1], rows(folder / "mine-2")[-1]
    assert after["training_iteration"] == 2
    steps = "num_env_steps_sampled_lifetime"
    assert after[steps] > before[steps]


def test_an_env_of_ones_own_is_trained_in_actors(trained):
    commands, folder = trained
    assert commands["own"].returncode == 0, commands["own"].stderr
    assert rows(folder / "own")[-1]["num_env_steps_sampled_lifetime"] >= 64


def test_an_env_that_cannot_make_a_step_starts_nothing(trained):
    commands, _ = trained
    assert_usage_error(commands["dead"], "cannot make a step: a cable came loose")


def test_a_failed_trial_says_why_and_is_exit_code_1(trained):
    done = trained[0]["late"]
    assert done.returncode == 1, done.stderr
    # Which env it was, and what that raised; a line too long is folded.
    why = "env=<class 'my_envs.Late'> failed: OSError('a cable came loose')"
    assert f"failed: RuntimeError: {why}" in " ".join(done.stdout.split())
    assert "error.txt" in done.stdout
    assert done.stdout.rstrip().endswith("--experiment-name own-2 --resume")


def test_a_scheduler_waits_for_the_end_of_a_first_episode(trained):
    commands, folder = trained
    assert commands["sweep"].returncode == 0, commands["sweep"].stderr
    files = list((folder / "sweep").rglob("result.json"))
    assert len(files) == 2
    for file in files:
        first, _ = map(json.loads, file.read_text().splitlines())
        # An episode takes 200 steps.
        assert first["num_env_steps_sampled_lifetime"] < 200
        assert "episode_return_mean" not in first["env_runners"]


def test_the_best_checkpoints_are_kept_and_the_last_one(trained):
    commands, folder = trained
    done = commands["fading"]
    assert done.returncode == 0, done.stderr
    second, fourth, sixth = (
        row["evaluation"]["env_runners"]["episode_return_mean"]
        for row in rows(folder / "fading")[1::2]
    )
    assert second > fourth > sixth
    # It is evaluated in every other iteration; the others have the score before them.
    scores = [row["checkpoint_score"] for row in rows(folder / "fading")]
    assert math.isnan(scores[0])
    assert scores[1:] == [second, second, fourth, fourth, sixth]
    kept = sorted(path.name for path in (folder / "fading").rglob("checkpoint_*"))
    assert kept == [f"checkpoint_{number:06d}" for number in (1, 2, 5)]
    assert f"episode_return_mean {second:,.1f}" in done.stdout


def wait_for(checkpoint, folder, process):
    for _ in range(1200):
        assert process.poll() is None, process.communicate()
        if any(folder.rglob(f"{checkpoint}/*.json")):
            return
        time.sleep(0.1)
    raise AssertionError(f"no {checkpoint}")


def test_after_kill_9_a_run_goes_on_from_its_last_checkpoint(tmp_path, good):
    storage = tmp_path / "results"
    words = ["train", "file", good, "--storage-path", storage, *SMALL_FLAGS]
    words += ["--stop", "{training_iteration: 4}", "--checkpoint-freq", "1"]
    words += ["--set", "min_time_s_per_iteration=5"]
    process = subprocess.Popen(
        [str(RLLIB), *map(str, words)], stdout=subprocess.PIPE, text=True
    )
    wait_for("checkpoint_000001", storage, process)
    # Tune notes a checkpoint in a state of its own within a second; the next one is
    # five seconds away.
    time.sleep(2)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    before = rows(storage / "small")

    done = rllib(*words, "--resume", timeout=280)
    assert done.returncode == 0, done.stderr + done.stdout
    resumed = rows(storage / "small")[len(before) :]
    assert before[-1]["training_iteration"] == 2
    assert resumed[0]["training_iteration"] == 3
    assert resumed[-1]["training_iteration"] == 4
    steps = "num_env_steps_sampled_lifetime"
    assert resumed[0][steps] > before[-1][steps] > 0
    record = json.loads((storage / "small" / "run.json").read_text())
    assert len(record["starts"]) == 2

    changed = rllib(*words, "--set", "lr=1", "--resume")
    assert_usage_error(changed, "as it was started", "lr")
