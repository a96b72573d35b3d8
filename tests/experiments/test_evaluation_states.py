"""RLlib's own algorithms are evaluated with the statistics that they trained with."""

import pytest

from filter_counts import num_filtered, num_filtered_in_evaluation
from rllib_impass.experiments.comparison import comparison_study
from rllib_impass.experiments.spec import make_experiment
from rllib_impass.experiments.study_trial import build_config

SETTINGS = {
    "num_env_runners": 1,
    "observation_filter": "MeanStdFilter",
    "train_batch_size_per_learner": 1000,
    "num_epochs": 1,
}


def train_config(settings):
    """As `rllib train` builds it."""
    evaluation = {"evaluation_interval": 1, "evaluation_duration": 2}
    entry = {
        "run": "PPO",
        "env": "Pendulum-v1",
        "stop": {"training_iteration": 2},
        "config": settings | evaluation,
    }
    return make_experiment("ppo", entry).algorithm_config()


def compare_config(settings):
    """As `rllib compare` builds it."""
    study = comparison_study(
        ["Pendulum-v1"],
        ["PPO"],
        budget_steps=2000,
        num_episodes=2,
        overrides=settings,
    )
    params = study.param_space()
    return build_config(params | {"trial": params["trial"]["grid_search"][0]})


@pytest.mark.parametrize(
    ("make_config", "num_evaluating"), [(train_config, 0), (compare_config, 2)]
)
def test_evaluation_goes_by_what_training_saw(build, make_config, num_evaluating):
    config = make_config(SETTINGS | {"evaluation_num_env_runners": num_evaluating})
    algorithm = build(config)
    algorithm.train()
    algorithm.train()
    algorithm.evaluate()
    seen = num_filtered(algorithm.env_runner)
    assert seen >= 2000
    # And by the steps of the evaluation itself.
    for num_evaluated_with in num_filtered_in_evaluation(algorithm):
        assert seen <= num_evaluated_with <= seen + 1000
