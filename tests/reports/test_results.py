"""Run folders are read as they are, whatever happened to the runs."""

import dataclasses
import json
import math

import numpy as np
import pytest

from rllib_impass.reports.errors import ReportError
from rllib_impass.reports.results import read_runs
from rllib_impass.reports.run import COLUMNS
from rllib_impass.reports.tidy_csv import tidy_rows, write_csv
from synthetic_runs import CRASH, STATE_NAME, Experiment, learning, result

ROWS = [result(1_000 * n, 2.0 * n, 10.0 * n) for n in range(1, 6)]


def read_one(folder):
    (run,) = read_runs([folder]).runs
    return run


def experiment_with(folder, rows=ROWS, **about):
    made = Experiment(folder / "made", run="IMPALANoSS")
    trial = made.add("IMPALANoSS", "Hopper-v5", 3, rows, **about)
    made.write()
    return trial


def test_a_run_of_train_is_known_by_its_config(tmp_path):
    experiment_with(tmp_path, is_named=False, num_env_runners=5)
    run = read_one(tmp_path)
    assert (run.label, run.algorithm, run.env) == (
        "IMPALA-noSS",
        "IMPALANoSS",
        "Hopper-v5",
    )
    assert (run.seed, run.num_env_runners, run.num_stacked_states) == (3, 5, 1)
    assert (run.status, run.clock) == ("finished", "total")
    assert run.points["time_s"].tolist() == [2.5 * n for n in range(1, 6)]
    assert run.points["evaluation_return"].tolist() == [10, 20, 30, 40, 50]
    assert run.points["env_steps_per_s"][1:] == pytest.approx(400)
    assert math.isnan(run.points["env_steps_per_s"][0])


def test_without_tunes_notes_the_record_names_the_algorithm(tmp_path):
    trial = experiment_with(tmp_path, is_named=False)
    for file in trial.parent.glob("experiment_state*"):
        file.unlink()
    run = read_one(tmp_path)
    assert (run.algorithm, run.status) == ("IMPALANoSS", "unfinished")


def test_a_comparison_has_its_own_clock(tmp_path):
    rows = [row | {"time_training_s": 7.0 * n} for n, row in enumerate(ROWS, start=1)]
    experiment_with(tmp_path, rows)
    run = read_one(tmp_path)
    assert run.clock == "training"
    assert run.points["time_s"].tolist() == [7.0, 14.0, 21.0, 28.0, 35.0]


def test_what_a_retry_did_again_replaces_what_was_there(tmp_path):
    again = [result(3_000, 7.0, 300.0), result(3_500, 8.0, 350.0)]
    experiment_with(tmp_path, [*ROWS, *again])
    run = read_one(tmp_path)
    assert run.points["env_steps"].tolist() == [1_000, 2_000, 3_000, 3_500]
    assert run.points["evaluation_return"].tolist() == [10, 20, 300, 350]


def test_a_result_without_a_new_step_adds_to_the_one_before(tmp_path):
    rows = [row | {"training_iteration": n} for n, row in enumerate(ROWS, start=1)]
    idle = result(5_000, 12.0) | {"training_iteration": 6}
    experiment_with(tmp_path, [*rows, idle])
    run = read_one(tmp_path)
    assert run.points["env_steps"].tolist() == [1_000, 2_000, 3_000, 4_000, 5_000]
    assert run.points["time_s"].tolist() == [2.5, 5.0, 7.5, 10.0, 15.0]
    assert run.known("evaluation_return").tolist() == [10, 20, 30, 40, 50]


def test_missing_keys_and_nans_are_gaps(tmp_path):
    stock = {"env_runners": {"num_env_steps_sampled_lifetime": 2_000}}
    rows = [ROWS[0], stock, {"training_iteration": 3}, result(3_000, 6.0, math.nan)]
    experiment_with(tmp_path, rows)
    run = read_one(tmp_path)
    assert run.points["env_steps"].tolist() == [1_000, 2_000, 3_000]
    assert run.known("evaluation_return").tolist() == [10]
    assert run.known("policy_lag").tolist() == [1.5, 1.5]
    steps, returns = run.series("env_steps", "evaluation_return")
    assert (steps.tolist(), returns.tolist()) == ([1_000], [10])


def test_half_a_line_is_left_out(tmp_path):
    trial = experiment_with(tmp_path)
    with (trial / "result.json").open("a") as lines:
        lines.write(json.dumps(ROWS[0])[:50])
    assert len(read_one(tmp_path).points["env_steps"]) == 5


@pytest.mark.parametrize("has_file", [True, False])
def test_a_run_that_crashed_before_its_first_result_is_there(tmp_path, has_file):
    trial = experiment_with(tmp_path, [], status="ERROR", error=CRASH)
    if not has_file:
        (trial / "result.json").unlink()
    run = read_one(tmp_path)
    assert (run.status, run.label, run.seed) == ("crashed", "IMPALA-noSS", 3)
    assert run.error == "RuntimeError: <env> is gone"
    (row,) = tidy_rows([run])
    assert row["status"] == "crashed"
    assert all(math.isnan(row[column]) for column in COLUMNS)


