"""The arithmetic of benchmarks, and that what they read off a machine is real."""

import contextlib
import json
import subprocess
import sys
import threading
import time

import numpy as np
import psutil
import pytest

from rllib_impass import IMPASSConfig
from rllib_impass.experiments.benchmark import throughput
from rllib_impass.experiments.benchmark.measurement import Measurement, Slice, Usage
from rllib_impass.experiments.benchmark.process_usage import Processes, UsageMeter
from rllib_impass.experiments.benchmark.raw_stepping import RawStepping
from rllib_impass.experiments.benchmark.raw_worker import PlainLoop, Pool
from rllib_impass.experiments.benchmark.scaling import AXES, Point, Scaling
from rllib_impass.experiments.benchmark.session import check_seconds
from rllib_impass.experiments.benchmark.throughput import Throughput, ThroughputPlan
from rllib_impass.experiments.errors import UsageError
from toy_envs import CountingEnv


def made_up(name, backend, *trained, seconds=2.0, lag=None):
    slices = (
        Slice(
            seconds=seconds,
            num_sampled=2 * number,
            num_trained=number,
            usage=Usage(runners_s=3.0, driver_s=0.5, learner_s=1.0, peak_memory=number),
            policy_lag=lag,
        )
        for number in trained
    )
    return Measurement(name, backend, tuple(slices))


def raw(name, backend, sampled):
    usage = Usage(runners_s=4.0, driver_s=None, learner_s=None, peak_memory=1)
    return Measurement(name, backend, (Slice(2.0, sampled, None, usage),))


def test_a_measurement_is_totals_over_totals():
    long = made_up("x", "envpool", 3000, seconds=6.0, lag=1.0).slices
    short = made_up("x", "envpool", 2000, seconds=2.0, lag=2.0).slices
    both = Measurement("x", "envpool", long + short)
    assert both.seconds == 8.0
    assert both.trained_per_s == 5000 / 8
    assert both.sampled_per_s == 10_000 / 8
    assert both.cores == {"driver": 1 / 8, "runners": 6 / 8, "learner": 2 / 8}
    assert both.cpu_us_per_step["runners"] == pytest.approx(1e6 * 6 / 10_000)
    assert both.cpu_us_per_step["learner"] == pytest.approx(1e6 * 2 / 5000)
    assert both.peak_memory == 3000
    assert both.policy_lag == 1.5


def test_ratios_are_of_trained_steps_and_to_the_raw_speed_of_the_same_back_end():
    ours = made_up("IMPASS", "envpool", 8000, 8000)
    result = Throughput(
        "Hopper-v5",
        (
            raw("raw EnvPool", "envpool", 20_000),
            raw("raw gymnasium", "gymnasium", 10_000),
            made_up("IMPALA", "gymnasium", 1000, 3000),
            ours,
        ),
    )
    assert result.ratio_to_stock(ours) == 4.0
    assert result.ratio_to_raw(ours) == pytest.approx(0.4)
    assert result.ratio_to_raw(result["IMPALA"]) == pytest.approx(0.2)
    assert result.ratio_to_stock(result["raw EnvPool"]) is None
    written = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert written["contenders"][3]["ratio_to_stock"] == 4.0
    assert written["contenders"][0]["trained_per_s"] is None
    assert len(written["contenders"][3]["slices"]) == 2


def test_a_point_is_compared_with_the_base_beside_it():
    every = made_up("base", "envpool", 1000, 2000)
    slower = Point(
        AXES[0],
        8,
        made_up("8", "envpool", 1000),
        made_up("base", "envpool", 2000),
    )
    scaling = Scaling((Point(AXES[0], 2, every, every), slower))
    base_row, row = scaling.rows()
    assert (base_row["is_base"], base_row["ratio_to_base"]) == (True, 1.0)
    assert (row["is_base"], row["ratio_to_base"]) == (False, 0.5)
    assert row["runners_us_per_step"] == pytest.approx(1e6 * 3 / 2000)
    json.dumps(scaling.to_dict(), allow_nan=False)


class Fake:
    """A contender that notes what happens to it."""

    backend = "gymnasium"
    warm_up_s = 1.0
    num_cpus = 1

    def __init__(self, name, events, fails_in_round=None):
        self.name = name
        self._events = events
        self._rounds_left = fails_in_round

    def start(self):
        self._events.append(f"start {self.name}")

    def measure(self, seconds, on_tick):
        if self._rounds_left == 0:
            raise RuntimeError("no more")
        if self._rounds_left is not None:
            self._rounds_left -= 1
        self._events.append(f"{self.name} {seconds:g}")
        on_tick(self.warm_up_s + seconds)
        return made_up(self.name, self.backend, 10).slices[0]

    def stop(self):
        self._events.append(f"stop {self.name}")


@pytest.fixture
def no_ray(monkeypatch):
    monkeypatch.setattr(
        throughput, "own_ray", lambda *arguments: contextlib.nullcontext()
    )


