"""Names of the former `rllib` command and API stack, in today's words."""

from typing import Any

from ray.rllib.connectors.env_to_module import MeanStdFilter

from rllib_impass.experiments.errors import UsageError

SETTINGS = {
    "create_env_on_driver": "create_env_on_local_worker",
    "entropy_coeff_schedule": "entropy_coeff",
    "evaluation_num_episodes": "evaluation_duration",
    "evaluation_num_workers": "evaluation_num_env_runners",
    "ignore_worker_failures": "ignore_env_runner_failures",
    "lambda": "lambda_",
    "lr_schedule": "lr",
    "max_sample_requests_in_flight_per_worker": "max_requests_in_flight_per_env_runner",
    "metrics_smoothing_episodes": "metrics_num_episodes_for_smoothing",
    "min_iter_time_s": "min_time_s_per_iteration",
    "model": "model_config",
    "num_cpus_for_driver": "num_cpus_for_main_process",
    "num_cpus_per_worker": "num_cpus_per_env_runner",
    "num_envs_per_worker": "num_envs_per_env_runner",
    "num_gpus_per_worker": "num_gpus_per_env_runner",
    "num_sgd_iter": "num_epochs",
    "num_workers": "num_env_runners",
    "recreate_failed_workers": "restart_failed_env_runners",
    "sgd_minibatch_size": "minibatch_size",
    "timesteps_per_iteration": "min_sample_timesteps_per_iteration",
    "train_batch_size": "train_batch_size_per_learner",
}

# Left out with a note: they never changed what is learned, or have one value left.
IDLE_SETTINGS = {
    "compress_observations": "observations are not compressed",
    "eager_max_retraces": "torch is the only framework",
    "eager_tracing": "torch is the only framework",
    "framework": "torch is the only framework",
    "local_tf_session_args": "torch is the only framework",
    "minibatch_buffer_size": "learners queue whole batches",
    "num_aggregation_workers": "learners batch themselves",
    "num_data_load_threads": "learners load themselves",
    "num_data_loader_buffers": "learners load themselves",
    "num_multi_gpu_tower_stacks": "learners load themselves",
    "simple_optimizer": "there is one kind of optimizer loop",
    "synchronize_filters": "filters are connectors and always synchronised",
    "tf_session_args": "torch is the only framework",
    "vtrace_drop_last_ts": "no step is dropped",
}
_SCHEDULES = ("entropy_coeff_schedule", "lr_schedule")
_IDLE_PREFIXES = ("_disable_", "_enable_")

# Refused: leaving them out would train something else than the file asks for.
GONE_SETTINGS = {
    "env": "env stands beside config, not in it",
    "callbacks": "callbacks are code: use a .py file",
    "custom_evaluation_function": "it is code: use a .py file",
    "env_to_module_connector": "connectors are code: use a .py file",
    "exploration_config": "RLModules explore by their own distribution",
    "horizon": "set max_episode_steps in env_config",
    "input": "offline data needs a .py file",
    "learner_connector": "connectors are code: use a .py file",
    "module_to_env_connector": "connectors are code: use a .py file",
    "monitor": "use `rllib evaluate --video`",
    "multiagent": "multi-agent settings need a .py file",
    "no_done_at_end": "truncation is the environment's affair",
    "opt_type": "learners use Adam",
    "output": "offline data needs a .py file",
    "preprocessor_pref": "use connectors, in a .py file",
    "record_env": "use `rllib evaluate --video`",
    "render_env": "use `rllib evaluate --video`",
    "rl_module_spec": "it is code: use a .py file",
    "sample_async": "sampling is asynchronous by algorithm, not by setting",
    "sample_collector": "there are no sample collectors any more",
    "soft_horizon": "truncation is the environment's affair",
}

RESULTS = {
    "episode_len_mean": "env_runners/episode_len_mean",
    "episode_reward_max": "env_runners/episode_return_max",
    "episode_reward_mean": "env_runners/episode_return_mean",
    "episode_reward_min": "env_runners/episode_return_min",
    "episodes_total": "env_runners/num_episodes_lifetime",
    "num_env_steps_sampled": "num_env_steps_sampled_lifetime",
    "num_env_steps_trained": "learners/__all_modules__/num_env_steps_trained_lifetime",
    "timesteps_total": "num_env_steps_sampled_lifetime",
}

