"""Defaults that are stated once, and input that is refused before anything starts."""

import pytest
from ray.rllib.connectors.env_to_module import MeanStdFilter
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

from configs import serial_config, small_d4pg_config
from rllib_impass import D4PG, ApexDPG, ApexDPGConfig, D4PGConfig
from toy_envs import CountingEnv, WideActionsEnv


def hopper(config_class=D4PGConfig):
    return config_class().environment("Hopper-v5")


@pytest.mark.parametrize("config_class", [D4PGConfig, ApexDPGConfig])
def test_the_defaults_are_valid(config_class):
    hopper(config_class).validate()


def test_ape_x_changes_three_settings():
    ours, theirs = D4PGConfig().to_dict(), ApexDPGConfig().to_dict()
    changed = {name: theirs[name] for name in ours if ours[name] != theirs[name]}
    assert changed == {
        "distributional": False,
        "prioritized_replay": True,
        "exploration_ladder": True,
    }
    assert issubclass(ApexDPG, D4PG)
    assert ApexDPGConfig().algo_class is ApexDPG


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"v_min": 10.0, "v_max": 10.0}, "v_min=10.0 must be below v_max=10.0"),
        ({"v_max": float("inf")}, "v_max=inf, both finite"),
        ({"v_min": float("nan")}, "v_min=nan must be below"),
        ({"num_atoms": 1}, "num_atoms must be a whole number of at least 2"),
        ({"num_atoms": 51.5}, "num_atoms must be a whole number of at least 2"),
        ({"n_step": 0}, "n_step must be a whole number of at least 1"),
        ({"tau": 0.0}, "tau must be above 0 and at most 1, got 0.0"),
        ({"tau": 1.5}, "tau must be above 0 and at most 1, got 1.5"),
        ({"target_update_interval": 0}, "target_update_interval must be"),
        ({"reward_scale": 0.0}, "reward_scale must be above 0"),
        ({"updates_per_env_step": 0}, "updates_per_env_step must be above 0"),
        ({"updates_per_env_step": None}, "updates_per_env_step must be above 0"),
        ({"replay_capacity": 9_999}, "must be at least num_steps_sampled_before"),
        (
            {
                "replay_capacity": 200,
                "num_steps_sampled_before_learning_starts": 100,
            },
            "replay_capacity=200 must be at least train_batch_size_per_learner=256",
        ),
        ({"replay_capacity": 1e6}, "replay_capacity must be a whole number"),
        ({"train_batch_size_per_learner": 0}, "train_batch_size_per_learner must be"),
        ({"num_steps_sampled_before_learning_starts": 0}, "learning_starts must be"),
        ({"replay_alpha": -0.1}, "replay_alpha must be at least 0"),
        ({"replay_beta": -0.1}, "replay_beta must be at least 0"),
        ({"replay_beta": [[5, 0.4], [10, 1.0]]}, "replay_beta"),
        ({"action_gradient_clip": 0.0}, "action_gradient_clip must be above 0"),
        ({"critic_lr": 0.0}, "critic_lr must be above 0"),
        ({"minibatch_size": 64}, "minibatch_size=64 has no effect on D4PG"),
        ({"num_epochs": 2}, "num_epochs=2 has no effect on D4PG: set updates_per"),
        ({"vf_loss_coeff": 1.0}, "vf_loss_coeff=1.0 has no effect on D4PG"),
        ({"entropy_coeff": 0.5}, "has no effect on D4PG: set exploration_sigma"),
        ({"vtrace": False}, "vtrace=False has no effect on D4PG: there is none"),
        ({"vtrace_clip_rho_threshold": 2.0}, "there is no V-trace"),
        ({"replay_proportion": 0.5}, "set updates_per_env_step"),
        ({"grad_clip_by": "value"}, "actor and critic apart"),
    ],
)
def test_bad_training_settings_are_named(settings, message):
    config = hopper().training(**settings)
    with pytest.raises(ValueError, match=message):
        config.validate()


