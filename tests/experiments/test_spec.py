"""Experiment files: read strictly, never executed."""

import itertools
import sys

import pytest
from ray.rllib.algorithms.ppo import PPO, PPOConfig

import rllib_impass  # noqa: F401
from rllib_impass.experiments import settings
from rllib_impass.experiments.errors import UsageError
from rllib_impass.experiments.spec import load_experiments, make_experiment

GOOD = """
hop:
  run: IMPASS
  env: Hopper-v5
  stop: {num_env_steps_sampled_lifetime: 1_000}
  checkpoint_config: {checkpoint_at_end: false, num_to_keep: 2}
  config:
    lr: 1e-4
    critic_lr: [[0, 1e-3], [1e6, 1E-5]]
    num_env_runners: 3
    model_config: {fcnet_hiddens: [32, 32]}
"""
# A file of the former RLlib, key by key as its tuned examples wrote them.
FORMER = """
pendulum-impala:
    env: Pendulum-v1
    run: IMPALA
    local_dir: somewhere
    checkpoint_freq: 7
    keep_checkpoints_num: 3
    stop:
        episode_reward_mean: -700
        timesteps_total: 500000
    config:
        framework: tf
        num_gpus: 0
        num_workers: 2
        num_envs_per_worker: 5
        train_batch_size: 500
        lr: 1e-3
        lr_schedule: [[0, 5e-4], [100000, 1e-5]]
        observation_filter: MeanStdFilter
        vtrace_drop_last_ts: false
        _disable_execution_plan_api: {grid_search: [true, false]}
        model: {fcnet_hiddens: [32, 32]}
        gamma: 0.95
"""


def load(tmp_path, text, **arguments):
    path = tmp_path / "file.yaml"
    path.write_text(text)
    return load_experiments(path, **arguments)


def variants(experiment):
    return list(settings.variants(experiment.algorithm_config()))


def test_a_file_becomes_a_config(tmp_path):
    (experiment,) = load(tmp_path, GOOD)
    config = experiment.algorithm_config()
    assert config.lr == 1e-4
    assert config.critic_lr == [[0, 1e-3], [1e6, 1e-5]]
    assert config.num_env_runners == 3
    assert config.env == "Hopper-v5"
    assert config.model_config["fcnet_hiddens"] == [32, 32]
    assert experiment.notes == ()


def test_a_files_checkpoint_config_survives(tmp_path):
    (experiment,) = load(tmp_path, GOOD)
    assert experiment.checkpoint_config == {
        "checkpoint_frequency": 10,
        "checkpoint_at_end": False,
        "num_to_keep": 2,
    }


def test_several_experiments_may_share_a_file(tmp_path):
    text = GOOD + GOOD.replace("hop:", "again:").replace("IMPASS", "IMPALANoSS")
    assert [e.run for e in load(tmp_path, text)] == ["IMPASS", "IMPALANoSS"]


def test_flags_win_over_the_file_and_the_file_over_defaults(tmp_path):
    overrides = {
        "stop": {"training_iteration": 2},
        "config": {"num_env_runners": 0, "model_config": {"fcnet_activation": "relu"}},
        "checkpoint_config": {"num_to_keep": 5},
        "num_samples": 2,
    }
    (experiment,) = load(tmp_path, GOOD, overrides=overrides)
    config = experiment.algorithm_config()
    assert experiment.stop == {"training_iteration": 2}
    assert experiment.num_samples == 2
    assert experiment.checkpoint_config["num_to_keep"] == 5
    assert experiment.checkpoint_config["checkpoint_at_end"] is False
    assert (config.num_env_runners, config.lr) == (0, 1e-4)
    assert config.model_config["fcnet_hiddens"] == [32, 32]
    assert config.model_config["fcnet_activation"] == "relu"


def test_grids_at_any_leaf_give_their_product(tmp_path):
    text = GOOD.replace("Hopper-v5", "{grid_search: [Hopper-v5, Swimmer-v5]}").replace(
        "[32, 32]", "{grid_search: [[8, 8], [16, 16], [32, 32]]}"
    )
    (experiment,) = load(tmp_path, text)
    seen = [(v.env, v.model_config["fcnet_hiddens"][0]) for v in variants(experiment)]
    expected = itertools.product(["Hopper-v5", "Swimmer-v5"], [8, 16, 32])
    assert sorted(seen) == sorted(expected)


def test_every_combination_of_a_grid_is_checked(tmp_path):
    text = GOOD.replace("num_env_runners: 3", "gamma: {grid_search: [0.99, 1.5]}")
    with pytest.raises(UsageError, match=r"hop: config: gamma must be .* got 1\.5"):
        load(tmp_path, text)


def test_a_file_of_the_former_rllib_still_means_what_it_said(tmp_path):
    (experiment,) = load(tmp_path, FORMER)
    assert experiment.stop == {
        "env_runners/episode_return_mean": -700,
        "num_env_steps_sampled_lifetime": 500_000,
    }
    assert experiment.storage_path == "somewhere"
    assert experiment.checkpoint_config["checkpoint_frequency"] == 7
    assert experiment.checkpoint_config["num_to_keep"] == 3
    (config,) = variants(experiment)
    assert config.num_env_runners == 2
    assert config.num_envs_per_env_runner == 5
    assert config.train_batch_size_per_learner == 500
    assert config.lr == [[0, 5e-4], [100000, 1e-5]]
    assert config.model_config["fcnet_hiddens"] == [32, 32]
    assert type(config._env_to_module_connector(None, None)).__name__ == "MeanStdFilter"
    for name in ("num_workers", "framework", "episode_reward_mean", "checkpoint_freq"):
        assert any(note.startswith(name) for note in experiment.notes), name


