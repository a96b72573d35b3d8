"""`rllib example`: the tuned files, offline."""

import pytest
import yaml
from rllib_command import assert_usage_error, rllib


def test_the_list_has_env_algorithm_status_and_expected_result():
    done = rllib("example", "list", "--filter", "hopper")
    assert done.returncode == 0
    assert "hopper_impass: " in done.stdout
    assert "IMPASS on Hopper-v5" in done.stdout
    assert "tuned" in done.stdout
    assert "return" in done.stdout
    assert "swimmer" not in done.stdout
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    names = [line for line in lines if not line.startswith("  ")]
    assert all("hopper" in name and "tuned" in name for name in names)


def test_what_get_prints_is_the_file():
    done = rllib("example", "get", "striker_impass")
    assert yaml.safe_load(done.stdout)["striker-impass"]["env"] == "Striker-v0"


@pytest.mark.parametrize("command", ["get", "run"])
def test_an_unknown_example_is_named(command):
    done = rllib("example", command, "striker_impas")
    assert_usage_error(done, "did you mean 'striker_impass'")


def test_an_example_takes_the_flags_of_train(tmp_path):
    words = ["--storage-path", tmp_path, "--set", "gama=1"]
    done = rllib("example", "run", "quickstart_impass", *words)
    assert_usage_error(done, "quickstart-impass", "did you mean 'gamma'")
