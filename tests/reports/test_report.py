"""What a report says is what the runs' files say."""

import csv
import json
import math
import re

import numpy as np
import pytest

from rllib_impass.reports.errors import ReportError
from rllib_impass.reports.report import write_report
from synthetic_runs import Experiment, actor_study, comparison, learning, result


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """A comparison and the report of it."""
    folder = tmp_path_factory.mktemp("compared")
    runs = comparison(folder / "runs", num_seeds=5)
    report = write_report([runs], folder / "out", {"Hopper-v5": 1_500.0})
    return runs, folder / "out", report


def read_csv(file):
    with file.open(newline="") as lines:
        return list(csv.DictReader(lines))


def raw_runs(folder):
    """Label, env and evaluations of each trial, straight from its files."""
    for trial in sorted(path for path in folder.iterdir() if path.is_dir()):
        about = json.loads((trial / "params.json").read_text())["trial"]
        lines = (trial / "result.json").read_text().splitlines()
        rows = [json.loads(line) for line in lines]
        returns = [r["evaluation"]["env_runners"]["episode_return_mean"] for r in rows]
        yield trial, about, rows, returns


def markdown_rows(file, heading):
    """The cells of the table below a heading."""
    lines = file.read_text().split(f"**{heading}**")[1].strip().split("\n\n")[0]
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in lines.splitlines()[2:]
    ]


NAMES = {"IMPALANoSS": "IMPALA-noSS"}