def test_our_own_algorithms_normalize_observations_in_the_module(tmp_path):
    text = GOOD.replace("lr: 1e-4", "observation_filter: MeanStdFilter")
    (experiment,) = load(tmp_path, text)
    assert experiment.config["normalize_observations"] is True
    assert experiment.algorithm_config().why_episodes() is None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  stop:", "  stopp:", "did you mean 'stop'"),
        ("  run: IMPASS\n", "", "run is missing"),
        ("  stop: {num_env_steps_sampled_lifetime: 1_000}\n", "", "stop is missing"),
        ("1_000}", "many}", "must be a number, got 'many'"),
        ("num_env_steps_sampled_lifetime", "num_env_steps_sample_lifetime", "you mean"),
        ("num_env_steps_sampled_lifetime", "episode_return_mean", "'env_runners/epis"),
        (
            "num_env_steps_sampled_lifetime",
            "evaluation/env_runners/episode_return_mean",
            "set evaluation_interval",
        ),
        ("num_to_keep: 2", "checkpoint_score_attribute: score", "no result will ever"),
        ("lr: 1e-4", "lrr: 1e-4", "did you mean 'lr'"),
        ("hop:", "../hop:", "no name for a folder"),
        ("hop:", "a..b:", "no name for a folder"),
        ("hop:", "/etc/hop:", "no name for a folder"),
        ("run: IMPASS", "run: IMPASSE", "no algorithm; did you mean 'IMPASS'"),
        ("Hopper-v5", "Hoppper-v5", "does not exist; did you mean 'Hopper-v5'"),
        ("Hopper-v5", "Striker-v1", "does not exist; did you mean 'Striker-v0'"),
        ("Hopper-v5", "Hopper-v3", "cannot be created"),
        ("lr: 1e-4", "lr: !!python/object/apply:os.getcwd []", "python"),
        ("lr: 1e-4", "lr: 1e-4\n    lr: 1e-3", "lr is there twice"),
        ("lr: 1e-4", "num_workers: 3", "num_env_runners twice"),
        ("lr: 1e-4", "exploration_config: {}", "no meaning any more"),
        ("lr: 1e-4", "learner_class: os.path.Learner", "add `--import os.path`"),
        ("lr: 1e-4", "learner_class: ray.rllib.Nothing", "does not exist"),
        ("  config:", "  resources_per_trial: {cpu: 1}\n  config:", "no meaning any"),
        ("  config:", "  scheduler: pbtt\n  config:", "did you mean 'pbt'"),
        ("  config:", "  num_samples: 0\n  config:", "num_samples must be"),
        ("checkpoint_at_end", "checkpoint_at_ende", "did you mean"),
        ("{fcnet_hiddens", "{fcnet_hidens", "did you mean 'fcnet_hiddens'"),
        ("run:", "run", r"file\.yaml"),
    ],
)
def test_mistakes_are_named(tmp_path, old, new, message):
    assert old in GOOD
    with pytest.raises(UsageError, match=message):
        load(tmp_path, GOOD.replace(old, new))


@pytest.mark.parametrize("name", ["nothing.yaml", "nothing.py", "https://a.b/c.json"])
def test_a_missing_file_is_named(tmp_path, name):
    with pytest.raises(UsageError, match=name.rpartition("/")[2]):
        load_experiments(tmp_path / name)


def test_model_settings_of_rllibs_own_algorithms_are_checked_too():
    entry = {"run": "PPO", "env": "Pendulum-v1", "stop": {"training_iteration": 1}}
    make_experiment("ok", entry | {"config": {"model_config": {"vf_share_layers": 1}}})
    wrong = entry | {"config": {"model_config": {"vf_share_layer": True}}}
    with pytest.raises(UsageError, match="did you mean 'vf_share_layers'"):
        make_experiment("wrong", wrong)


@pytest.mark.parametrize("key", ["env", "run", "config"])
def test_a_class_path_is_refused_before_its_module_is_imported(
    tmp_path, monkeypatch, key
):
    (tmp_path / "evil.py").write_text("open('proof', 'w').close()\nclass Thing: ...\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    entry = {"run": "IMPASS", "env": "Hopper-v5", "stop": {"training_iteration": 1}}
    value = {"learner_class": "evil.Thing"} if key == "config" else "evil.Thing"
    with pytest.raises(UsageError, match="add `--import evil`"):
        make_experiment("x", entry | {key: value})
    with pytest.raises(UsageError, match="add `--import evil`"):
        make_experiment("x", entry | {"env": "evil:Thing-v0"})
    assert "evil" not in sys.modules
    assert not (tmp_path / "proof").exists()


def test_a_python_file_brings_config_and_stop(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "from ray import tune\n"
        "from ray.rllib.algorithms.ppo import PPOConfig\n"
        "config = PPOConfig().environment('Pendulum-v1')\n"
        "config.training(lr=tune.grid_search([1e-3, 1e-4]), gamma=0.9)\n"
        "stop = {'training_iteration': 3}\n"
    )
    (experiment,) = load_experiments(path, {"config": {"gamma": 0.8}})
    assert experiment.name == "mine"
    assert experiment.algorithm_class is PPO
    assert experiment.stop == {"training_iteration": 3}
    assert [(v.lr, v.gamma) for v in variants(experiment)] == [(1e-3, 0.8), (1e-4, 0.8)]
    assert all(isinstance(v, PPOConfig) for v in variants(experiment))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("stop = {}", "expected a variable `config`"),
        ("1 / 0", "ZeroDivisionError"),
        ("import rllib_impass\nconfig = rllib_impass.IMPASSConfig()", "env is missing"),
    ],
)
def test_a_python_file_that_cannot_be_used_is_named(tmp_path, text, message):
    path = tmp_path / "mine.py"
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        load_experiments(path)
