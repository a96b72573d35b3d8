"""`rllib report`, as a user starts it."""

import pytest
from rllib_command import assert_usage_error, rllib, rllib_many, small_flags

from synthetic_runs import comparison

BAD = [
    (["gone"], "gone does not exist"),
    (["empty"], "empty holds no trial"),
    (["runs", "--threshold", "Hopper-v5"], "--threshold 'Hopper-v5'"),
    (["runs", "--threshold", "=5"], "expected ENV=RETURN"),
    (["runs", "--threshold", "Hopper-v5=far"], "'Hopper-v5=far'"),
    (["runs", "--out", "full"], "--out full holds something else"),
    (["runs", "--out", "full/file"], "is a file"),
    (["runs", "--dry-run"], "--dry-run does nothing without --wandb"),
    (["runs", "--wandb", "me/project"], "leave out the folders"),
    (["--wandb", "me/project", "--dry-run"], "give the folders of runs"),
    (["--out", "here"], "give the folder of a run"),
    (["full/file"], "full/file is a file: say with --out where to write"),
    (["full/other.csv", "--out", "there"], "give the results.csv of a report"),
]


@pytest.fixture(scope="module")
def commands(tmp_path_factory):
    """What every command said, and the folder."""
    folder = tmp_path_factory.mktemp("report")
    comparison(folder / "runs", num_rows=20)
    (folder / "empty").mkdir()
    (folder / "full").mkdir()
    (folder / "full" / "file").write_text("")
    (folder / "full" / "other.csv").write_text("a,b\n1,2\n")
    good = [
        ["runs"],
        ["runs", "--out", "here", "--threshold", "Hopper-v5=100"],
        ["runs/report/results.csv", "--out", "again"],
    ]
    words = [["report", *words] for words in (*(w for w, _ in BAD), *good)]
    return rllib_many(words, cwd=folder), folder


@pytest.mark.parametrize("number", range(len(BAD)))
def test_bad_input_is_one_line_and_exit_code_2(commands, number):
    assert_usage_error(commands[0][number], BAD[number][1])


def test_the_end_says_what_came_out_and_where_it_is(commands):
    results, folder = commands
    done = results[-3]
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    page = folder / "runs" / "report" / "index.html"
    assert lines[-1] == f"wrote {page}"
    assert page.exists()
    assert max(map(len, lines[:-1])) <= 80
    (row,) = (line for line in lines if line.strip().startswith("Hopper-v5"))
    assert row.split()[1:4] == ["IMPASS", "3", "seeds"]
    assert sum("3 seeds, 1 crashed" in line for line in lines) == 3


def test_a_folder_and_a_threshold_of_ones_own(commands):
    results, folder = commands
    assert results[-2].returncode == 0, results[-2].stderr
    assert "return of 100" in (folder / "here" / "report.md").read_text()
    assert (folder / "full" / "file").read_text() == ""


def test_the_table_of_a_report_gives_the_same_report(commands):
    results, folder = commands
    assert results[-1].returncode == 0, results[-1].stderr
    for name in ("results.csv", "scores.csv"):
        first = (folder / "runs" / "report" / name).read_text()
        assert (folder / "again" / name).read_text() == first


def test_a_run_that_was_just_trained(tmp_path):
    stop = "{training_iteration: 3}"
    words = ["--run", "IMPASS", "--env", "Pendulum-v1", "--stop", stop, "-q"]
    trained = rllib("train", *words, *small_flags(), "--storage-path", tmp_path)
    assert trained.returncode == 0, trained.stderr
    done = rllib("report", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1 seed" in done.stdout
    text = (tmp_path / "report" / "report.md").read_text()
    assert "IMPASS on Pendulum-v1" in text
    assert "4 stacked states" in text
    assert "| finished |" in text
