"""What is compared, and that nothing else differs."""

import json
import time

import pytest
from ray import tune

from rllib_impass.experiments.actor_sweep import (
    actor_study,
    recommend,
    write_recommendation,
)
from rllib_impass.experiments.comparison import comparison, comparison_study
from rllib_impass.experiments.errors import UsageError
from rllib_impass.experiments.examples import list_examples, tuned_example
from rllib_impass.experiments.spec import load_experiments
from rllib_impass.experiments.study import Budget, is_same_study, write_study
from rllib_impass.experiments.study_trial import (
    TIME_TRAINING,
    StudyTrial,
    build_config,
)

SMALL = {"seeds": [3, 4], "budget_steps": 1000}


def trials_of(study):
    return study.param_space()["trial"]["grid_search"]


@pytest.fixture(scope="module")
def study():
    return comparison_study(["Hopper-v5", "Pendulum-v1"], ["IMPASS", "PPO"], **SMALL)


def test_every_contender_meets_every_task_with_every_seed(study):
    seen = [(t["seed"], t["env"], t["label"]) for t in trials_of(study)]
    # Seed by seed, so that what is there after an hour can be compared.
    assert seen == [
        (seed, env, label)
        for seed in (3, 4)
        for env in ("Hopper-v5", "Pendulum-v1")
        for label in ("IMPASS", "PPO")
    ]


def test_settings_are_those_of_the_tuned_file_and_nothing_else(study):
    (tuned,) = load_experiments(tuned_example("IMPASS", "Hopper-v5").path)
    hopper, ppo, pendulum, _ = trials_of(study)[:4]
    assert hopper["config"] == tuned.config
    assert pendulum["config"] == ppo["config"] == {}
    assert [c.origin for c in study.contenders] == [
        "hopper_impass.yaml",
        *["defaults"] * 3,
    ]


def test_a_trial_is_built_with_its_seed_its_task_and_the_studys_evaluations(study):
    params = study.param_space() | {"trial": trials_of(study)[-1]}
    config = build_config(params | {"settings": {"lr": 0.5}})
    assert (config.seed, config.env, config.lr) == (4, "Pendulum-v1", 0.5)
    assert config.evaluation_duration == 10


@pytest.mark.parametrize("number", range(4))
def test_every_contender_is_evaluated_alike(study, number):
    params = study.param_space() | {"trial": trials_of(study)[number]}
    evaluation = build_config(params).get_evaluation_config_object()
    assert evaluation.explore is False
    assert evaluation.num_envs_per_env_runner == 1


class SlowToEvaluate:
    """An algorithm that trains at once and takes its time to evaluate."""

    def train(self):
        return {"config": {}}

    def evaluate(self):
        time.sleep(0.3)
        return {}


def test_the_clock_stands_still_while_a_trial_is_evaluated():
    trial = object.__new__(StudyTrial)
    trial.config = {
        "trial": {"label": "x", "config": {}},
        "budget": {"key": TIME_TRAINING, "amount": 1e-9},
        "evaluation": {"times": 1},
    }
    trial._algorithm, trial._seconds, trial._num_evaluations = SlowToEvaluate(), 0.0, 0
    results = [trial.step(), trial.step()]
    assert ["evaluation" in result for result in results] == [True, False]
    assert 0.0 < results[1][TIME_TRAINING] < 0.3
    assert results[1]["trial"] == {"label": "x"}


def test_overrides_win_over_the_file_and_say_how_many_actors_there_are():
    overrides = {"num_env_runners": 5, "num_stacked_states": 2}
    study = comparison_study(["Hopper-v5"], ["IMPASS"], overrides=overrides, **SMALL)
    (first, _) = trials_of(study)
    assert (first["num_env_runners"], first["num_stacked_states"]) == (5, 2)
    assert first["config"]["num_env_runners"] == 5


def test_experiments_of_a_file_take_part_under_their_own_names(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(
        "one: {run: IMPASS, env: Hopper-v5, stop: {training_iteration: 1}}\n"
        "two: {run: D4PG, env: Hopper-v5, stop: {training_iteration: 1},"
        " config: {v_max: 7}}\n"
    )
    study = comparison_study(["Pendulum-v1"], [str(file), "IMPALANoSS"], **SMALL)
    labels = [(t["label"], t["env"]) for t in trials_of(study)[:3]]
    assert labels == [(n, "Pendulum-v1") for n in ("one", "two", "IMPALANoSS")]
    assert trials_of(study)[1]["config"] == {"v_max": 7}


@pytest.mark.parametrize("example", list_examples(), ids=lambda e: e.id)
def test_the_tuned_file_of_an_algorithm_and_a_task_is_found(example):
    found = tuned_example(example.run, example.env)
    variants = {"quickstart", "sweep", "stacked", "paper", "sigma"}
    is_for_a_task = variants.isdisjoint(example.id.split("_"))
    assert (found.id == example.id) == is_for_a_task
    assert (found.run, found.env) == (example.run, example.env)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"budget_steps": 1, "budget_seconds": 1.0}, "one of the two"),
        ({"budget_steps": None}, "one of the two"),
        ({"budget_steps": 0}, "budget must be above 0"),
        ({"algorithms": ["IMPAS"]}, "did you mean 'IMPASS'"),
        ({"algorithms": ["IMPASS", "IMPASS"]}, "named twice"),
        ({"envs": ["Hoper-v5"]}, "did you mean 'Hopper-v5'"),
        ({"seeds": []}, "at least one seed"),
        ({"num_episodes": 0}, "num_episodes"),
        ({"overrides": {"lrr": 1}}, "lrr"),
        ({"overrides": {"lr": {"grid_search": [1e-3, 1e-4]}}}, "grid_search"),
    ],
)
def test_what_could_not_run_is_refused(arguments, words):
    usual = {"envs": ["Pendulum-v1"], "algorithms": ["IMPASS"], **SMALL}
    with pytest.raises(UsageError, match=words):
        comparison_study(**(usual | arguments))