def test_contenders_are_measured_in_turns_and_stopped(no_ray):
    events, seen = [], []
    fakes = (Fake("a", events), Fake("b", events))
    plan = ThroughputPlan("x", seconds=4.0, rounds=2, contenders=fakes)
    result = plan.run(lambda label, done: seen.append((label, done)))
    turns = ["a 2", "b 2"] * 2
    assert events == ["start a", "start b", *turns, "stop b", "stop a"]
    assert [len(m.slices) for m in result.measurements] == [2, 2]
    shares = [done for _, done in seen]
    assert shares == sorted(shares)
    assert seen[-1] == ("x: round 2 of 2, b", 1.0)


def test_everybody_is_stopped_if_one_fails(no_ray):
    events = []
    fakes = (Fake("a", events), Fake("b", events, fails_in_round=1))
    with pytest.raises(RuntimeError, match="no more"):
        ThroughputPlan("x", seconds=2.0, rounds=2, contenders=fakes).run()
    assert events[-2:] == ["stop b", "stop a"]


@pytest.mark.parametrize(
    ("seconds", "rounds"), [(0.9, 1), (2.0, 3), (1.0, 0), (float("nan"), 1)]
)
def test_slices_that_hold_nothing_are_refused(seconds, rounds):
    with pytest.raises(UsageError, match="at least"):
        check_seconds(seconds, rounds)


@pytest.fixture
def busy_process():
    code = "print(flush=True)\nwhile True: pass"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    # A process that is still starting has neither used time nor memory.
    process.stdout.readline()
    yield process
    process.kill()
    process.communicate()


def test_the_cpu_and_memory_of_a_process_are_read(busy_process):
    started = time.monotonic()
    with UsageMeter(Processes(runners=(busy_process.pid,))) as meter:
        time.sleep(1.0)
    elapsed = time.monotonic() - started
    # Other tests, or other people, may want the core as well.
    assert 0.1 < meter.usage.runners_s < elapsed + 0.1
    assert 1e6 < meter.usage.peak_memory < 1e9
    assert meter.usage.driver_s is meter.usage.learner_s is None


def test_a_learner_thread_is_told_apart_from_its_process():
    this = psutil.Process().pid
    is_over = threading.Event()

    def work():
        while not is_over.is_set():
            sum(range(1000))

    thread = threading.Thread(target=work, name="a-learner")
    thread.start()
    processes = Processes(runners=(), driver=this, learners=(this,))
    with UsageMeter(processes, learner_thread="a-learner") as meter:
        time.sleep(1.0)
    is_over.set()
    thread.join()
    assert meter.usage.learner_s > 0.1
    assert meter.usage.driver_s < 0.5 * meter.usage.learner_s


def test_a_process_that_ends_meanwhile_does_no_harm(busy_process):
    with UsageMeter(Processes(runners=(busy_process.pid,))) as meter:
        busy_process.kill()
        busy_process.wait()
    assert meter.usage.runners_s == 0.0


class ThreeStepEpisodes:
    """A vector env whose every fourth step is a reset, as NEXT_STEP has it."""

    num_calls = 0

    def step(self, actions):
        assert actions.shape == (5, 3)
        assert np.abs(actions).max() <= 1.0
        self.num_calls += 1
        is_over = np.full(5, self.num_calls % 4 == 3)
        return None, None, is_over, np.zeros_like(is_over), {}


def test_resets_of_envpool_are_no_steps():
    pytest.importorskip("envpool")
    pool = Pool("Hopper-v5", num_envs=5, num_threads=1, seed=0)
    pool._pool = env = ThreeStepEpisodes()
    num_steps, elapsed = pool.step_for(0.02)
    assert elapsed >= 0.02
    assert num_steps == 5 * (env.num_calls - env.num_calls // 4)


def test_resets_of_gymnasium_are_no_steps():
    envs = []

    def make():
        # Every episode is one step long.
        envs.append(CountingEnv(longest=1))
        return envs[-1]

    num_steps, elapsed = PlainLoop(make, num_envs=2, seed=0).step_for(0.02)
    assert elapsed >= 0.02
    assert num_steps == sum(env.episode for env in envs)


@pytest.mark.parametrize("env", ["Hopper-v5", "HopperPositions-v0"])
@pytest.mark.parametrize("backend", ["gymnasium", "envpool"])
def test_environments_are_stepped_for_real(backend, env):
    if backend == "envpool":
        pytest.importorskip("envpool")
    stepping = RawStepping("raw", backend, IMPASSConfig().environment(env))
    try:
        stepping.start()
        slice_ = stepping.measure(0.3, lambda seconds: None)
        workers = [psutil.Process(w.pid) for w in stepping._workers]
    finally:
        stepping.stop()
    assert slice_.num_sampled > 100
    assert 0.3 <= slice_.seconds < 5.0
    assert slice_.usage.runners_s > 0.05
    assert workers
    assert not any(worker.is_running() for worker in workers)


def test_a_worker_says_what_is_wrong_with_its_env():
    config = IMPASSConfig().environment("Gone-v0")
    stepping = RawStepping("raw gymnasium", "gymnasium", config)
    try:
        with pytest.raises(RuntimeError, match=r"raw gymnasium: .*Gone"):
            stepping.start()
    finally:
        stepping.stop()
