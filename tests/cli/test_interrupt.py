"""Ctrl-C and worse: what is saved, and that the run goes on from there."""

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from ray import tune
from rich.console import Console

import rllib_impass  # noqa: F401  (registers the algorithms with Tune)
from rllib_impass.cli.interrupt import (
    AT_ONCE_MESSAGE,
    FIRST_MESSAGE,
    SIGNALS,
    CheckpointOnInterrupt,
    checkpoint_on_interrupt,
)
from toy_trials import Counting, counting_tuner

RLLIB = Path(sys.executable).with_name("rllib")
LAST = 6

SMALL = f"""
small:
  run: IMPASS
  env: InvertedPendulum-v5
  stop: {{training_iteration: {LAST}}}
  config:
    num_env_runners: 0
    num_envs_per_env_runner: 4
    rollout_fragment_length: 8
    train_batch_size_per_learner: 64
    minibatch_size: 16
    min_time_s_per_iteration: 1
"""


class Signals(tune.Callback):
    """Sends signals to this process, the first once all trials have two results."""

    def __init__(self, *signals):
        self._signals = list(signals)
        self._counts = {}

    def __reduce__(self):
        # The restored run, whose callbacks come from a pickle, is left in peace.
        return type(self), ()

    def on_trial_result(self, iteration, trials, trial, result, **info):
        self._counts[trial.trial_id] = result["count"]
        if self._signals and all(self._counts.get(t.trial_id, 0) >= 2 for t in trials):
            signal.raise_signal(self._signals.pop(0))


class SignalBeforeAnyTrial(tune.Callback):
    def setup(self, **info):
        signal.raise_signal(signal.SIGINT)


def results(folder):
    """The results of each trial under a folder."""
    return [
        [json.loads(line) for line in file.read_text().splitlines()]
        for file in sorted(Path(folder).rglob("result.json"))
    ]


def counts(folder):
    return [[result["count"] for result in trial] for trial in results(folder)]


def fit(tuner):
    """Runs a Tuner to its end; returns what was asked for and printed meanwhile."""
    console = Console(file=io.StringIO(), width=80)
    with checkpoint_on_interrupt(console) as interrupt:
        tuner.fit()
    return interrupt.interrupted, console.file.getvalue()


def restored(folder, trainable):
    return tune.Tuner.restore(str(folder), trainable, resume_unfinished=True)


def test_the_command_stops_with_a_checkpoint_and_goes_on_from_it(tmp_path, ray_session):
    (tmp_path / "small.yaml").write_text(SMALL)
    storage = tmp_path / "results"
    command = [RLLIB, "train", "file", tmp_path / "small.yaml"]
    process = subprocess.Popen(
        [*map(str, command), "--storage-path", str(storage)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        for line in process.stdout:
            if line.split()[:1] == ["2"]:
                break
        # To the whole group, as a terminal does: Ray's workers get it too.
        os.killpg(process.pid, signal.SIGINT)
        rest = process.stdout.read()
        assert process.wait(timeout=30) == 130, rest
    finally:
        process.kill()
    assert FIRST_MESSAGE in rest
    assert "Traceback" not in rest
    assert "Tuner.restore" not in rest
    (before,) = results(storage)
    assert 2 < len(before) < LAST
    assert len(list(storage.rglob("checkpoint_*"))) == 1
    restored(storage / "small", "IMPASS").fit()
    (after,) = results(storage)
    assert [r["training_iteration"] for r in after] == list(range(1, LAST + 1))
    for key in ("num_env_steps_sampled_lifetime", "time_total_s"):
        values = [result[key] for result in after]
        assert values == sorted(set(values))


def test_every_running_trial_saves_and_goes_on(tmp_path, ray_session):
    callbacks = [Signals(signal.SIGTERM), CheckpointOnInterrupt()]
    tuner = counting_tuner(tmp_path, {"count": 20}, callbacks, num_samples=2)
    interrupted, printed = fit(tuner)
    assert interrupted
    assert printed.strip() == FIRST_MESSAGE
    stopped = counts(tmp_path)
    assert len(stopped) == 2
    assert all(2 < trial[-1] < 20 for trial in stopped)
    interrupted, _ = fit(restored(tmp_path / "counting", Counting))
    assert not interrupted
    assert counts(tmp_path) == [list(range(1, 21))] * 2


def test_the_second_signal_does_not_wait_for_a_checkpoint(tmp_path, ray_session):
    callbacks = [Signals(signal.SIGINT, signal.SIGINT), CheckpointOnInterrupt()]
    interrupted, printed = fit(counting_tuner(tmp_path, {"count": 50}, callbacks))
    assert interrupted
    assert AT_ONCE_MESSAGE in printed
    assert counts(tmp_path) == [[1, 2, 3]]


def test_without_a_running_trial_nothing_is_awaited(tmp_path, ray_session):
    callbacks = [SignalBeforeAnyTrial(), CheckpointOnInterrupt()]
    interrupted, printed = fit(counting_tuner(tmp_path, {"count": 50}, callbacks))
    assert interrupted
    assert printed.strip() == AT_ONCE_MESSAGE
    assert counts(tmp_path) == []


def test_what_was_there_before_is_there_afterwards(tmp_path, ray_session):
    signals = (*SIGNALS, signal.SIGUSR1)
    before = [signal.getsignal(s) for s in signals], dict(os.environ)
    fit(counting_tuner(tmp_path, {"count": 1}, [CheckpointOnInterrupt()]))
    assert ([signal.getsignal(s) for s in signals], dict(os.environ)) == before
