"""What `rllib` says of itself: versions, help, completions."""

import re
import subprocess
import sys

import pytest
from rllib_command import RLLIB, rllib


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
        "train file",
        "evaluate",
        "export",
        "compare",
        "actors",
        "report",
        "benchmark",
        "benchmark throughput",
        "benchmark replay",
        "benchmark scaling",
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


def test_what_a_command_is_for_is_not_cut_short():
    assert "..." not in rllib("--help").stdout.split("Commands:")[1]


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
            "COMP_WORDS": "rllib example get hopper_imp",
            "COMP_CWORD": "3",
        },
    )
    assert done.stdout.split() == ["hopper_impala_noss", "hopper_impass"]