def test_final_scores_are_those_of_the_raw_files(compared):
    runs, out, _ = compared
    for env in ("Hopper-v5", "Striker-v0"):
        scores = {}
        for _, about, _, returns in raw_runs(runs):
            if about["env"] == env and returns:
                last = returns[-max(1, -(-len(returns) // 10)) :]
                scores.setdefault(about["algorithm"], []).append(np.mean(last))
        rows = {row[0]: row for row in markdown_rows(out / "report.md", env)}
        for algorithm, values in scores.items():
            row = rows[NAMES.get(algorithm, algorithm)]
            middle = np.mean(sorted(values)[len(values) // 4 : -(len(values) // 4)])
            expected = (middle, np.mean(values), np.median(values))
            assert [row[2], row[4], row[5]] == [f"{value:,.0f}" for value in expected]
            low, high = (float(end.replace(",", "")) for end in row[3].split(" to "))
            assert min(values) - 1 <= low < middle < high <= max(values) + 1


def test_each_result_is_a_row_of_the_tidy_file(compared):
    runs, out, _ = compared
    tidy = read_csv(out / "results.csv")
    expected = 0
    for trial, about, rows, returns in raw_runs(runs):
        found = [row for row in tidy if row["run"] == f"runs/{trial.name}"]
        expected += max(1, len(rows))
        assert len(found) == max(1, len(rows))
        assert {row["seed"] for row in found} == {str(about["seed"])}
        for row, raw, value in zip(found, rows, returns, strict=bool(rows)):
            assert float(row["env_steps"]) == raw["num_env_steps_sampled_lifetime"]
            assert float(row["time_s"]) == raw["time_training_s"]
            assert float(row["evaluation_return"]) == value
    assert len(tidy) == expected


def test_each_run_is_a_row_of_the_scores(compared):
    runs, out, _ = compared
    rows = {row["run"]: row for row in read_csv(out / "scores.csv")}
    for trial, about, raw, returns in raw_runs(runs):
        row = rows.pop(f"runs/{trial.name}")
        assert int(row["num_evaluations"]) == len(returns)
        assert row["status"] == (
            "crashed" if (trial / "error.txt").exists() else "finished"
        )
        if not returns:
            assert (row["score"], row["error"]) == ("", "RuntimeError: <env> is gone")
            continue
        steps = [r["num_env_steps_sampled_lifetime"] for r in raw]
        times = [r["time_training_s"] for r in raw]
        speed = (steps[-1] - steps[0]) / (times[-1] - times[0])
        assert float(row["env_steps_per_s"]) == pytest.approx(speed)
        threshold = {"Hopper-v5": 1_500.0, "Striker-v0": -215.0}[about["env"]]
        reached = [i for i, value in enumerate(returns) if value >= threshold]
        if reached:
            assert float(row["env_steps_to_threshold"]) == steps[reached[0]]
            assert float(row["time_s_to_threshold"]) == times[reached[0]]
        else:
            assert row["env_steps_to_threshold"] == row["time_s_to_threshold"] == ""
    assert not rows


def test_crashed_runs_are_counted_wherever_runs_are(compared):
    _, out, report = compared
    page, markdown = (out / "index.html").read_text(), (out / "report.md").read_text()
    for text in (page, markdown, (out / "figures" / "final_scores.svg").read_text()):
        assert "5 seeds, 1 crashed" in text
    rows = {row[0]: row for row in markdown_rows(out / "report.md", "Hopper-v5")}
    assert rows["D4PG"][1] == "5 seeds, 1 crashed"
    assert rows["IMPASS"][1] == "5 seeds"
    assert any(
        "3 of 30 runs crashed" in note and "1 had none" in note for note in report.notes
    )
    assert "crashed: RuntimeError: &lt;env&gt; is gone" in page


def test_probabilities_of_improvement_are_those_of_the_scores(compared):
    _, out, _ = compared
    scores = [row for row in read_csv(out / "scores.csv") if row["score"]]

    def of(env, label):
        rows = [row for row in scores if (row["env"], row["label"]) == (env, label)]
        return [float(row["score"]) for row in rows]

    rows = markdown_rows(out / "report.md", "Probability of improvement")
    assert len(rows) == 3 * 3
    found = {}
    for env, pair, chance, _ in rows:
        x, y = pair.split(" > ")
        if env != "all, averaged":
            wins = [a > b for a in of(env, x) for b in of(env, y)]
            found.setdefault(pair, []).append(np.mean(wins))
            assert chance == f"{np.mean(wins):.2f}"
    for env, pair, chance, _ in rows:
        if env == "all, averaged":
            assert float(chance) == pytest.approx(np.mean(found[pair]), abs=0.006)


def test_scores_are_normalised_by_known_returns_or_else_by_the_runs(tmp_path):
    made = Experiment(tmp_path / "runs")
    for env, values in {"Hopper-v5": (18.0, 1_809.0), "Toy-v0": (3.0, 7.0)}.items():
        for algorithm, value in zip(("PPO", "SAC"), values, strict=True):
            made.add(algorithm, env, 0, [result(1_000, 1.0, value)])
    write_report([made.write()], tmp_path / "out")
    found = tmp_path / "out" / "report.md"
    rows = markdown_rows(found, "Normalised, all environments")
    assert [row[:2] for row in rows] == [["PPO", "0.000"], ["SAC", "0.750"]]
    assert markdown_rows(found, "Normalisation") == [
        ["Hopper-v5", "reference returns", "18.0", "3,600"],
        ["Toy-v0", "lowest and highest run here", "3.00", "7.00"],
    ]


def test_an_env_without_any_score_does_not_keep_the_others_from_being_averaged(
    tmp_path,
):
    made = Experiment(tmp_path / "runs")
    for algorithm in ("IMPASS", "PPO"):
        for env in ("Hopper-v5", "Swimmer-v5"):
            made.add(algorithm, env, 0, [result(1_000, 1.0, 18.0)])
        made.add(algorithm, "Striker-v0", 0, [], status="ERROR", error="no")
    write_report([made.write()], tmp_path / "out")
    found = tmp_path / "out" / "report.md"
    rows = markdown_rows(found, "Normalised, all environments")
    assert [row[:2] for row in rows] == [["IMPASS", "0.025"], ["PPO", "0.025"]]


def test_the_page_stands_alone(compared):
    _, out, _ = compared
    page = (out / "index.html").read_text()
    assert not re.findall(r"<(?:script|link|img|iframe|object)\b", page)
    assert not re.findall(r"(?:src|href)=\"(?!#)", page)
    assert not re.findall(r"url\((?!#)|@import", page)
    assert str(out.parent) not in page
    assert page.count('role="img"') == page.count('-alt">') > 10


def test_every_figure_is_there_as_png_and_svg(compared):
    _, out, report = compared
    names = {plot.name for plot in report.plots}
    files = {path.name for path in (out / "figures").iterdir()}
    assert files == {f"{name}{end}" for name in names for end in (".png", ".svg")}
    assert {"return_by_env_steps", "return_by_time_s", "final_scores"} <= names
    assert {"policy_lag", "action_smoothness", "throughput"} <= names
    for name in names:
        assert f"figures/{name}.png" in (out / "report.md").read_text()


def test_the_same_runs_give_the_same_report(compared, tmp_path):
    runs, out, _ = compared
    write_report([runs], tmp_path / "again", {"Hopper-v5": 1_500.0})
    for file in ("index.html", "report.md", "results.csv", "scores.csv"):
        assert (tmp_path / "again" / file).read_bytes() == (out / file).read_bytes()


def test_an_actor_study_shows_what_more_actors_bring(tmp_path):
    runs = actor_study(tmp_path / "runs")
    report = write_report([runs], tmp_path / "out")
    page = (tmp_path / "out" / "index.html").read_text()
    assert "more than 2 gain less than 5 % on this machine" in page
    labels = [group.label for group in report.groups]
    assert labels == ["IMPASS, 1 actor"] + [f"IMPASS, {n} actors" for n in (2, 4, 8)]
    assert (tmp_path / "out" / "figures" / "throughput_by_actors.png").exists()


def test_variants_have_a_panel_each_for_their_actors(tmp_path):
    made = Experiment(tmp_path / "runs")
    for variant, speed in {"slow": 1_000.0, "fast": 4_000.0}.items():
        for actors in (1, 2):
            rows = learning(100.0, num_rows=5, speed=speed * actors)
            about = {"num_env_runners": actors, "label": variant}
            made.add("IMPASS", "Hopper-v5", 0, rows, **about)
    report = write_report([made.write()], tmp_path / "out")
    (plot,) = [p for p in report.plots if p.name == "throughput_by_actors"]
    titles = [panel.title for panel in plot.panels]
    assert titles == ["Hopper-v5, slow", "Hopper-v5, fast"]


@pytest.mark.filterwarnings("error")
def test_many_labels_have_room_beside_the_curves(tmp_path):
    made = Experiment(tmp_path / "sweep")
    for number in range(30):
        label = f"lr_{number}e-5"
        rows = learning(1_000.0 + number, num_rows=5, seed=number)
        made.add("IMPASS", "Hopper-v5", 0, rows, label=label)
    write_report([made.write()], tmp_path / "out")
    svg = (tmp_path / "out/figures/return_by_env_steps.svg").read_text()
    assert all(f"lr_{number}e-5" in svg for number in range(30))


def test_what_was_never_evaluated_is_shown_as_training_return(tmp_path):
    made = Experiment(tmp_path / "runs")
    rows = [result(1_000 * n, float(n)) for n in range(1, 5)]
    made.add("PPO", "Toy-v0", 0, rows)
    report = write_report([made.write()], tmp_path / "out")
    (figure,) = (p for p in report.plots if p.name == "return_by_env_steps")
    assert figure.panels[0].title == "Toy-v0: never evaluated, training return"
    assert any("PPO on Toy-v0" in note for note in report.notes)
    (row,) = read_csv(tmp_path / "out" / "scores.csv")
    assert (row["score"], row["training_return"]) == ("", "-5.0")


def test_a_report_can_be_made_of_runs_without_a_clock(tmp_path):
    made = Experiment(tmp_path / "runs")
    rows = [result(1_000 * n, math.nan, 5.0 * n) for n in range(1, 5)]
    made.add("PPO", "Toy-v0", 0, rows)
    report = write_report([made.write()], tmp_path / "out", {"Toy-v0": 12.0})
    ((_, reached, steps, seconds),) = markdown_rows(
        tmp_path / "out" / "report.md", "Toy-v0, return of 12.0"
    )
    assert (reached, steps, seconds) == ("1 of 1", "3,000", "-")
    names = {plot.name for plot in report.plots}
    assert "return_by_env_steps" in names
    assert "return_by_time_s" not in names
    (row,) = read_csv(tmp_path / "out" / "scores.csv")
    assert (row["score"], row["time_s"], row["env_steps_per_s"]) == ("20.0", "", "")


def test_a_report_can_be_made_of_crashed_runs_alone(tmp_path):
    made = Experiment(tmp_path / "runs")
    made.add("PPO", "Toy-v0", 0, [], status="ERROR", error="ValueError: no")
    report = write_report([made.write()], tmp_path / "out")
    assert report.plots == []
    assert "ValueError: no" in (tmp_path / "out" / "index.html").read_text()


def test_only_a_report_is_ever_replaced(tmp_path):
    made = Experiment(tmp_path / "runs")
    made.add("PPO", "Toy-v0", 0, learning(10.0, num_rows=3))
    runs = made.write()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    for foreign in (tmp_path / "mine", tmp_path / "mine" / "thesis.tex", runs):
        with pytest.raises(ReportError, match="--out"):
            write_report([runs], foreign)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.tex"]
    out = tmp_path / "out"
    write_report([runs], out)
    (out / "figures" / "stale.png").write_text("")
    write_report([runs], out)
    assert not (out / "figures" / "stale.png").exists()