@pytest.mark.parametrize(
    ("tunes_word", "error", "status"),
    [
        ("ERROR", CRASH, "crashed"),
        ("TERMINATED", None, "finished"),
        # It failed once and was tried again.
        ("TERMINATED", CRASH, "finished"),
        ("RUNNING", CRASH, "unfinished"),
        ("PAUSED", None, "unfinished"),
    ],
)
def test_tunes_word_counts(tmp_path, tunes_word, error, status):
    experiment_with(tmp_path, status=tunes_word, error=error)
    assert read_one(tmp_path).status == status


def test_a_trial_alone_is_judged_by_its_own_files(tmp_path):
    trial = experiment_with(tmp_path, error=CRASH)
    for file in trial.parent.glob("*.json"):
        file.unlink()
    assert read_one(trial).status == "crashed"
    done = json.dumps(ROWS[0] | {"num_env_steps_sampled_lifetime": 9e9, "done": True})
    with (trial / "result.json").open("a") as lines:
        lines.write(done)
    assert read_one(trial).status == "finished"


def test_the_newest_of_tunes_notes_counts(tmp_path):
    trial = experiment_with(tmp_path, status="RUNNING")
    (old,) = trial.parent.glob("experiment_state-*.json")
    new = old.read_text().replace("RUNNING", "TERMINATED")
    (trial.parent / "experiment_state-2026-01-03_00-00-00.json").write_text(new)
    assert read_one(tmp_path).status == "finished"


def test_a_trial_is_read_once_however_often_it_is_named(tmp_path):
    trial = experiment_with(tmp_path)
    (trial / "checkpoint_000000").mkdir()
    (trial / "checkpoint_000000" / "params.json").write_text("{}")
    runs = read_runs([tmp_path, trial.parent, trial]).runs
    assert [run.folder.name for run in runs] == [trial.name]


def test_trials_that_wait_are_counted(tmp_path):
    trial = experiment_with(tmp_path)
    (file,) = trial.parent.glob("experiment_state-*.json")
    state = json.loads(file.read_text())
    waiting = {"relative_logdir": None, "trainable_name": "IMPASS", "status": "PENDING"}
    state["trial_data"] += [[json.dumps(waiting), "{}"]] * 2
    file.write_text(json.dumps(state))
    assert read_runs([tmp_path]).num_never_started == 2


def test_a_folder_without_trials_is_refused(tmp_path):
    with pytest.raises(ReportError, match="holds no trial"):
        read_runs([tmp_path])
    with pytest.raises(ReportError, match="does not exist"):
        read_runs([tmp_path / "gone"])


def labels_of(folder, *trials):
    made = Experiment(folder / "made")
    for trial in trials:
        about = {"algorithm": "IMPASS", "env": "Hopper-v5", "is_named": False} | trial
        made.add(seed=0, rows=[], **about)
    return [run.label for run in read_runs([made.write()]).runs]


@pytest.mark.parametrize(
    ("trials", "labels"),
    [
        ([{}, {"algorithm": "PPO"}], ["IMPASS", "PPO"]),
        (
            [{"num_env_runners": 1}, {"num_env_runners": 8}],
            ["IMPASS, 1 actor", "IMPASS, 8 actors"],
        ),
        (
            [{"num_stacked_states": 1}, {"num_stacked_states": 4}],
            ["IMPASS, 1 state", "IMPASS, 4 states"],
        ),
        # Different tuned files for different envs.
        (
            [{"num_env_runners": 1}, {"num_env_runners": 8, "env": "Swimmer-v5"}],
            ["IMPASS", "IMPASS"],
        ),
        (
            [
                {"label": "short", "is_named": True},
                {"label": "long", "is_named": True, "num_stacked_states": 8},
            ],
            ["short", "long"],
        ),
        # What Tune varied, but not what is said in words of its own.
        (
            [
                {"varied": {"lr": 1e-4, "seed": 1, "num_stacked_states": 1}},
                {"varied": {"lr": 1e-3, "seed": 1, "num_stacked_states": 1}},
            ],
            ["IMPASS, lr=0.0001", "IMPASS, lr=0.001"],
        ),
        (
            [
                {"label": "a", "is_named": True, "varied": {"settings/lr": 1e-4}},
                {"label": "a", "is_named": True, "varied": {"settings/lr": 1e-3}},
            ],
            ["a, lr=0.0001", "a, lr=0.001"],
        ),
        # Two studies of one name.
        (
            [
                {"label": "IMPASS", "is_named": True},
                {"label": "IMPASS", "is_named": True, "num_env_runners": 8},
            ],
            ["IMPASS, 2 actors", "IMPASS, 8 actors"],
        ),
    ],
)
def test_labels_say_what_differs(tmp_path, trials, labels):
    assert labels_of(tmp_path, *trials) == labels


