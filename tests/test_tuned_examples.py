"""Every tuned file loads, says what to expect of it, and runs."""

import importlib.metadata
from pathlib import Path

import pytest

import rllib_impass  # noqa: F401
from rllib_impass.experiments.examples import list_examples
from rllib_impass.experiments.spec import load_experiments

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / "tuned_examples").rglob("*.yaml"))
ENVS = {"Hopper-v5", "Swimmer-v5", "HumanoidStandup-v5", "Striker-v0"}


def test_tuned_files_are_installed_with_the_package():
    installed = {str(file) for file in importlib.metadata.files("rllib_impass")}
    assert FILES
    for path in FILES:
        assert f"rllib_impass/{path.relative_to(ROOT)}" in installed


def test_each_algorithm_has_a_file_for_each_env_of_the_paper():
    files = {(example.run, example.env) for example in list_examples()}
    runs = ("IMPASS", "IMPALANoSS", "D4PG")
    assert files >= {(run, env) for run in runs for env in ENVS}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_tuned_file_is_valid_and_documented(path):
    (experiment,) = load_experiments(path)
    algorithm = path.parent.name
    assert path.stem.endswith(f"_{algorithm}")
    assert experiment.run.lower() == algorithm.replace("_", "")
    assert experiment.name == path.stem.replace("_", "-")
    assert experiment.checkpoint_config["checkpoint_frequency"] > 0
    assert experiment.config["evaluation_interval"] > 0
    assert path.read_text().startswith(f"# rllib train file {path.relative_to(ROOT)}\n")
    (example,) = (e for e in list_examples() if e.id == path.stem)
    assert example.status in ("tuned", "to be tuned")
    assert "return" in example.expected
    assert "env steps" in example.budget
    assert "minutes on 2 cores" in example.budget
