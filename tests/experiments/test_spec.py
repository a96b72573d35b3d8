"""Experiment files: read strictly, never executed."""

import itertools
import re
import sys
from pathlib import Path

import pytest
from ray.rllib.algorithms.ppo import PPO, PPOConfig

import rllib_impass  # noqa: F401
from rllib_impass.experiments.errors import UsageError
from rllib_impass.experiments.result_keys import refuse_impossible
from rllib_impass.experiments.schedulers import make_scheduler
from rllib_impass.experiments.spec import load_experiments, make_experiment
from toy_trials import idle_trials

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
    return list(experiment.trial_configs())


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
        ("lr: 1e-4", "learner_class: ray.rllib.Nothing", "no attribute 'Nothing'"),
        ("lr: 1e-4", "learner_class: gymnasium.Env", "not the kind of class"),
        ("run: IMPASS", "run: ray.rllib.algorithms.ppo.PPOConfig", "not the kind of"),
        ("lr: 1e-4", "env: Hopper-v5", "env stands beside config"),
        ("lr: 1e-4", "seed: abc", "seed must be a whole number"),
        ("num_env_runners: 3", "num_env_runners: 1.5", "at least 0, got 1.5"),
        ("lr: 1e-4", "lr: {grid_search: 5}", r"expected \{grid_search: \[...\]\}"),
        ("lr: 1e-4", "lr: {grid_search: []}", r"expected \{grid_search: \[...\]\}"),
        ("lr: 1e-4", "1: 2", "key 1 must be text"),
        ("lr: 1e-4", "evaluation_config: {explor: true}", "did you mean 'explore'"),
        ("lr: 1e-4", "evaluation_config: {env: Hopper-v4}", "env stands beside"),
        ("{fcnet_hiddens: [32, 32]}", "5", "model_config must be a mapping"),
        ("1_000}", ".nan}", "must be a number, got nan"),
        ("  run: IMPASS", "  run: [IMPASS]", "run must be text"),
        ("  run: IMPASS", "  run: IMPASS\n  base: 1", "no setting 'base'"),
        ("  run: IMPASS", "  run: IMPASS\n  restore: x", "give it as --restore"),
        ("  run: IMPASS", "  run: IMPASS\n  storage_path: 5", "storage_path must be"),
        ("  run: IMPASS", "  run: IMPASS\n  scheduler: pbt", "hyperparam_mutations"),
        ("checkpoint_at_end: false", "checkpoint_at_end: maybe", "true or false"),
        ("  config:", "  resources_per_trial: {cpu: 1}\n  config:", "no meaning in"),
        ("  config:", "  scheduler: pbtt\n  config:", "did you mean 'pbt'"),
        ("  config:", "  scheduler: best\n  config:", "asha, async_hyperband"),
        ("  config:", "  num_samples: 0\n  config:", "num_samples must be"),
        ("  config:", "  num_samples: true\n  config:", "a whole number"),
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


@pytest.mark.parametrize(
    "part",
    [
        {"env": "evil.Thing"},
        {"env": "evil:Thing-v0"},
        {"env": {"grid_search": ["Hopper-v5", "evil.Thing"]}},
        {"run": "evil.Thing"},
        {"config": {"learner_class": "evil.Thing"}},
        {"config": {"replay_buffer_config": {"type": "evil.Thing"}}},
        {"config": {"replay_buffer_config": {"type": "evil-mod.Thing"}}},
        {"config": {"replay_buffer_config": {"type": "evil.Thing\n"}}},
        {"config": {"replay_buffer_config": {"type": "{type: evil.Thing}"}}},
        {"config": {"evaluation_config": {"env": "evil-mod:Thing-v0"}}},
    ],
    ids=str,
)
def test_a_class_path_is_refused_before_its_module_is_imported(
    tmp_path, monkeypatch, part
):
    for name in ("evil", "evil-mod"):
        code = "open('proof', 'w').close()\nclass Thing: ...\n"
        (tmp_path / f"{name}.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    entry = {"run": "SAC", "env": "Hopper-v5", "stop": {"training_iteration": 1}}
    with pytest.raises(UsageError, match="if you trust it, add `--import"):
        make_experiment("x", entry | part)
    assert not {"evil", "evil-mod"} & set(sys.modules)
    assert not (tmp_path / "proof").exists()


@pytest.mark.parametrize("env", ["gymnasium:Pendulum-v1", "Pendulum-v1"])
def test_the_module_of_an_env_id_may_be_named(env):
    entry = {"run": "IMPASS", "env": env, "stop": {"training_iteration": 1}}
    assert make_experiment("x", entry).algorithm_config().env == "Pendulum-v1"


def test_anchors_and_merge_keys_are_yaml_too(tmp_path):
    text = GOOD.replace("hop:", "hop: &hop") + (
        "again:\n  <<: *hop\n  env: Swimmer-v5\n"
    )
    assert [e.env for e in load(tmp_path, text)] == ["Hopper-v5", "Swimmer-v5"]
    with pytest.raises(UsageError, match="Circular"):
        load(tmp_path, "hop: &hop {run: *hop}\n")


def test_a_flag_wins_whichever_name_the_file_uses(tmp_path):
    overrides = {"config": {"num_env_runners": 0, "lr": 5e-5}}
    (experiment,) = load(tmp_path, FORMER, overrides=overrides)
    assert experiment.config["num_env_runners"] == 0
    assert experiment.config["lr"] == 5e-5
    (experiment,) = load(tmp_path, GOOD, overrides={"config": {"num_workers": 0}})
    assert experiment.config["num_env_runners"] == 0


def test_grids_may_stand_where_builder_methods_check_types(tmp_path):
    text = GOOD.replace("lr: 1e-4", "rollout_fragment_length: {grid_search: [16, 32]}")
    (experiment,) = load(tmp_path, text)
    assert [v.rollout_fragment_length for v in variants(experiment)] == [16, 32]
    with pytest.raises(UsageError, match="rollout_fragment_length='many'"):
        load(tmp_path, text.replace("[16, 32]", "[16, many]"))


def test_every_documented_metric_may_stop_a_run():
    page = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()
    keys = re.findall(r"^\| `([\w/]+)` \|", page, flags=re.MULTILINE)
    assert len(keys) > 30
    for key in keys:
        refuse_impossible(key, "stop", has_evaluation=False)


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
    assert experiment.source["digest"]
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
        (
            "import rllib_impass\nconfig = rllib_impass.IMPASSConfig()",
            "stop is missing",
        ),
        ("raise SystemExit(3)", "SystemExit"),
    ],
)
def test_a_python_file_that_cannot_be_used_is_named(tmp_path, text, message):
    path = tmp_path / "mine.py"
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        load_experiments(path)


def test_population_based_training_waits_for_a_first_return():
    entry = {
        "run": "IMPASS",
        "env": "Pendulum-v1",
        "stop": {"training_iteration": 9},
        "scheduler": "pbt",
        "scheduler_config": {"hyperparam_mutations": {"lr": [1e-4, 1e-3]}},
    }
    scheduler = make_scheduler(make_experiment("x", entry))
    (trial,) = idle_trials({})
    decision = scheduler.on_trial_result(None, trial, {"time_total_s": 1.0})
    assert decision == scheduler.CONTINUE
