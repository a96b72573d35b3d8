"""Defaults that are stated once, and input that is refused before anything starts."""

import pytest
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

from configs import small_config
from rllib_impass import IMPASS, IMPALANoSS, IMPALANoSSConfig, IMPASSConfig
from toy_envs import CountingEnv, DictObservationEnv, WideActionsEnv


def hopper():
    return IMPASSConfig().environment("Hopper-v5")


def test_the_defaults_are_valid():
    hopper().validate()
    IMPALANoSSConfig().environment("Hopper-v5").validate()


def test_the_ablation_changes_one_setting():
    full, ablated = IMPASSConfig().to_dict(), IMPALANoSSConfig().to_dict()
    changed = {name for name in full if full[name] != ablated[name]}
    assert changed == {"num_stacked_states"}
    assert ablated["num_stacked_states"] == 1
    assert issubclass(IMPALANoSS, IMPASS)
    assert IMPALANoSSConfig().algo_class is IMPALANoSS


def test_stacking_asks_for_the_lookback_it_needs():
    config = hopper().training(num_stacked_states=6)
    config.validate()
    assert config.episode_lookback_horizon == 5


def test_evaluation_is_deterministic_unless_asked_otherwise():
    config = hopper()
    assert config.get_evaluation_config_object().explore is False
    config.evaluation(evaluation_config={"explore": True})
    evaluation = config.get_evaluation_config_object()
    assert evaluation.explore is True
    assert evaluation.num_envs_per_env_runner == 1


def test_rllibs_model_config_is_understood():
    config = hopper().rl_module(
        model_config=DefaultModelConfig(fcnet_hiddens=[32, 16], fcnet_activation="relu")
    )
    config.validate()
    assert config.model_config["fcnet_hiddens"] == [32, 16]
    assert config.model_config["initial_sigma"] == 0.7


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_stacked_states": 0}, "num_stacked_states must be"),
        ({"num_stacked_states": 2.5}, "num_stacked_states must be"),
        ({"minibatch_queue_size": 0}, "minibatch_queue_size must be"),
        ({"broadcast_interval": 0}, "broadcast_interval must be"),
        ({"train_batch_size_per_learner": 4000}, "Set it to 4096"),
        ({"minibatch_size": 4097}, "minibatch_size=4097"),
        ({"minibatch_size": 0}, "minibatch_size=0"),
        ({"vtrace_clip_c_threshold": 0.0}, "vtrace_clip_c_threshold must be above 0"),
        ({"vtrace_clip_rho_threshold": -1.0}, "vtrace_clip_rho_threshold"),
        ({"vtrace_lambda": 1.5}, "vtrace_lambda must be between 0 and 1"),
        ({"policy_ratio_clip": 0.0}, "policy_ratio_clip must be above 0"),
        ({"vtrace_clip_pg_rho_threshold": 2.0}, "Set policy_ratio_clip=None"),
        ({"vtrace": False}, "vtrace=False has no effect"),
        ({"opt_type": "rmsprop"}, "opt_type='rmsprop' has no effect"),
        ({"epsilon": 1e-8}, "epsilon=1e-08 has no effect"),
        ({"learner_queue_timeout": 9}, "learner_queue_timeout=9 has no effect"),
        ({"shuffle_batch_per_epoch": True}, "always shuffled"),
        ({"num_epochs": 0}, "num_epochs must be"),
        ({"gamma": 1.5}, "gamma must be between 0 and 1"),
        ({"lr": -1e-3}, "lr must be above 0"),
        ({"grad_clip": -1.0}, "grad_clip must be above 0"),
        ({"minibatch_size": 16.5}, "minibatch_size=16.5 must be a whole number"),
        ({"train_batch_size_per_learner": -1024}, "train_batch_size_per_learner=-1024"),
        ({"vtrace_clip_rho_threshold": None}, "vtrace_clip_rho_threshold must be"),
        ({"learner_queue_size": 9}, "set minibatch_queue_size"),
        ({"lr": [[0, 1e-3]]}, "lr"),
        ({"critic_lr": [[5, 1e-3], [10, 1e-4]]}, "critic_lr"),
        ({"entropy_coeff": "1e-3"}, "entropy_coeff"),
        ({"grad_clip_by": "value"}, "grad_clip_by"),
    ],
)
def test_bad_training_settings_are_named(settings, message):
    config = hopper().training(**settings)
    with pytest.raises(ValueError, match=message):
        config.validate()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"vector_backend": "fast"}, "vector_backend='fast' must be one of"),
        ({"batch_mode": "complete_episodes"}, "batch_mode='complete_episodes'"),
        ({"explore": False}, "explore=False"),
        ({"num_envs_per_env_runner": 0}, "num_envs_per_env_runner"),
        ({"rollout_fragment_length": "auto"}, "rollout_fragment_length must be"),
    ],
)
def test_bad_sampling_settings_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        hopper().env_runners(**settings).validate()


@pytest.mark.parametrize(
    ("model_config", "message"),
    [
        ({"fcnet_hidens": [3]}, "did you mean 'fcnet_hiddens'"),
        ({"fcnet_hiddens": []}, "must name a layer's size"),
        ({"fcnet_activation": "tanhh"}, "must be one of tanh"),
        ({"sigma_floor": 0.9}, "sigma_floor < initial_sigma"),
        ({"sigma_ceiling": 0.5}, "sigma_floor < initial_sigma"),
    ],
)
def test_bad_model_settings_are_named(model_config, message):
    with pytest.raises(ValueError, match=message):
        hopper().rl_module(model_config=model_config).validate()


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ("CartPole-v1", "only continuous"),
        (WideActionsEnv, "unbounded actions"),
        (DictObservationEnv, "Box observations"),
        ("NoSuchEnv-v0", "env='NoSuchEnv-v0' .*cannot be created"),
        (None, "env is not set"),
    ],
)
def test_envs_that_cannot_work_are_refused(env, message):
    env_config = {} if isinstance(env, str) else {"seconds": 0}
    config = small_config(env, **env_config)
    with pytest.raises(ValueError, match=message):
        config.validate()


def test_a_misspelled_setting_is_an_error():
    with pytest.raises(TypeError, match="num_stacked_state"):
        IMPASSConfig().training(num_stacked_state=4)


def test_flattened_observations_are_accepted():
    small_config(CountingEnv, shape=(2, 3)).validate()
