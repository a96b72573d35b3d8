"""What is logged to W&B of a trial, without W&B."""

import json
import math

import cloudpickle
import pytest
from ray.rllib.algorithms.ppo import PPOConfig
from ray.tune.experiment import Trial

from rllib_impass.experiments.errors import UsageError
from rllib_impass.experiments.tracking import (
    WandbOptions,
    check_wandb,
    read_run_file,
    wandb_callbacks,
    where_it_went,
    write_run_file,
)
from rllib_impass.experiments.wandb_logging import history_row, run_config

RESULT = {
    "training_iteration": 2,
    "num_env_steps_sampled_lifetime": 300.0,
    "time_total_s": 4.0,
    "env_runners/episode_return_mean": math.nan,
    "evaluation/env_runners/episode_return_mean": 7.0,
}


def make_trial(config, name="IMPASS"):
    return Trial(name, trial_id="ab12c_00000", stub=True, config=config)


def test_a_row_has_env_steps_and_the_names_of_openrlbenchmark():
    row = history_row(RESULT)
    assert row["global_step"] == 300
    assert row["charts/eval_return"] == 7.0
    assert row["charts/time_s"] == 4.0
    assert row["charts/SPS"] == 75.0
    assert row["training_iteration"] == 2


def test_what_is_not_known_yet_is_left_out():
    assert not {k for k in history_row(RESULT) if "return_mean" in k} - {
        "evaluation/env_runners/episode_return_mean"
    }
    assert "charts/episodic_return" not in history_row(RESULT)


def test_the_clock_of_a_comparison_stands_still_during_evaluations():
    row = history_row(RESULT | {"time_training_s": 3.0})
    assert (row["charts/time_s"], row["charts/SPS"]) == (3.0, 100.0)


def test_who_takes_no_steps_counts_iterations():
    result = dict(RESULT)
    del result["num_env_steps_sampled_lifetime"]
    assert history_row(result)["global_step"] == 2


def test_the_config_of_rllibs_own_algorithms_has_what_was_chosen():
    config = PPOConfig().environment("Pendulum-v1", env_config={"api_key": "hush"})
    config.training(lr=1e-3).rl_module(model_config={"fcnet_hiddens": [8]})
    logged = run_config(make_trial(config.to_dict(), "PPO"))
    everything = logged.pop("all")
    assert logged == {
        "env": "Pendulum-v1",
        "env_config": {"api_key": "<redacted>"},
        "env_id": "Pendulum-v1",
        "exp_name": "PPO",
        "lr": 1e-3,
        "model_config": {"fcnet_hiddens": [8]},
        "num_env_runners": 2,
        "seed": None,
        "trial_id": "ab12c_00000",
    }
    assert everything["gamma"] == 0.99
    assert "hush" not in json.dumps(everything)


def test_the_config_of_a_compared_trial_is_what_it_was_told():
    told = {
        "label": "IMPASS, 2 actors",
        "algorithm": "IMPASS",
        "env": "Hopper-v5",
        "seed": 4,
        "num_env_runners": 2,
        "num_stacked_states": 4,
        "config": {"lr": 1e-3, "gamma": 0.9},
    }
    config = {"trial": told, "settings": {"lr": 2e-3}, "budget": {"amount": 9}}
    logged = run_config(make_trial(config, "StudyTrial"))
    assert logged["env_id"] == "Hopper-v5"
    assert logged["exp_name"] == "IMPASS"
    assert logged["label"] == "IMPASS, 2 actors"
    assert (logged["seed"], logged["num_env_runners"]) == (4, 2)
    assert (logged["lr"], logged["gamma"]) == (2e-3, 0.9)
    assert logged["all"]["budget"] == {"amount": 9}


def test_an_env_of_ones_own_is_called_by_its_class():
    class Mine:
        pass

    logged = run_config(make_trial({"env": Mine, "seed": 1}))
    assert logged["env_id"] == "Mine"


def test_the_environment_may_say_that_there_is_no_network(monkeypatch):
    monkeypatch.delenv("WANDB_MODE", raising=False)
    assert WandbOptions("p").mode == "online"
    monkeypatch.setenv("WANDB_MODE", "offline")
    assert WandbOptions("p").mode == "offline"
    assert WandbOptions("p", mode="online").mode == "online"
    monkeypatch.setenv("WANDB_MODE", "disabled")
    with pytest.raises(UsageError, match="WANDB_MODE=disabled"):
        check_wandb(WandbOptions("p"))


def test_at_the_end_it_says_where_runs_are(tmp_path):
    for name in ("a", "b", "not_logged"):
        (tmp_path / name).mkdir()
    for name in ("a", "b"):
        write_run_file(tmp_path / name, id=name)
        write_run_file(tmp_path / name, page="https://x/y")
        assert read_run_file(tmp_path / name) == {"id": name, "page": "https://x/y"}
    online = WandbOptions("p", mode="online")
    assert where_it_went(tmp_path, online) == ["Weights & Biases: https://x/y"]
    _, line = where_it_went(tmp_path, WandbOptions("p", mode="offline"))
    assert line == f"  wandb sync {tmp_path}/*/wandb/offline-run-*"


def test_neither_the_callback_nor_what_it_starts_is_given_a_key(
    ray_session, monkeypatch
):
    monkeypatch.setenv("WANDB_API_KEY", "0123456789abcdef" * 3)
    (callback,) = wandb_callbacks(WandbOptions("p", mode="offline"))
    assert b"0123456789abcdef" not in cloudpickle.dumps(callback)
    callback.setup()
    options = callback._remote_logger_class._default_options
    assert options["num_cpus"] == 0
    assert "runtime_env" not in options
