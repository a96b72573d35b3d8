"""A small real comparison through the command: interrupted, continued, reported."""

import csv
import json
import os
import signal
import subprocess
import time

import pytest
from rllib_command import RLLIB, assert_usage_error, rllib, rllib_many, running_ray

ENVS = ("Pendulum-v1", "InvertedPendulum-v5")
# As Tune calls them, and as the report does.
LABELS = {"IMPALANoSS": "IMPALA-noSS", "D4PG": "D4PG"}
SEEDS = (7, 8)
BUDGET = 2500
EVALUATIONS = 2
COMMAND = [
    "compare",
    *("--env", ",".join(ENVS)),
    *("--algos", ",".join(LABELS)),
    *("--seeds", "2", "--first-seed", "7"),
    *("--budget-steps", str(BUDGET)),
    *("--evaluations", str(EVALUATIONS), "--eval-episodes", "2"),
    *("--set", "num_env_runners=0", "--set", "num_envs_per_env_runner=4"),
    *("--set", "train_batch_size_per_learner=256"),
    *("--set", "evaluation_num_env_runners=0"),
    *("--concurrent", "3", "-n", "small"),
]


def rows_of(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def finished(folder):
    """What is in the result files of the trials that have spent their budget."""
    return {
        file: file.read_bytes()
        for file in folder.glob("*/result.json")
        if file.read_bytes().endswith(b"\n")
        and rows_of(file)[-1]["num_env_steps_sampled_lifetime"] >= BUDGET
    }


@pytest.fixture(scope="module")
def comparison(ray_session, tmp_path_factory):
    """Interrupted once two trials are done, then run again."""
    storage = tmp_path_factory.mktemp("comparison")
    command = [*COMMAND, "--storage-path", str(storage), *running_ray()]
    folder = storage / "small"
    environment = {**os.environ, "COLUMNS": "80"}
    environment.pop("PYTHONPATH", None)
    process = subprocess.Popen(
        [str(RLLIB), *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    )
    deadline = time.monotonic() + 240
    while len(finished(folder)) < 2 and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    first_output, _ = process.communicate(timeout=120)
    before = finished(folder)
    again = rllib(*command, timeout=280)
    return folder, (process.returncode, first_output), before, again


def test_an_interrupted_comparison_says_that_it_goes_on(comparison):
    _, (exit_code, output), _, again = comparison
    assert exit_code == 130, output
    assert "the same command goes on with it" in output
    assert again.returncode == 0, again.stdout + again.stderr
    assert "going on with what is there" in again.stdout


def test_finished_trials_are_not_run_twice(comparison):
    folder, _, before, _ = comparison
    assert 2 <= len(before) < len(LABELS) * len(ENVS) * len(SEEDS)
    for file, content in before.items():
        assert file.read_bytes() == content
    assert [f.name for f in folder.parent.iterdir()] == ["small"]


def test_every_contender_has_spent_its_budget_on_every_task_with_every_seed(comparison):
    folder, *_ = comparison
    files = finished(folder)
    told = {
        tuple(rows_of(f)[-1]["trial"][k] for k in ("label", "env", "seed"))
        for f in files
    }
    assert told == {(a, e, s) for a in LABELS for e in ENVS for s in SEEDS}
    for file in files:
        rows = rows_of(file)
        steps = [row["num_env_steps_sampled_lifetime"] for row in rows]
        assert steps == sorted(steps)
        assert steps[-1] < 2 * BUDGET
        assert sum("evaluation" in row for row in rows) == EVALUATIONS
        assert "evaluation" in rows[-1]


def test_the_folder_says_what_was_compared_and_how_it_was_started(comparison):
    folder, *_ = comparison
    record = json.loads((folder / "study.json").read_text())
    assert record["study"]["seeds"] == list(SEEDS)
    assert len(record["starts"]) == 2
    assert record["starts"][0]["command"][1] == "compare"


def test_the_reports_numbers_are_those_of_the_raw_files(comparison):
    folder, *_, again = comparison
    # Of two evaluations, the last tenth is the last one.
    raw = {}
    for file in finished(folder):
        last = rows_of(file)[-1]
        told = last["trial"]
        score = last["evaluation"]["env_runners"]["episode_return_mean"]
        raw[LABELS[told["label"]], told["env"], str(told["seed"])] = score
    with (folder / "report" / "scores.csv").open() as file:
        rows = list(csv.DictReader(file))
    told = {(r["label"], r["env"], r["seed"]): float(r["score"]) for r in rows}
    assert told == pytest.approx(raw)
    assert {row["status"] for row in rows} == {"finished"}
    markdown = (folder / "report" / "report.md").read_text()
    for env in ENVS:
        table = markdown.partition(f"**{env}**")[2].partition("\n\n**")[0]
        for label in LABELS.values():
            mean = sum(raw[label, env, str(seed)] for seed in SEEDS) / len(SEEDS)
            (line,) = (x for x in table.splitlines() if x.startswith(f"| {label} | 2"))
            cells = [cell.strip().replace(",", "") for cell in line.split("|")]
            # The interquartile mean of two is their mean.
            assert float(cells[3]) == pytest.approx(mean, rel=2e-3)
    assert str(folder / "report" / "index.html") in again.stdout


def test_the_report_has_its_figures(comparison):
    folder, *_ = comparison
    page = (folder / "report" / "index.html").read_text()
    for name in ("return_by_env_steps", "return_by_time_s", "final_scores"):
        assert (folder / "report" / "figures" / f"{name}.png").stat().st_size > 5000
    assert page.count("<svg") >= 5
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_output_fits_80_columns(comparison):
    _, (_, first), _, again = comparison
    lines = (first + again.stdout).splitlines()
    # Paths are printed whole, to be copied.
    assert all(len(line) <= 80 or "/" in line for line in lines)


def test_bad_input_is_refused_before_anything_starts(tmp_path):
    storage = ["--storage-path", str(tmp_path / "runs")]
    cases = {
        ("compare", "--env", "Hoper-v5"): ["did you mean 'Hopper-v5'"],
        ("compare", "--env", "Pendulum-v1", "--algos", "IMPAS"): ["IMPASS"],
        ("compare", "--env", "Pendulum-v1,"): ["--env"],
        (
            *("compare", "--env", "Pendulum-v1"),
            *("--budget-steps", "1", "--budget-seconds", "1"),
        ): ["budget"],
        ("actors", "--env", "Pendulum-v1", "--counts", "1,two"): ["--counts", "1,two"],
        ("actors", "--env", "Pendulum-v1", "--counts", "0"): ["counts"],
        ("actors", "--env", "Pendulum-v1", "--set", "lr"): ["--set"],
    }
    done = rllib_many([[*words, *storage] for words in cases], tmp_path)
    for result, words in zip(done, cases.values(), strict=True):
        assert_usage_error(result, *words)
    assert not (tmp_path / "runs").exists()
