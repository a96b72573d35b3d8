"""What `rllib train` shows of a run, driven by real results and real Tune runs."""

import io
import pickle
import re

import pytest
from ray import tune
from ray.rllib.algorithms.ppo import PPOConfig
from ray.tune.experiment import Trial
from rich.console import Console

from configs import serial_config
from rllib_impass.cli.progress import (
    STARTING,
    Lines,
    LiveTable,
    Progress,
    ProgressMode,
    Quiet,
    make_display,
    show_progress,
)
from toy_trials import counting_tuner, idle_trials

STEPS = "num_env_steps_sampled_lifetime"
NAMES = ["iter", "time", "env", "steps", "steps/s", "return", "length", "lag", "eval"]


def terminal(width=80, height=24):
    return Console(file=io.StringIO(), width=width, height=height, force_terminal=True)


def plain(width=80):
    return Console(file=io.StringIO(), width=width)


def screen(text):
    """What a terminal shows after rich's output, scrolled lines included."""
    lines, row = [""], 0
    for token in re.findall(r"\x1b\[[?\d;]*[A-Za-z]|\r|\n|[^\x1b\r\n]+", text):
        if token == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif token == "\x1b[1A":
            row -= 1
        elif token == "\x1b[2K":
            lines[row] = ""
        elif token[0] not in "\x1b\r":
            lines[row] += token
    return [line for line in lines if line.strip()]


class UnreadableResult(dict):
    def items(self):
        raise KeyError("no result of Tune")


def shown(console, stop, trials, results, mode=ProgressMode.NORMAL):
    """What is on the console after each of ``trials`` sent all ``results``."""
    with show_progress(mode, console):
        progress = Progress(stop)
        progress.setup(total_num_samples=len(trials))
        for trial in trials:
            trial.set_status(Trial.RUNNING)
        for result in results:
            for trial in trials:
                progress.on_trial_result(
                    iteration=0, trials=trials, trial=trial, result=result
                )
        progress.on_step_end(iteration=0, trials=trials)
    return screen(console.file.getvalue())


@pytest.fixture(scope="module")
def impass_results(ray_session):
    algorithm = serial_config().evaluation(evaluation_interval=2).build_algo()
    yield [algorithm.train() for _ in range(6)]
    algorithm.stop()


@pytest.fixture(scope="module")
def ppo_results(ray_session):
    config = PPOConfig().environment("InvertedPendulum-v5")
    config.env_runners(num_env_runners=0).training(
        train_batch_size_per_learner=128, minibatch_size=64, num_epochs=1
    )
    algorithm = config.build_algo()
    yield [algorithm.train() for _ in range(2)]
    algorithm.stop()


@pytest.mark.parametrize("make_console", [terminal, plain])
def test_a_result_fills_every_column_within_80(impass_results, make_console):
    lines = shown(
        make_console(), {"training_iteration": 8}, idle_trials({}), impass_results
    )
    header, row = lines[0], lines[6]
    assert header.split() == NAMES
    assert max(map(len, lines)) <= 80
    cells = row.split()
    assert len(cells) == 8
    assert cells[0] == "6"
    assert cells[2] == f"{impass_results[5][STEPS]:,.0f}"
    assert "-" not in cells


def test_an_algorithm_of_rllib_has_no_lag(ppo_results):
    lines = shown(plain(), {STEPS: 1000}, idle_trials({}), ppo_results)
    assert [row.split()[6:] for row in lines[1:]] == [["-", "-"]] * 2


def test_one_trial_keeps_its_last_ten_results_and_the_summary(impass_results):
    lines = shown(
        terminal(), {"training_iteration": 8}, idle_trials({}), impass_results * 2
    )
    assert [row.split()[0] for row in lines[1:11]] == list("3456123456")
    assert re.fullmatch(
        r"75% of 8 iterations, elapsed \d:\d\d(, about \d:\d\d left)?", lines[11]
    )
    assert len(lines) == 12


@pytest.mark.parametrize("make_console", [terminal, plain])
def test_several_trials_are_told_apart_within_80(impass_results, make_console):
    two = idle_trials({"lr": 0.001}, {"training/num_epochs": 12})
    lines = shown(make_console(), {STEPS: 1e6}, two, impass_results[:1])
    assert lines[0].split()[0] == "trial"
    assert lines[1].startswith("lr=0.001 ")
    assert lines[2].split()[0].endswith("pochs=12")
    assert max(map(len, lines)) <= 80


def test_without_parameters_the_end_of_the_id_is_shown(impass_results):
    lines = shown(terminal(), {STEPS: 1e6}, idle_trials({}, {}), impass_results[:1])
    assert [line.split()[0][-5:] for line in lines[1:3]] == ["00000", "00001"]


def test_statuses_of_several_trials(impass_results):
    console, four = terminal(), idle_trials({}, {}, {}, {})
    statuses = (Trial.PENDING, Trial.RUNNING, Trial.TERMINATED, Trial.ERROR)
    with show_progress(ProgressMode.NORMAL, console):
        progress = Progress({"training_iteration": 2})
        progress.setup(total_num_samples=4)
        for trial, status in zip(four, statuses, strict=True):
            trial.set_status(status)
        progress.on_trial_result(
            iteration=0, trials=four, trial=four[1], result=impass_results[0]
        )
        lines = screen(console.file.getvalue())
    words = [line.split()[1] for line in lines[1:5]]
    assert words == ["pending", "running", "done", "failed"]
    # Two are over, one is half way, one has not begun.
    assert lines[5].startswith("62% of 2 iterations, 2 of 4 trials done, ")