def test_runs_come_in_the_order_of_their_trials_not_of_tunes_notes(tmp_path):
    made = Experiment(tmp_path / "made")
    for seed in range(3):
        made.add("IMPASS", "Hopper-v5", seed, ROWS)
    notes = made.write() / STATE_NAME
    state = json.loads(notes.read_text())
    state["trial_data"].reverse()
    notes.write_text(json.dumps(state))
    assert [run.seed for run in read_runs([tmp_path]).runs] == [0, 1, 2]


def test_rows_of_the_tidy_table_are_results(tmp_path):
    rows = learning(100.0, num_rows=7)
    experiment_with(tmp_path, rows)
    tidy = tidy_rows([read_one(tmp_path)])
    assert [row["env_steps"] for row in tidy] == [
        row["num_env_steps_sampled_lifetime"] for row in rows
    ]
    expected = [row["evaluation"]["env_runners"]["episode_return_mean"] for row in rows]
    np.testing.assert_array_equal([row["evaluation_return"] for row in tidy], expected)


def write_results(folder, runs):
    file = folder / "results.csv"
    write_csv(tidy_rows(runs), file)
    return file


def test_a_table_gives_back_the_runs_it_was_made_of(tmp_path):
    made = Experiment(tmp_path / "made", run="IMPASS")
    made.add("IMPASS", "Hopper-v5", 0, learning(3_000.0))
    gaps = [ROWS[0], result(2_000, 4.0, math.nan), ROWS[2]]
    made.add("D4PG", "Hopper-v5", None, gaps, status="ERROR", error=CRASH)
    made.add("IMPALANoSS", "Hopper-v5", 1, [], status="ERROR", error=CRASH)
    made.write()
    runs = read_runs([tmp_path]).runs
    again = read_runs([write_results(tmp_path, runs)]).runs
    assert len(again) == 3
    for ours, theirs in zip(again, runs, strict=True):
        for field in dataclasses.fields(theirs):
            if field.name not in ("folder", "points"):
                name = field.name
                assert getattr(ours, name) == getattr(theirs, name), name
        assert ours.name == theirs.name
        for column in COLUMNS:
            np.testing.assert_array_equal(ours.points[column], theirs.points[column])
    assert again[2].error is not None


def test_a_table_tells_variants_apart_that_its_own_report_need_not(tmp_path):
    places = []
    for name in ("paper", "IMPASS"):
        made = Experiment(tmp_path / name)
        made.add("IMPASS", "Hopper-v5", 0, ROWS, label=name)
        runs = read_runs([made.write()]).runs
        assert [run.label for run in runs] == ["IMPASS"]
        places.append(write_results(tmp_path / name, runs))
    both = read_runs(places).runs
    assert [run.label for run in both] == ["paper", "IMPASS"]


def test_rows_of_a_table_may_come_in_any_order(tmp_path):
    made = Experiment(tmp_path / "made")
    for seed in range(2):
        made.add("IMPASS", "Hopper-v5", seed, ROWS)
    file = write_results(tmp_path, read_runs([made.write()]).runs)
    header, *lines = file.read_text().splitlines()
    file.write_text("\n".join([header, *reversed(lines[::2]), *lines[1::2]]))
    runs = read_runs([file]).runs
    assert len(runs) == 2
    for run in runs:
        assert run.points["env_steps"].tolist() == [1_000, 2_000, 3_000, 4_000, 5_000]


def test_a_run_that_went_on_is_taken_from_its_folder(tmp_path):
    experiment_with(tmp_path, ROWS[:2])
    table = write_results(tmp_path, read_runs([tmp_path]).runs)
    trial = experiment_with(tmp_path / "later")
    for places in ([table, trial], [trial, table]):
        (run,) = read_runs(places).runs
        assert run.points["env_steps"].tolist() == [1_000, 2_000, 3_000, 4_000, 5_000]


@pytest.mark.parametrize(
    ("content", "says"),
    [("a,b\n1,2\n", "lacks the column 'label'"), ("", "lacks the column 'label'")],
)
def test_a_table_of_something_else_is_refused(tmp_path, content, says):
    file = tmp_path / "other.csv"
    file.write_text(content)
    with pytest.raises(ReportError, match=says):
        read_runs([file])


def test_a_damaged_table_is_refused_with_the_line(tmp_path):
    experiment_with(tmp_path)
    file = write_results(tmp_path, read_runs([tmp_path]).runs)
    lines = file.read_text().splitlines()
    lines[3] = lines[3].replace("3000.0", "three")
    file.write_text("\n".join(lines))
    with pytest.raises(ReportError, match=r"line 4: .*'three'"):
        read_runs([file])


def test_a_table_without_runs_is_refused(tmp_path):
    experiment_with(tmp_path)
    file = write_results(tmp_path, read_runs([tmp_path]).runs)
    file.write_text(file.read_text().splitlines()[0])
    with pytest.raises(ReportError, match="holds no run"):
        read_runs([file])
