"""What the replay benchmark compares is alike, and its arithmetic right."""

import contextlib
import json

import pytest
from ray.rllib.algorithms.dqn.dqn import calculate_rr_weights

from rllib_impass.experiments.benchmark import replay
from rllib_impass.experiments.benchmark.measured_algorithm import Reading
from rllib_impass.experiments.benchmark.measurement import Measurement, Slice, Usage
from rllib_impass.experiments.benchmark.replay import (
    FILL_S,
    Replay,
    ReplayPlan,
    plan_replay,
)

USAGE = Usage(runners_s=1.0, driver_s=0.5, learner_s=None, peak_memory=1)


def made_up(name, *slices):
    return Measurement(
        name,
        "gymnasium",
        tuple(
            Slice(
                seconds=10.0,
                num_sampled=num_sampled,
                num_trained=num_sampled,
                usage=USAGE,
                num_updates=num_updates,
                learner_wait_s=wait_s,
            )
            for num_sampled, num_updates, wait_s in slices
        ),
    )


def test_updates_and_the_learners_wait_are_totals_over_totals():
    ours = made_up("D4PG", (800, 100, 1.0), (1600, 200, 3.0))
    assert ours.updates_per_s == 300 / 20
    assert ours.updates_per_env_step == pytest.approx(1 / 8)
    assert ours.learner_busy == pytest.approx(0.8)


def test_what_one_slice_does_not_count_is_not_guessed():
    ours = made_up("D4PG", (800, 100, 1.0), (1600, None, None))
    assert ours.updates_per_s is ours.updates_per_env_step is ours.learner_busy is None


def test_ratios_are_of_sampled_steps():
    stock, ours = made_up("SAC", (200, 25, None)), made_up("D4PG", (800, 100, 1.0))
    result = Replay("Hopper-v5", (stock, ours))
    assert result.ratio_to_stock(ours) == 4.0
    written = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert [c["ratio_to_stock"] for c in written["contenders"]] == [1.0, 4.0]
    assert [c["learner_busy"] for c in written["contenders"]] == [None, 0.9]


def result_of(**learner):
    return {
        "env_runners": {"num_env_steps_sampled_lifetime": 7.0},
        "learners": {"__all_modules__": learner},
    }


def test_a_counter_that_is_missing_from_a_result_has_not_moved():
    counted = {"num_updates_lifetime": 5, "queue_get_wait_s": 2.5}
    before = Reading.of(result_of(**counted), None)
    assert (before.num_updates, before.learner_wait_s) == (5, 2.5)
    # RLlib shows NaN where nothing was logged since the last result.
    after = Reading.of(result_of(num_updates_lifetime=float("nan")), before)
    assert (after.num_updates, after.learner_wait_s) == (5, 2.5)
    assert Reading.of(result_of(), None).num_updates is None


@pytest.fixture
def contenders(monkeypatch):
    # The tests have a Ray; a plan starts none.
    monkeypatch.setattr(replay, "refuse_other_ray", lambda: None)
    plan = plan_replay("Hopper-v5", seconds=10.0, rounds=1)
    return {contender.name: contender for contender in plan.contenders}


def test_sac_makes_as_many_updates_per_env_step(contenders):
    sac, d4pg = contenders["SAC"].config, contenders["D4PG"].config
    num_rollouts, num_updates = calculate_rr_weights(sac)
    steps = (
        num_rollouts
        * sac.get_rollout_fragment_length()
        * sac.num_envs_per_env_runner
        * sac.num_env_runners
    )
    assert num_updates / steps == d4pg.updates_per_env_step


def test_both_have_the_same_batch_runners_buffer_and_layers(contenders):
    sac, d4pg = contenders["SAC"].config, contenders["D4PG"].config
    for name in (
        "num_env_runners",
        "num_envs_per_env_runner",
        "train_batch_size_per_learner",
        "num_steps_sampled_before_learning_starts",
        "num_cpus_for_main_process",
    ):
        assert getattr(sac, name) == getattr(d4pg, name), name
    assert sac.replay_buffer_config["capacity"] == d4pg.replay_capacity
    layers = sac.model_config["fcnet_hiddens"]
    assert layers == d4pg.model_config["critic_hiddens"]
    assert layers == d4pg.model_config["actor_hiddens"]


def test_d4pg_is_as_shipped_but_for_an_early_start(contenders):
    d4pg = contenders["D4PG"].config
    shipped = type(d4pg)().environment("Hopper-v5").to_dict()
    changed = {k for k, v in d4pg.to_dict().items() if v != shipped.get(k)}
    assert "num_steps_sampled_before_learning_starts" in changed
    # The others say how results are reported and failures met.
    assert changed <= {
        "num_steps_sampled_before_learning_starts",
        "seed",
        "min_time_s_per_iteration",
        "restart_failed_env_runners",
        "log_level",
    }


class Fake:
    """A contender that notes what happens to it."""

    backend = "gymnasium"
    warm_up_s = 1.0
    num_cpus = 1

    def __init__(self, name, events):
        self.name = name
        self._events = events

    def start(self):
        self._events.append(f"start {self.name}")

    def fill_replay(self, on_share):
        self._events.append(f"fill {self.name}")
        on_share(0.75)
        on_share(0.25)

    def measure(self, seconds, on_tick):
        self._events.append(f"{self.name} {seconds:g}")
        on_tick(self.warm_up_s + seconds)
        return made_up(self.name, (100, 10, None)).slices[0]

    def stop(self):
        self._events.append(f"stop {self.name}")


def test_nothing_is_measured_before_both_buffers_are_filled(monkeypatch):
    monkeypatch.setattr(replay, "own_ray", lambda *_: contextlib.nullcontext())
    events, seen = [], []
    fakes = (Fake("SAC", events), Fake("D4PG", events))
    plan = ReplayPlan("x", seconds=4.0, rounds=2, contenders=fakes)
    plan.run(lambda label, done: seen.append((label, done)))
    begun = ["start SAC", "start D4PG", "fill SAC", "fill D4PG"]
    turns = ["SAC 2", "D4PG 2"] * 2
    assert events == [*begun, *turns, "stop D4PG", "stop SAC"]
    shares = [done for _, done in seen]
    assert shares == sorted(shares)
    filled = ("x: SAC samples until it learns", FILL_S / (2 * FILL_S + 12.0))
    assert filled in seen
    assert seen[-1] == ("x: round 2 of 2, D4PG", 1.0)
