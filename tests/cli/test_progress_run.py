"""How far a run is, and how numbers are put into few characters."""

import math
import re

import pytest
from ray.tune.experiment import Trial

from rllib_impass.cli.progress_columns import clock, fit_columns, number
from rllib_impass.cli.progress_run import RunProgress
from toy_trials import idle_trials

STEPS = "num_env_steps_sampled_lifetime"


def test_a_restored_run_starts_from_its_last_result():
    (trial,) = idle_trials({})
    trial.update_last_result({"training_iteration": 4, "time_total_s": 10.0})
    run = RunProgress({"training_iteration": 8}, 1)
    run.update_statuses([trial])
    assert run.summary().startswith("50% of 8 iterations")
    assert not run.has_results()


def test_only_counters_make_a_percentage():
    (trial,) = idle_trials({})
    run = RunProgress({"env_runners/episode_return_mean": 100.0}, 1)
    run.add_result(trial, {"env_runners": {"episode_return_mean": 50.0}})
    assert re.fullmatch(r"elapsed 0:0\d", run.summary())


def test_the_nearest_criterion_is_shown():
    (trial,) = idle_trials({})
    run = RunProgress({STEPS: 1000, "time_total_s": 3600}, 1)
    run.add_result(trial, {STEPS: 100, "time_total_s": 1800.0})
    assert run.summary().startswith("50% of 1:00:00, ")


def test_the_time_left_counts_waiting_trials():
    one, _ = both = idle_trials({}, {})
    run = RunProgress({STEPS: 1000}, 2)
    one.set_status(Trial.RUNNING)
    run.update_statuses(both)
    run.add_result(one, {STEPS: 250, "time_total_s": 100.0})
    # 300 s for this one, then 400 s for the one that waits for it.
    assert re.search(r"about 11:(40|39) left", run.summary())


def test_a_trial_that_went_back_has_no_negative_speed():
    (trial,) = idle_trials({})
    run = RunProgress({STEPS: 1000}, 1)
    for steps, seconds in ((500, 10.0), (400, 9.0), (700, 12.0)):
        run.add_result(trial, {STEPS: steps, "time_total_s": seconds})
    assert [row["steps/s"] for row in run.last_rows(10)] == ["50", "-", "100"]


@pytest.mark.parametrize(
    ("value", "digits", "width", "text"),
    [
        (None, 1, 8, "-"),
        (math.nan, 1, 8, "-"),
        (-9999.94, 1, 8, "-9,999.9"),
        (123456.7, 1, 8, "123,457"),
        (99_999_999, 0, 10, "99,999,999"),
        (123_456_789, 0, 10, "123.5M"),
        (-1.6e30, 1, 8, "-2e+30"),
    ],
)
def test_numbers_fit_their_column(value, digits, width, text):
    assert number(value, digits, width) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0:00"), (62, "1:02"), (3600, "1:00:00"), (43500, "12h05m")],
)
def test_times_are_readable(seconds, text):
    assert clock(seconds) == text


def test_all_columns_of_a_result_fit_into_80():
    assert sum(column.width for column in fit_columns(80)) <= 80
    assert len(fit_columns(80)) == 8
