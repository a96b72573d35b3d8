"""Every tuned file loads, validates, and says how to run it."""

import importlib.metadata
from pathlib import Path

import pytest

import rllib_impass  # noqa: F401
from rllib_impass.experiments.spec import load_experiments

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / "tuned_examples").rglob("*.yaml"))


def test_tuned_files_are_installed_with_the_package():
    installed = {str(file) for file in importlib.metadata.files("rllib_impass")}
    assert FILES
    for path in FILES:
        assert f"rllib_impass/{path.relative_to(ROOT)}" in installed


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_tuned_file_is_valid_and_documented(path):
    (experiment,) = load_experiments(path)
    experiment.algorithm_config()
    algorithm = path.parent.name
    assert path.stem.endswith(f"_{algorithm}")
    assert experiment.run.lower() == algorithm
    text = path.read_text()
    assert text.startswith(f"# rllib train file {path.relative_to(ROOT)}\n")
    assert "# Status: " in text
