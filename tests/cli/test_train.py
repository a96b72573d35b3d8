"""`rllib train`, as a user starts it."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rllib_command import RLLIB, SMALL_FLAGS, assert_usage_error, rllib, rllib_many

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


def test_versions_are_printed():
    done = rllib("--version")
    assert done.returncode == 0
    for package in ("rllib_impass", "ray", "torch", "gymnasium", "mujoco"):
        assert f"{package} " in done.stdout


@pytest.mark.parametrize(
    "words",
    [
        "",
        "train",
        "evaluate",
        "export",
        "example",
        "example list",
        "example get",
        "example run",
    ],
)
def test_help_has_an_example_and_fits_80_columns(words):
    done = rllib(*words.split(), "--help")
    assert done.returncode == 0
    assert re.search(rf"^ .*rllib {words}", done.stdout, flags=re.MULTILINE)
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_help_does_not_wait_for_ray():
    code = "import sys; sys.argv = ['rllib']; import rllib_impass.cli.app; "
    code += "assert not {'ray', 'torch', 'gymnasium'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_tab_key_completes_words():
    done = subprocess.run(
        [str(RLLIB)],
        capture_output=True,
        text=True,
        check=False,
        env={
            "_RLLIB_COMPLETE": "complete_bash",
            "COMP_WORDS": "rllib example get hopper_",
            "COMP_CWORD": "3",
        },
    )
    assert done.stdout.split() == ["hopper_impala_noss", "hopper_impass"]


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


def test_flags_alone_train_rllibs_own_algorithms_too(tmp_path):
    words = ["--run", "PPO", "--env", "Pendulum-v1", "-q"]
    words += [
        "--stop",
        '{"training_iteration": 9}',
        "--stop",
        "{training_iteration: 1}",
    ]
    words += ["--config", '{"num_env_runners": 0, "lr": 1e-3, "num_epochs": 30}']
    words += ["--set", "num_epochs=1", "--set", "train_batch_size=200"]
    words += ["--set", "gamma={grid_search: [0.9, 0.8]}", "--no-checkpoint-at-end"]
    words += ["--set", "model_config.fcnet_hiddens={grid_search: [[8], [9]]}"]
    done = rllib("train", *words, "-n", "ppo", "--storage-path", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "train_batch_size -> train_batch_size_per_learner" in done.stderr
    trials = [json.loads(p.read_text()) for p in tmp_path.rglob("result.json")]
    assert sorted(trial["config"]["gamma"] for trial in trials) == [0.8, 0.8, 0.9, 0.9]
    for trial in trials:
        assert trial["training_iteration"] == 1
        assert trial["config"]["num_epochs"] == 1
        assert trial["config"]["lr"] == 1e-3
    assert not list(tmp_path.rglob("checkpoint_*"))
    assert "env steps" not in done.stdout


def test_a_file_of_the_former_rllib_runs(tmp_path):
    (tmp_path / "former.yaml").write_text(
        "pendulum-impala:\n"
        "  env: Pendulum-v1\n"
        "  run: IMPALA\n"
        "  stop: {episode_reward_mean: 0, timesteps_total: 400}\n"
        "  config:\n"
        "    framework: tf\n"
        "    num_gpus: 0\n"
        "    num_workers: 0\n"
        "    train_batch_size: 100\n"
        "    min_iter_time_s: 1\n"
        "    observation_filter: MeanStdFilter\n"
        "    model: {fcnet_hiddens: [16, 16]}\n"
    )
    done = rllib("train", "file", "former.yaml", "--storage-path", ".", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (line,) = done.stderr.splitlines()
    assert "num_workers -> num_env_runners" in line
    assert rows(tmp_path)[-1]["num_env_steps_sampled_lifetime"] >= 400


def test_a_python_file_trains_with_its_own_classes_and_restores(tmp_path):
    (tmp_path / "mine.py").write_text(
        "from gymnasium.envs.classic_control import PendulumEnv\n"
        "from gymnasium.wrappers import TimeLimit\n"
        "from rllib_impass import IMPASSConfig\n"
        "class Mine(TimeLimit):\n"
        "    def __init__(self, config):\n"
        "        super().__init__(PendulumEnv(), config['steps'])\n"
        "config = IMPASSConfig().environment(Mine, env_config={'steps': 7})\n"
        "stop = {'training_iteration': 1}\n"
    )
    words = ["train", "file", "mine.py", "--storage-path", ".", *SMALL_FLAGS]
    done = rllib(*words, "--set", "num_env_runners=1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "IMPASS on Mine" in done.stdout
    first = rows(tmp_path / "mine")[-1]
    assert first["evaluation"]["env_runners"]["episode_len_mean"] == 7

    words += ["--restore", "mine", "--stop", "{training_iteration: 2}"]
    done = rllib(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    second = rows(tmp_path / "mine-2")[-1]
    steps = "num_env_steps_sampled_lifetime"
    assert second["training_iteration"] == 2
    assert second[steps] > first[steps]


@pytest.mark.timeout(600)
def test_an_env_of_ones_own_is_trained_in_actors_and_a_failed_trial_is_exit_code_1(
    tmp_path,
):
    (tmp_path / "my_envs.py").write_text(
        "import gymnasium as gym\n"
        "from gymnasium.envs.classic_control import PendulumEnv\n"
        "class Broken(PendulumEnv):\n"
        "    num_steps = 0\n"
        "    def step(self, action):\n"
        "        self.num_steps += 1\n"
        "        if self.num_steps > self.lifetime:\n"
        "            raise OSError('a cable came loose')\n"
        "        return super().step(action)\n"
        "class Late(Broken):\n"
        "    lifetime = 20\n"
        "class Dead(Broken):\n"
        "    lifetime = 0\n"
        "gym.register('Mine-v0', 'my_envs:PendulumEnv', max_episode_steps=50)\n"
    )
    words = ["--run", "IMPASS", "--import", "my_envs", "--storage-path", "results"]
    words += [*SMALL_FLAGS, "--set", "num_env_runners=1", "-n", "mine"]
    words += ["--stop", "{num_env_steps_sampled_lifetime: 64}"]
    done = rllib("train", "--env", "Mine-v0", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr + done.stdout

    done = rllib("train", "--env", "my_envs.Dead", *words, cwd=tmp_path)
    assert_usage_error(done, "cannot make a step: a cable came loose")

    words += ["--stop", "{training_iteration: 1_000}"]
    done = rllib("train", "--env", "my_envs.Late", *words, cwd=tmp_path)
    assert done.returncode == 1, done.stderr + done.stdout
    assert "a cable came loose" in done.stdout
    assert "error.txt" in done.stdout
    assert "--experiment-name mine-2 --resume" in done.stdout


# What is written instead of which part of the good file, and a part of the answer.
BAD_FILES = [
    ("  config:", "  surprise: 1\n  config:", "no setting 'surprise'"),
    ("lr: 1e-4", "gama: 0.9", "did you mean 'gamma'"),
    ("env: Inv", "env: Unv", "did you mean 'InvertedPendulum-v5'"),
    ("run: IMPASS", "run: IMPAS", "did you mean 'IMPASS'"),
    ("  stop: {training_iteration: 2}\n", "", "stop is missing"),
    ("training_iteration", "training_iterations", "did you mean"),
    ("  run", " run", ".yaml"),
    ("lr: 1e-4", "lr: 1e-4, lr: 1", "twice"),
    ("lr: 1e-4", "lr: !!python/object/apply:os.getcwd []", "python/object"),
    ("small:", "a/../small:", "a/../small"),
    ("env: InvertedPendulum-v5", "env: evil.Env", "--import evil"),
]
GOOD_FILE = ["train", "file", "good.yaml"]
BAD_FLAGS = [
    (["train", "fil", "x.yaml"], "rllib train file FILE.yaml"),
    (["train", "--run", "IMPASS", "--stop", "{training_iteration: 1}"], "env is"),
    ([*GOOD_FILE, "--stop", "{"], "--stop"),
    ([*GOOD_FILE, "--set", "lr"], "name=value"),
    ([*GOOD_FILE, "--resume"], "there is no run 'small'"),
    ([*GOOD_FILE, "--restore", "gone"], "gone does not exist"),
    ([*GOOD_FILE, "--restore", "."], "has no checkpoints"),
    ([*GOOD_FILE, "-n", "../up"], "../up"),
    (["train", "file", "https://example.org/a.yaml"], "a.yaml"),
    (["train", "file", "gone.py"], "gone.py"),
]


@pytest.fixture(scope="module")
def bad_results(tmp_path_factory):
    """The answers to all of them, in the order of the lists."""
    folder = tmp_path_factory.mktemp("bad")
    (folder / "evil.py").write_text("open('proof', 'w').close()\nclass Env: ...\n")
    (folder / "good.yaml").write_text(GOOD)
    commands = [words for words, _ in BAD_FLAGS]
    for number, (old, new, _) in enumerate(BAD_FILES):
        assert old in GOOD
        (folder / f"{number}.yaml").write_text(GOOD.replace(old, new))
        commands.append(["train", "file", f"{number}.yaml"])
    before = sorted(folder.iterdir())
    storage = ["--storage-path", "results"]
    results = rllib_many([[*words, *storage] for words in commands], cwd=folder)
    # Nothing was started or written, and the evil module was not imported.
    assert sorted(folder.iterdir()) == before
    return results


@pytest.mark.parametrize("number", range(len(BAD_FLAGS) + len(BAD_FILES)))
def test_bad_input_is_one_line_and_exit_code_2_and_starts_nothing(bad_results, number):
    messages = [*(m for _, m in BAD_FLAGS), *(m for _, _, m in BAD_FILES)]
    assert_usage_error(bad_results[number], messages[number])


def test_a_storage_path_that_is_a_file_is_named(good):
    done = rllib("train", "file", good, "--storage-path", good)
    assert_usage_error(done, "results")


def wait_for_checkpoint(folder, process):
    for _ in range(1200):
        if process.poll() is not None or any(folder.rglob("checkpoint_000001/*.json")):
            break
        time.sleep(0.1)
    assert process.poll() is None, process.communicate()


@pytest.mark.timeout(600)
def test_after_kill_9_a_run_goes_on_from_its_last_checkpoint(tmp_path, good):
    storage = tmp_path / "results"
    words = ["train", "file", good, "--storage-path", storage, *SMALL_FLAGS]
    words += ["--stop", "{training_iteration: 5}", "--checkpoint-freq", "1"]
    words += ["--set", "min_time_s_per_iteration=4"]
    process = subprocess.Popen(
        [str(RLLIB), *map(str, words)], stdout=subprocess.PIPE, text=True
    )
    wait_for_checkpoint(storage, process)
    # Tune notes a checkpoint in its own state within a second.
    time.sleep(1.5)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    before = rows(storage / "small")

    done = rllib(*words, "--resume", timeout=280)
    assert done.returncode == 0, done.stderr + done.stdout
    resumed = rows(storage / "small")[len(before) :]
    assert resumed[0]["training_iteration"] == before[-1]["training_iteration"] + 1
    assert resumed[-1]["training_iteration"] == 5
    steps = "num_env_steps_sampled_lifetime"
    assert resumed[0][steps] > before[-1][steps] > 0
    record = json.loads((storage / "small" / "run.json").read_text())
    assert len(record["starts"]) == 2

    changed = rllib(*words, "--set", "lr=1", "--resume")
    assert_usage_error(changed, "as it was started", "lr")
