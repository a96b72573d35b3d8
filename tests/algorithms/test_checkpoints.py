"""What is saved comes back: counters, weights, statistics, optimizers."""

import pytest
from ray import tune
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.core import ALL_MODULES, DEFAULT_MODULE_ID

from assertions import assert_same
from configs import small_config
from faulty_learners import SlowLearner
from new_process import run_python
from rllib_impass import IMPASS
from toy_envs import FaultyEnv


@pytest.fixture
def restored():
    algorithms = []

    def restore(path):
        algorithms.append(Algorithm.from_checkpoint(path))
        return algorithms[-1]

    yield restore
    for algorithm in algorithms:
        algorithm.stop()


def hopper():
    return small_config("Hopper-v5").evaluation(evaluation_duration=3)


def evaluation_return(algorithm):
    # What is queued would change the weights between two looks at them.
    algorithm.learner_group._learner.wait_until_idle()
    return algorithm.evaluate()["env_runners"]["episode_return_mean"]


def learner_state(algorithm):
    return algorithm.learner_group.get_state()["learner"]


def test_a_restored_run_continues_where_it_was(build, restored, tmp_path):
    algorithm = build(hopper())
    for _ in range(3):
        result = algorithm.train()
    algorithm.learner_group._learner.wait_until_idle()
    path = algorithm.save_to_path(str(tmp_path / "checkpoint"))
    state, score = learner_state(algorithm), evaluation_return(algorithm)
    assert evaluation_return(algorithm) == score, "evaluation must be deterministic"
    algorithm.stop()

    twin = restored(path)
    assert isinstance(twin, IMPASS)
    twin_state = learner_state(twin)
    for part in ("rl_module", "optimizer", "return_moments"):
        assert_same(state[part], twin_state[part], part)
    assert state["rl_module"][DEFAULT_MODULE_ID]["normalizer.count"] > 0
    assert evaluation_return(twin) == score

    continued = twin.train()
    key = "num_env_steps_sampled_lifetime"
    assert continued[key] > result[key]
    assert continued["training_iteration"] == result["training_iteration"] + 1
    trained = "num_env_steps_trained_lifetime"
    assert (
        continued["learners"][ALL_MODULES][trained]
        > result["learners"][ALL_MODULES][trained]
    )
    assert twin_state["weights_seq_no"] >= state["weights_seq_no"]


def test_an_older_checkpoint_wins_when_restored_in_place(build, tmp_path):
    algorithm = build(hopper())
    algorithm.train()
    old_score = evaluation_return(algorithm)
    old = algorithm.save_to_path(str(tmp_path / "old"))
    old_weights = learner_state(algorithm)["rl_module"]
    for _ in range(4):
        algorithm.train()
    new_score = evaluation_return(algorithm)
    new = algorithm.save_to_path(str(tmp_path / "new"))
    assert new_score != old_score

    algorithm.restore_from_path(old)
    assert_same(old_weights, learner_state(algorithm)["rl_module"])
    assert evaluation_return(algorithm) == old_score
    algorithm.restore_from_path(new)
    assert evaluation_return(algorithm) == new_score
    # Actors follow, too: training from here on has a small lag.
    for _ in range(2):
        result = algorithm.train()
    assert result["learners"][DEFAULT_MODULE_ID]["policy_lag_mean"] < 5


@pytest.mark.parametrize("num_learners", [0, 1])
def test_the_weights_evaluated_are_the_weights_saved(build, num_learners):
    config = hopper().learners(num_learners=num_learners)
    config.training(learner_class=SlowLearner)
    algorithm = build(config.evaluation(evaluation_interval=1))
    for _ in range(2):
        evaluated = algorithm.train()["evaluation"]["env_runners"]["weights_seq_no"]
        assert evaluated == learner_state(algorithm)["weights_seq_no"] > 0


def test_every_evaluation_is_of_the_same_episodes_even_without_a_seed(build):
    algorithm = build(hopper().debugging(seed=None).env_runners(num_env_runners=0))
    algorithm.train()
    assert evaluation_return(algorithm) == evaluation_return(algorithm)


def test_tune_restores_an_interrupted_trial(ray_session, tmp_path):
    config = small_config(
        FaultyEnv, fault="raise", at_step=600, marker=str(tmp_path / "raised")
    ).env_runners(num_env_runners=0)
    run_config = tune.RunConfig(
        name="run",
        storage_path=str(tmp_path),
        stop={"training_iteration": 12},
        checkpoint_config=tune.CheckpointConfig(checkpoint_frequency=1),
        verbose=0,
    )
    tuner = tune.Tuner("IMPASS", param_space=config, run_config=run_config)
    (broken,) = tuner.fit()
    assert "the simulator exploded" in str(broken.error)
    reached = broken.metrics["training_iteration"]
    assert 1 <= reached < 12

    tuner = tune.Tuner.restore(
        str(tmp_path / "run"), trainable="IMPASS", resume_errored=True
    )
    (whole,) = tuner.fit()
    assert whole.error is None
    history = whole.metrics_dataframe
    assert list(history["training_iteration"]) == list(range(1, 13))
    steps = list(history["num_env_steps_sampled_lifetime"])
    assert steps == sorted(steps)
    assert steps[reached] > steps[reached - 1]


def test_a_fresh_process_needs_only_the_import(build, tmp_path):
    algorithm = build(hopper().env_runners(num_env_runners=0))
    algorithm.train()
    path = algorithm.save_to_path(str(tmp_path / "checkpoint"))
    score = evaluation_return(algorithm)
    script = f"""
        import rllib_impass, ray
        from ray.rllib.algorithms.algorithm import Algorithm
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False,
                 object_store_memory=100 * 1024 * 1024)
        algorithm = Algorithm.from_checkpoint({path!r})
        print(algorithm.evaluate()["env_runners"]["episode_return_mean"])
    """
    done = run_python(script, timeout=200)
    assert done.returncode == 0, done.stderr[-2000:]
    assert float(done.stdout.split()[-1]) == pytest.approx(score, abs=1e-9)