@pytest.mark.parametrize("settings", [{"v_min": 1.0, "v_max": 0.0}, {"num_atoms": 0}])
def test_a_scalar_critic_has_no_support_to_get_wrong(settings):
    hopper(ApexDPGConfig).training(**settings).validate()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"exploration_sigma": 0.0}, "exploration_sigma must be above 0"),
        ({"exploration_sigma": 1.0, "exploration_ladder": True}, "must be below 1"),
        ({"explore": False}, "explore=False"),
        ({"rollout_fragment_length": "auto"}, "rollout_fragment_length must be"),
    ],
)
def test_bad_sampling_settings_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        hopper().env_runners(**settings).validate()


@pytest.mark.parametrize(
    ("model_config", "message"),
    [
        ({"actor_hidens": [3]}, "did you mean 'actor_hiddens'"),
        ({"fcnet_hiddens": [3]}, "model_config has no setting 'fcnet_hiddens'"),
        (DefaultModelConfig(fcnet_hiddens=[3]), "no setting 'fcnet_hiddens'"),
        ({"actor_hiddens": []}, r"model_config\['actor_hiddens'\] must name a layer"),
        ({"critic_hiddens": []}, r"model_config\['critic_hiddens'\] must name a layer"),
    ],
)
def test_bad_model_settings_are_named(model_config, message):
    with pytest.raises(ValueError, match=message):
        hopper().rl_module(model_config=model_config).validate()


@pytest.mark.parametrize(
    ("env", "message"),
    [("CartPole-v1", "only continuous"), (WideActionsEnv, "unbounded actions")],
)
def test_envs_that_cannot_work_are_refused(env, message):
    env_config = {} if isinstance(env, str) else {"seconds": 0}
    with pytest.raises(ValueError, match=message):
        small_d4pg_config(env, **env_config).validate()


def test_what_needs_rllibs_episodes_is_refused_except_for_evaluation():
    with_connector = {
        "env_to_module_connector": lambda *args, **kwargs: MeanStdFilter()
    }
    reason = "is set, but D4PG learns from transitions"
    with pytest.raises(ValueError, match=f"env_to_module_connector {reason}"):
        hopper().env_runners(**with_connector).validate()
    with pytest.raises(ValueError, match=f"the callback on_episode_end {reason}"):
        hopper().callbacks(on_episode_end=lambda **kwargs: None).validate()
    hopper().evaluation(
        evaluation_interval=1,
        evaluation_config=D4PGConfig.overrides(
            callbacks_on_episode_end=lambda **kwargs: None
        ),
    ).validate()


def test_the_ladder_of_noise_is_that_of_ape_x():
    config = D4PGConfig().env_runners(
        num_env_runners=4, exploration_sigma=0.4, exploration_ladder=True
    )
    sigmas = [config.exploration_sigma_of(i) for i in (1, 2, 3, 4)]
    assert sigmas == pytest.approx([0.4 ** (1 + 7 * i / 3) for i in range(4)])
    assert sigmas[0] == 0.4
    assert sigmas[-1] == pytest.approx(0.4**8)
    # The driver's own runner is no rung.
    assert config.exploration_sigma_of(0) == 0.4


@pytest.mark.parametrize(("num_env_runners", "ladder"), [(1, True), (4, False)])
def test_without_a_ladder_all_actors_explore_alike(num_env_runners, ladder):
    config = D4PGConfig().env_runners(
        num_env_runners=num_env_runners,
        exploration_sigma=0.4,
        exploration_ladder=ladder,
    )
    noise = {config.exploration_sigma_of(i) for i in range(num_env_runners + 1)}
    assert noise == {0.4}


@pytest.mark.parametrize("num_learners", [0, 1, 2])
def test_a_learner_takes_one_sample_at_a_time(num_learners):
    ours = small_d4pg_config(CountingEnv).learners(num_learners=num_learners)
    assert ours.samples_per_batch == max(1, num_learners)
    assert ours.steps_per_batch == 4 * 8
    # What one learner of IMPASS takes is a train batch.
    theirs = serial_config(CountingEnv).learners(num_learners=num_learners)
    assert theirs.steps_per_batch == theirs.train_batch_size_per_learner == 64