EXPERIMENT_KEYS = {"local_dir": "storage_path"}
CHECKPOINT_KEYS = {
    "checkpoint_at_end": "checkpoint_at_end",
    "checkpoint_freq": "checkpoint_frequency",
    "checkpoint_score_attr": "checkpoint_score_attribute",
    "keep_checkpoints_num": "num_to_keep",
}
GONE_KEYS = {
    "restore": "a checkpoint is code: give it as --restore",
    "export_formats": "use `rllib export`",
    "log_to_file": "logs are in Ray's session folder",
    "resources_per_trial": "set num_cpus_per_env_runner, num_gpus_per_learner, ... in "
    "config",
    "sync_config": "storage_path may be any shared folder",
    "trial_dirname_creator": "it is code",
    "trial_name_creator": "it is code",
}


def translate_settings(
    settings: dict[str, Any], known: set[str]
) -> tuple[dict[str, Any], list[str]]:
    """Settings of an experiment file in today's names, and a note on each change.

    Args:
        settings: the file's ``config``.
        known: settings that the algorithm has.
    """
    notes: list[str] = []
    translated: dict[str, Any] = {}
    # Schedules last: they used to win over the rates beside them.
    for name in sorted(settings, key=lambda name: name in _SCHEDULES):
        if name in GONE_SETTINGS:
            raise UsageError(
                f"config.{name} has no meaning any more: {GONE_SETTINGS[name]}"
            )
        today, note = _translate_setting(name, settings[name], known)
        for key in today:
            if key in translated and name not in _SCHEDULES:
                raise UsageError(f"config has {key} twice, once by a former name")
        translated |= today
        notes += [note] if note else []
    inner = translated.get("evaluation_config")
    if isinstance(inner, dict):
        translated["evaluation_config"], more = translate_settings(inner, known)
        notes += more
    return translated, notes


def _translate_setting(
    name: str, value: Any, known: set[str]
) -> tuple[dict[str, Any], str | None]:
    """What a setting is today, which may be nothing, and a note if that is news."""
    if name in _SCHEDULES and value is None:
        return {}, None
    if name in IDLE_SETTINGS or name.startswith(_IDLE_PREFIXES):
        return (
            {},
            f"{name} left out ({IDLE_SETTINGS.get(name, 'one API stack is left')})",
        )
    if name == "observation_filter":
        today = _observation_filter(value, known)
    elif name == "num_gpus":
        today = _num_gpus(value)
    else:
        today = {SETTINGS.get(name, name): value}
    note = f"{name} -> {', '.join(today) or 'left out'}"
    return today, None if name in today else note


def _num_gpus(value: Any) -> dict[str, Any]:
    """It was the GPUs of the one learner; today each learner has at most one."""
    if isinstance(value, int) and value > 1:
        return {"num_learners": value, "num_gpus_per_learner": 1}
    return {"num_gpus_per_learner": value}


def translate_result(name: str) -> str:
    """Today's name of a result key, for ``stop`` and ``checkpoint_score_attribute``."""
    prefix, _, rest = name.rpartition("/")
    if prefix in ("", "sampler_results"):
        return RESULTS.get(rest, name)
    if prefix in ("evaluation", "evaluation/sampler_results") and rest in RESULTS:
        return f"evaluation/{RESULTS[rest]}"
    return name


def translate_keys(entry: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The keys of an experiment, beside its settings, in today's names."""
    notes: list[str] = []
    translated: dict[str, Any] = {}
    checkpoints: dict[str, Any] = {}
    for name, value in entry.items():
        if name in GONE_KEYS:
            raise UsageError(f"{name} has no meaning in a file: {GONE_KEYS[name]}")
        if name in CHECKPOINT_KEYS:
            checkpoints[CHECKPOINT_KEYS[name]] = value
            notes.append(f"{name} -> checkpoint_config.{CHECKPOINT_KEYS[name]}")
        else:
            today = EXPERIMENT_KEYS.get(name, name)
            if today in translated:
                raise UsageError(f"{today} is there twice, once by a former name")
            translated[today] = value
            if name in EXPERIMENT_KEYS:
                notes.append(f"{name} -> {EXPERIMENT_KEYS[name]}")
    if checkpoints:
        if "checkpoint_config" in translated:
            raise UsageError(f"{min(checkpoints)} goes into checkpoint_config")
        translated["checkpoint_config"] = checkpoints
    return translated, notes


def _observation_filter(value: Any, known: set[str]) -> dict[str, Any]:
    if value == "NoFilter":
        return {}
    if value != "MeanStdFilter":
        raise UsageError(
            f"config.observation_filter={value!r} has no meaning any more: use "
            "MeanStdFilter or NoFilter"
        )
    # Ours keep the statistics in the module; RLlib's own need a connector.
    if "normalize_observations" in known:
        return {"normalize_observations": True}
    return {"env_to_module_connector": mean_std_filter}


def mean_std_filter(*args: Any, **kwargs: Any) -> MeanStdFilter:
    """RLlib's connector for what used to be ``observation_filter: MeanStdFilter``."""
    return MeanStdFilter()
