"""What `--wandb` refuses, before anything is started."""

import os
import subprocess
import sys

import pytest
from rllib_command import SMALL_FLAGS, assert_usage_error, rllib_many

TRAIN = ["train", "--run", "IMPASS", "--env", "Pendulum-v1", "--storage-path", "."]
TRAIN += ["--stop", "{training_iteration: 1}", *SMALL_FLAGS]


@pytest.fixture(scope="module")
def refused(tmp_path_factory):
    """What commands say that ask for what cannot be had."""
    folder = tmp_path_factory.mktemp("refused")
    commands = {
        "nobody": [*TRAIN, "--wandb", "things"],
        "alone": [*TRAIN, "--wandb-group", "g"],
        "name": [*TRAIN, "--wandb", "a/b/c", "--wandb-mode", "offline"],
    }
    with pytest.MonkeyPatch.context() as patch:
        for name in [n for n in os.environ if n.startswith("WANDB_")]:
            patch.delenv(name)
        patch.setenv("NETRC", str(folder / "no_netrc"))
        done = rllib_many(list(commands.values()), cwd=folder)
    assert sorted(p.name for p in folder.iterdir()) == []
    return dict(zip(commands, done, strict=True))


def test_online_without_a_login_is_refused_at_once(refused):
    words = ("not logged in", "wandb login", "WANDB_API_KEY", "--wandb-mode offline")
    assert_usage_error(refused["nobody"], *words)


def test_flags_that_would_do_nothing_are_refused(refused):
    assert_usage_error(refused["alone"], "--wandb-group", "--wandb PROJECT")
    assert_usage_error(refused["name"], "--wandb a/b/c", "ENTITY/PROJECT")


def test_without_the_package_only_wandb_is_refused(tmp_path):
    """A package of that name that cannot be imported: as good as none."""
    (tmp_path / "wandb.py").write_text("raise ImportError('there is none')")
    code = "import sys; sys.path.insert(0, '.'); sys.argv[0] = 'rllib'; "
    code += "from rllib_impass.cli.app import app; app()"
    for words, status in (
        (["--help"], 0),
        (["train", "--help"], 0),
        ([*TRAIN, "--wandb", "things"], 2),
    ):
        done = subprocess.run(
            [sys.executable, "-c", code, *words],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )
        assert done.returncode == status, done.stderr
    assert_usage_error(done, "--wandb", "pip install wandb")
    assert not list(tmp_path.glob("IMPASS*"))
