"""The W&B report, without W&B: what would be sent has the right parts."""

import json
import socket
import sys

import pytest

from rllib_impass.reports.errors import ReportError
from rllib_impass.reports.wandb_report import (
    TrackedRun,
    build_report,
    tracked_runs,
    write_json,
)

ENVS = ("Hopper-v5", "Swimmer-v5")
ALGORITHMS = ("IMPASS", "IMPALANoSS", "D4PG")
# A comparison with two seeds, and more actors for one of the algorithms.
RUNS = [TrackedRun(e, a, 8) for e in ENVS for a in ALGORITHMS for _ in range(2)]
ACTOR_RUNS = [TrackedRun("Hopper-v5", "IMPASS", n) for n in (4, 1)]


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    def refuse(*_):
        raise AssertionError("the network was touched")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture
def spec(tmp_path):
    write_json(build_report("us/mujoco", RUNS + ACTOR_RUNS), tmp_path / "new/w.json")
    return json.loads((tmp_path / "new/w.json").read_text())


def sections(spec):
    """The panel grids under each heading."""
    grids, heading = {}, None
    for block in spec["spec"]["blocks"]:
        if block["type"] == "heading":
            heading = block["children"][0]["text"]
        elif block["type"] == "panel-grid":
            grids.setdefault(heading, []).append(block["metadata"])
    return grids


def selected(run_set):
    """The config that a run set asks for."""
    filters = run_set["filters"]["filters"]
    assert all(f["op"] == "=" and f["key"]["section"] == "config" for f in filters)
    assert all(f["connector"] == "AND" for f in filters[1:])
    return {f["key"]["name"]: f["value"] for f in filters}


def axes(grid):
    panels = grid["panelBankSectionConfig"]["panels"]
    return [
        (p["config"]["xAxis"], *p["config"]["metrics"])
        for p in panels
        if p["viewType"] == "Run History Line Plot"
    ]


def test_every_env_has_one_grid_with_a_run_set_for_each_algorithm(spec):
    assert (spec["entity"], spec["project"]) == ("us", "mujoco")
    for env in ENVS:
        (grid,) = sections(spec)[env]
        chosen = {s["name"]: selected(s) for s in grid["runSets"]}
        assert chosen == {a: {"env_id": env, "exp_name": a} for a in ALGORITHMS}
        for metric in ("charts/eval_return", "charts/episodic_return"):
            assert ("global_step", metric) in axes(grid)
            assert ("charts/time_s", metric) in axes(grid)


def test_run_sets_are_of_the_reports_own_project(spec):
    grids = [grid for some in sections(spec).values() for grid in some]
    assert not any("project" in s for grid in grids for s in grid["runSets"])


def test_the_actor_study_has_a_run_set_for_each_number_of_actors(spec):
    (grid,) = sections(spec)["IMPASS on Hopper-v5"]
    same = {"env_id": "Hopper-v5", "exp_name": "IMPASS"}
    chosen = [selected(run_set) for run_set in grid["runSets"]]
    assert chosen == [same | {"num_env_runners": n} for n in (1, 4, 8)]
    assert ("global_step", "charts/eval_return") in axes(grid)
    assert ("charts/time_s", "charts/eval_return") in axes(grid)
    assert not [name for name in sections(spec) if name.startswith("D4PG on")]


def test_without_several_numbers_of_actors_there_is_no_actor_study(tmp_path):
    write_json(build_report("us/mujoco", RUNS), tmp_path / "w.json")
    content = json.loads((tmp_path / "w.json").read_text())
    assert list(sections(content)) == [*ENVS, "Throughput and lag", "Settings"]


def test_throughput_lag_and_settings_are_shown(spec):
    (grid,) = sections(spec)["Throughput and lag"]
    metrics = {metric for _, metric in axes(grid)}
    assert {"charts/SPS", "learners/default_policy/policy_lag_mean"} <= metrics
    (grid,) = sections(spec)["Settings"]
    (panel,) = grid["panelBankSectionConfig"]["panels"]
    assert panel["viewType"] == "Run Comparer"


def test_the_summary_counts_runs(spec):
    blocks = spec["spec"]["blocks"]
    (text,) = (b["content"] for b in blocks if b["type"] == "markdown-block")
    assert "| runs | IMPASS | IMPALANoSS | D4PG |" in text
    assert "| Hopper-v5 | 4 | 2 | 2 |" in text
    assert "| Swimmer-v5 | 2 | 2 | 2 |" in text


def test_runs_are_known_by_what_tracking_left_in_their_folders(tmp_path):
    told = {"env_id": "Hopper-v5", "exp_name": "D4PG", "num_env_runners": 2}
    for name, facts in (("a", told), ("b", {"id": "of another tool"})):
        (tmp_path / "x" / name).mkdir(parents=True)
        (tmp_path / "x" / name / "wandb_run.json").write_text(json.dumps(facts))
    assert tracked_runs([tmp_path]) == [TrackedRun("Hopper-v5", "D4PG", 2)]
    assert tracked_runs([tmp_path / "x" / "b"]) == []


@pytest.mark.parametrize("path", ["mujoco", "us/", "/mujoco", "us/mujoco/x"])
def test_a_path_that_is_no_project_is_refused(path):
    with pytest.raises(ReportError, match="ENTITY/PROJECT"):
        build_report(path, RUNS)


def test_no_runs_make_no_report():
    with pytest.raises(ReportError, match="us/mujoco has no runs"):
        build_report("us/mujoco", [])


def test_the_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb_workspaces.reports.v2", None)
    with pytest.raises(ReportError, match=r"pip install 'rllib_impass\[wandb\]'"):
        build_report("us/mujoco", RUNS)
