"""`rllib benchmark`, as a user starts it."""

import json
import os
import time
import uuid

import psutil
import pytest
from rllib_command import assert_usage_error, rllib_many

# The first test waits for all commands.
pytestmark = pytest.mark.timeout(600)

BAD = [
    (["throughput", "--env", "Hoper-v5"], "did you mean 'Hopper-v5'"),
    (["throughput", "--env", "Hopper-v5,Hoper-v5"], "did you mean 'Hopper-v5'"),
    (["throughput", "--env", "CartPole-v1"], "only continuous (Box) actions"),
    (["throughput", "--env", "Hopper-v5,"], "--env 'Hopper-v5,'"),
    (["throughput", "--env", "evil.Env"], "--import evil"),
    (["throughput", "--seconds", "0.5"], "seconds must be at least 3 for 3 rounds"),
    (["throughput", "--rounds", "0"], "rounds must be at least 1"),
    (["throughput", "--json", "."], "--json . is a folder"),
    (["throughput", "--json", "file/t.json"], "is no folder"),
    (["replay", "--env", "CartPole-v1"], "only continuous (Box) actions"),
    (["replay", "--env", "evil.Env"], "--import evil"),
    (["replay", "--rounds", "61"], "seconds must be at least 61 for 61 rounds"),
    (["replay", "--json", "."], "--json . is a folder"),
    (["scaling", "--only", "stack,runner"], "did you mean 'runners'"),
    (["scaling", "--only", "everything"], "there are runners, envs, stack"),
    (["scaling", "--seconds", "0"], "seconds must be at least 1"),
    (["scaling", "--plot", "scaling.gif"], "must end in .png or .svg"),
    (["scaling", "--plot", "file/scaling.png"], "is no folder"),
]
GOOD = [
    ["replay", "--seconds", 1, "--rounds", 1, "--json", "r.json"],
    ["throughput", "--seconds", 1, "--rounds", 1, "--json", "new/t.json"],
    ["scaling", "--only", "width", "--seconds", 1, "--plot", "s.png", "--json", "s.js"],
]
ROWS = ("raw EnvPool", "raw gymnasium", "IMPALA", "IMPASS", "IMPASS, gymnasium")
MARK = "RLLIB_IMPASS_TEST"


def marked_processes(mark):
    """All descendants of what was started with this mark, orphans too."""
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark:
                yield process
        except psutil.Error:
            continue


@pytest.fixture(scope="module")
def commands(tmp_path_factory):
    """What every command said, the folder, and the mark of its processes."""
    pytest.importorskip("envpool")
    folder = tmp_path_factory.mktemp("benchmark")
    (folder / "evil.py").write_text("open('proof', 'w').close()\nclass Env: ...\n")
    (folder / "file").write_text("")
    words = [["benchmark", *words] for words in (*(w for w, _ in BAD), *GOOD)]
    mark = os.environ[MARK] = uuid.uuid4().hex
    try:
        return rllib_many(words, cwd=folder), folder, mark
    finally:
        del os.environ[MARK]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_bad_input_is_one_line_and_exit_code_2(commands, number):
    assert_usage_error(commands[0][number], BAD[number][1])


def test_nothing_is_written_that_was_not_asked_for(commands):
    _, folder, _ = commands
    names = {path.name for path in folder.iterdir()}
    assert names == {"evil.py", "file", "new", "r.json", "s.png", "s.js"}


def test_the_table_of_throughput_has_what_the_file_has(commands):
    results, folder, _ = commands
    done = results[-2]
    assert done.returncode == 0, done.stderr
    print(done.stdout, done.stderr)
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    figures = json.loads((folder / "new" / "t.json").read_text())
    assert figures["versions"]["ray"]
    (result,) = figures["results"]
    contenders = {c["name"]: c for c in result["contenders"]}
    assert tuple(contenders) == ROWS
    for name, contender in contenders.items():
        (row,) = (line for line in lines if line.startswith(f"{name} "))
        cells = row[len(name) :].split()
        assert len(cells) == 9, row
        assert cells[0] == f"{contender['sampled_per_s']:,.0f}"
        (slice_,) = contender["slices"]
        rate = slice_["num_sampled"] / slice_["seconds"]
        assert contender["sampled_per_s"] == pytest.approx(rate)
        assert slice_["seconds"] >= 1.0
        assert contender["peak_memory"] > 10e6
    assert done.stderr.splitlines()[-1] == "Hopper-v5: round 1 of 1, IMPASS, gymnasium"