@pytest.mark.parametrize("width", [100, 80, 60, 40, 20, 8])
def test_a_narrow_terminal_drops_columns_and_never_wraps(impass_results, width):
    two = idle_trials({"lr": 0.001}, {"lr": 0.01})
    lines = shown(terminal(width), {STEPS: 1e6}, two, impass_results)
    assert max(map(len, lines)) <= width
    assert len(lines) == 4
    assert ("return" in lines[0]) == (width >= 20)
    assert ("lag" in lines[0]) == (width >= 80)


def test_a_low_terminal_shows_the_trials_at_work(impass_results):
    console, many = terminal(height=8), idle_trials(*({"seed": i} for i in range(10)))
    with show_progress(ProgressMode.NORMAL, console):
        progress = Progress({STEPS: 1e6})
        progress.setup(total_num_samples=10)
        many[9].set_status(Trial.RUNNING)
        progress.on_trial_result(
            iteration=0, trials=many, trial=many[9], result=impass_results[0]
        )
    lines = screen(console.file.getvalue())
    assert len(lines) == 7
    assert [line.split()[0] for line in lines[1:5]] == [
        "seed=0",
        "seed=1",
        "seed=2",
        "seed=9",
    ]
    assert lines[5] == "and 6 more"


def test_the_table_is_there_before_the_first_result():
    lines = shown(terminal(), {STEPS: 1e6}, idle_trials({}), [])
    assert lines[0].split() == NAMES
    assert lines[1] == STARTING
    assert lines[2].startswith("0% of 1,000,000 env steps, elapsed 0:00")


def test_the_screen_is_never_cleared_and_the_cursor_comes_back(impass_results):
    console, one = terminal(), idle_trials({})
    with pytest.raises(KeyError, match="no result of Tune"):
        shown(console, {STEPS: 1e6}, one, [*impass_results, UnreadableResult()])
    text = console.file.getvalue()
    assert "\x1b[2J" not in text
    assert "\x1b[H" not in text
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")


def test_the_table_is_renewed_by_news_only(impass_results):
    console, one = terminal(), idle_trials({})
    with show_progress(ProgressMode.NORMAL, console):
        progress = Progress({STEPS: 1e6})
        progress.setup(total_num_samples=1)
        progress.on_step_end(iteration=0, trials=one)
        before = len(console.file.getvalue())
        for _ in range(20):
            progress.on_step_end(iteration=0, trials=one)
        assert len(console.file.getvalue()) == before
        progress.on_trial_result(
            iteration=0, trials=one, trial=one[0], result=impass_results[0]
        )
        assert len(console.file.getvalue()) > before


@pytest.mark.parametrize(
    ("mode", "console", "display"),
    [
        (ProgressMode.NORMAL, terminal(), LiveTable),
        (ProgressMode.NORMAL, plain(), Lines),
        (ProgressMode.VERBOSE, terminal(), Lines),
        (ProgressMode.QUIET, terminal(), Quiet),
        (ProgressMode.QUIET, plain(), Quiet),
    ],
)
def test_mode_and_console_choose_the_display(mode, console, display):
    assert type(make_display(mode, console)) is display


def test_quiet_shows_nothing(impass_results):
    stop = {"nonsense": 1}
    assert not shown(plain(), stop, idle_trials({}), impass_results, ProgressMode.QUIET)


@pytest.mark.parametrize("make_console", [terminal, plain])
def test_a_stop_criterion_in_no_result_is_named_once(impass_results, make_console):
    stop = {"nonsense/key": 1, "evaluation/nonsense": 1, STEPS: 1e6}
    lines = shown(make_console(), stop, idle_trials({}, {}), impass_results)
    assert [line for line in lines if line.startswith("stop: ")] == [
        "stop: evaluation/nonsense is in no result so far",
        "stop: nonsense/key is in no result so far",
    ]


def test_before_an_evaluation_its_stop_criterion_is_not_missed(ppo_results):
    stop = {"evaluation/env_runners/episode_return_mean": 1}
    lines = shown(plain(), stop, idle_trials({}), ppo_results * 4)
    assert not [line for line in lines if line.startswith("stop: ")]


def test_the_callback_survives_tunes_pickle(impass_results):
    console = terminal()
    with show_progress(ProgressMode.NORMAL, console):
        progress = Progress({STEPS: 1e6})
        progress.setup(total_num_samples=1)
        again = pickle.loads(pickle.dumps(progress))
        again.setup(total_num_samples=1)
    assert "of 1,000,000 env steps" in screen(console.file.getvalue())[-1]


def test_a_failed_trial_says_why(tmp_path, ray_session, monkeypatch, caplog):
    monkeypatch.setenv("RAY_AIR_NEW_OUTPUT", "0")
    console = terminal()
    tuner = counting_tuner(
        tmp_path,
        {"count": 3},
        [Progress({"training_iteration": 3})],
        fails_at=tune.grid_search([2, 4]),
    )
    with show_progress(ProgressMode.NORMAL, console):
        tuner.fit()
    lines = screen(console.file.getvalue())
    assert lines[0] == "failed: fails_at=2: ValueError: no more numbers"
    assert [line.split()[:3] for line in lines[2:4]] == [
        ["…ils_at=2", "failed", "1"],
        ["…ils_at=4", "done", "3"],
    ]
    assert lines[4].startswith("100% of 3 iterations, 2 of 2 trials done, ")
    # Tune's own report would go right through the table.
    assert "Traceback" not in caplog.text
