"""Folders that Tune itself has just written."""

import pytest
from ray import tune

from rllib_impass.reports.results import read_runs
from toy_trials import counting_tuner


@pytest.mark.parametrize(
    ("fails_at", "status"), [(1, "crashed"), (3, "crashed"), (None, "finished")]
)
def test_how_a_trial_ended_is_read_from_tunes_files(
    ray_session, tmp_path, fails_at, status
):
    counting_tuner(tmp_path, {"training_iteration": 4}, [], fails_at=fails_at).fit()
    (run,) = read_runs([tmp_path]).runs
    assert (run.algorithm, run.status) == ("Counting", status)
    assert (run.error is None) == (status == "finished")
    if run.error is not None:
        assert "no more numbers" in run.error


def test_trials_that_tune_varied_are_no_seeds_of_one_thing(ray_session, tmp_path):
    # Wherever it fails, or not at all: this is a setting like any other.
    places = tune.grid_search([2, 9])
    counting_tuner(tmp_path, {"training_iteration": 3}, [], fails_at=places).fit()
    runs = read_runs([tmp_path]).runs
    assert [run.label for run in runs] == [
        "Counting, fails_at=2",
        "Counting, fails_at=9",
    ]
