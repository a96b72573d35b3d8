"""Folders that Tune itself has just written."""

import pytest

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