def test_impass_trains_twice_as_fast_as_stock_impala(commands):
    _, folder, _ = commands
    figures = json.loads((folder / "new" / "t.json").read_text())
    contenders = {c["name"]: c for c in figures["results"][0]["contenders"]}
    impala, impass = contenders["IMPALA"], contenders["IMPASS"]
    assert impass["ratio_to_stock"] >= 2.0
    assert impass["trained_per_s"] >= 2.0 * impala["trained_per_s"]
    for role in ("driver", "runners", "learner"):
        assert impala["cores"][role] > 0
    # The thread's name is the algorithm's; found, it is told apart from the driver.
    assert impass["cores"]["learner"] > 0.01
    assert impass["policy_lag"] is not None


def test_d4pg_samples_faster_than_sac_at_the_same_updates_per_step(commands):
    results, folder, _ = commands
    done = results[-3]
    assert done.returncode == 0, done.stderr
    print(done.stdout, done.stderr)
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    figures = json.loads((folder / "r.json").read_text())
    sac, d4pg = figures["results"][0]["contenders"]
    for contender in (sac, d4pg):
        (row,) = (line for line in lines if line.startswith(f"{contender['name']} "))
        cells = row.split()[1:]
        assert len(cells) == 10, row
        assert cells[0] == f"{contender['sampled_per_s']:,.0f}"
        assert cells[3] == f"{contender['updates_per_env_step']:.3f}"
        # Both count in lumps, of which a second holds few.
        assert 0.06 < contender["updates_per_env_step"] < 0.25
    assert d4pg["ratio_to_stock"] > 1.0
    assert 0.0 <= d4pg["learner_busy"] <= 1.0
    assert f"{d4pg['learner_busy']:.0%}" in done.stdout
    # RLlib's SAC learns in its driver, beside no thread.
    assert sac["cores"]["learner"] is None
    assert sac["cores"]["driver"] > 0.01
    assert d4pg["cores"]["learner"] > 0.01
    assert d4pg["policy_lag"] is not None
    beginnings = done.stderr.splitlines()
    assert beginnings == [
        f"Hopper-v5: {label}"
        for label in (
            "starting SAC",
            "starting D4PG",
            "SAC samples until it learns",
            "D4PG samples until it learns",
            "round 1 of 1, SAC",
            "round 1 of 1, D4PG",
        )
    ]


def test_scaling_compares_with_the_shipped_settings(commands):
    results, folder, _ = commands
    done = results[-1]
    assert done.returncode == 0, done.stderr
    print(done.stdout, done.stderr)
    assert max(map(len, done.stdout.splitlines())) <= 80
    figures = json.loads((folder / "s.js").read_text())
    shipped, wide = figures["points"]
    assert (shipped["value"], shipped["is_base"]) == (64, True)
    assert (wide["value"], wide["is_base"]) == (256, False)
    assert wide["trained_per_s"] > 0
    assert f"{wide['trained_per_s']:,.0f}" in done.stdout
    beside = wide["base"]["trained_per_s"]
    assert wide["ratio_to_base"] == pytest.approx(wide["trained_per_s"] / beside)
    assert (folder / "s.png").stat().st_size > 10_000


def test_no_process_is_left_behind(commands):
    for _ in range(50):
        left = list(marked_processes(commands[2]))
        if not left:
            return
        time.sleep(0.2)
    raise AssertionError([process.cmdline() for process in left])