def test_a_study_is_known_again_and_another_is_not(study, tmp_path):
    assert not is_same_study(tmp_path, study)
    for _ in range(2):
        write_study(tmp_path, study, ["rllib", "compare", "--token=abc"])
    assert is_same_study(tmp_path, study)
    other = comparison_study(["Pendulum-v1"], ["IMPASS", "PPO"], **SMALL)
    assert not is_same_study(tmp_path, other)
    text = (tmp_path / "study.json").read_text()
    assert len(json.loads(text)["starts"]) == 2
    assert "abc" not in text


def test_trials_run_one_at_a_time_if_their_time_is_compared(tmp_path):
    def concurrent(**budget):
        tuner = comparison(
            tmp_path, ["Pendulum-v1"], ["IMPASS"], tune_config=None, **budget
        )
        return tuner._local_tuner._tune_config.max_concurrent_trials

    assert concurrent(budget_seconds=9.0) == 1
    assert concurrent(budget_steps=9) is None


def test_a_comparison_composes_with_a_scheduler_and_a_search_space(tmp_path):
    tuner = comparison(
        tmp_path,
        ["Pendulum-v1"],
        ["IMPASS"],
        search_space={"lr": tune.loguniform(1e-4, 1e-3)},
        tune_config=tune.TuneConfig(
            num_samples=3, scheduler=tune.schedulers.ASHAScheduler()
        ),
        **SMALL,
    )
    local = tuner._local_tuner
    assert local._tune_config.num_samples == 3
    assert isinstance(local._tune_config.scheduler, tune.schedulers.ASHAScheduler)
    assert set(local._param_space["settings"]) == {"lr"}


def test_a_budget_is_steps_or_seconds_of_training():
    assert Budget.of(steps=None, seconds=2.0) == Budget(TIME_TRAINING, 2.0)
    assert not Budget.of(steps=5, seconds=None).is_time


def test_an_actor_study_varies_the_number_of_actors_alone():
    study = actor_study("IMPASS", "Hopper-v5", [4, 1], **SMALL)
    one, four = trials_of(study)[:2]
    assert (one["label"], four["label"]) == ("IMPASS, 1 actor", "IMPASS, 4 actors")
    assert (one["num_env_runners"], four["num_env_runners"]) == (1, 4)
    one["config"].pop("num_env_runners")
    four["config"].pop("num_env_runners")
    assert one["config"] == four["config"]
    with pytest.raises(UsageError, match="counts"):
        actor_study("IMPASS", "Hopper-v5", [0], **SMALL)


def test_actors_are_counted_for_one_experiment(tmp_path):
    file = tmp_path / "two.yaml"
    file.write_text("a: {run: IMPASS}\nb: {run: IMPASS, config: {lr: 1e-3}}\n")
    with pytest.raises(UsageError, match=r"two\.yaml holds 2 experiments"):
        actor_study(str(file), "Hopper-v5", [1, 2], **SMALL)


@pytest.mark.parametrize(
    ("speeds", "words"),
    [
        ({1: 100.0, 2: 190.0, 4: 195.0, 8: 180.0}, "more than 2 actors gain less"),
        ({8: 180.0, 1: 200.0}, "more than 1 actor gain"),
        # Two gain little, but four much: one is not enough.
        ({1: 100.0, 2: 104.0, 4: 150.0}, "4 actors trained 150 env steps/s, the most"),
        ({1: 100.0, 2: 105.0}, "2 actors trained 105"),
        ({1: 100.0, 2: 104.9}, "more than 1 actor gain"),
    ],
)
def test_the_fewest_actors_are_recommended_after_which_none_gain_much(speeds, words):
    assert recommend(speeds).startswith(words)


def test_the_recommendation_comes_from_the_speed_after_the_start(tmp_path):
    def write(name, actors, points):
        (tmp_path / name).mkdir()
        rows = [
            {
                TIME_TRAINING: seconds,
                "num_env_steps_sampled_lifetime": steps,
                "trial": {"num_env_runners": actors},
            }
            for seconds, steps in points
        ]
        text = "\n".join(map(json.dumps, rows))
        (tmp_path / name / "result.json").write_text(text)

    # A slow first second does not count against it: then 100 steps/s.
    write("a", 1, [(1, 1), (2, 101), (10, 901)])
    assert write_recommendation(tmp_path) is None
    # Nor does a trial that got stuck, against others of its kind.
    write("stuck", 2, [(1, 10), (2, 10), (10, 10)])
    write("b", 2, [(1, 10), (2, 130), (10, 1090)])
    write("c", 2, [(1, 10), (2, 90), (10, 730)])
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "result.json").write_text('{"half": ')
    text = write_recommendation(tmp_path)
    assert (
        text == "more than 1 actor gain less than 5% on this machine (100 env steps/s)"
    )
    written = json.loads((tmp_path / "recommendation.json").read_text())
    assert written == {"text": text, "env_steps_per_s": {"1": 100.0, "2": 100.0}}
