"""Small configurations that run in seconds."""

import dataclasses
from pathlib import Path

from rllib_impass import D4PGConfig, IMPASSConfig

EVALUATION_EPISODES = 3


def small_config(env="InvertedPendulum-v5", config_class=IMPASSConfig, **env_config):
    """One runner of four envs, batches of 64 steps, short iterations."""
    config = _four_envs(config_class(), env, env_config)
    return config.training(train_batch_size_per_learner=64, minibatch_size=16)


def serial_config(*args, **kwargs):
    """The same in one process: starts in a second instead of ten."""
    return small_config(*args, **kwargs).env_runners(num_env_runners=0)


def small_d4pg_config(env="InvertedPendulum-v5", config_class=D4PGConfig, **env_config):
    """One runner of four envs, small networks, which learn after the second sample."""
    return (
        _four_envs(config_class(), env, env_config)
        .training(
            train_batch_size_per_learner=16,
            num_steps_sampled_before_learning_starts=32,
            replay_capacity=1000,
        )
        .rl_module(model_config={"actor_hiddens": [16], "critic_hiddens": [16]})
    )


def serial_d4pg_config(*args, **kwargs):
    """The same in one process."""
    return small_d4pg_config(*args, **kwargs).env_runners(num_env_runners=0)


def _four_envs(config, env, env_config):
    return (
        config.environment(env, env_config=env_config)
        .env_runners(
            num_env_runners=1, num_envs_per_env_runner=4, rollout_fragment_length=8
        )
        .reporting(min_time_s_per_iteration=0, min_train_timesteps_per_iteration=256)
        .debugging(seed=1)
    )


@dataclasses.dataclass
class Run:
    """Checkpoints in the order they were saved, and the evaluation of each."""

    checkpoints: list[Path]
    evaluations: list[dict]


def train_and_save(config, folder, num_iterations):
    """Evaluates and saves in every iteration."""
    config.evaluation(evaluation_interval=1, evaluation_duration=EVALUATION_EPISODES)
    algorithm = config.build_algo()
    run = Run([], [])
    try:
        for i in range(num_iterations):
            run.evaluations.append(algorithm.train()["evaluation"]["env_runners"])
            path = algorithm.save_to_path(str(folder / f"saved_{i}"))
            run.checkpoints.append(Path(path))
    finally:
        algorithm.stop()
    return run
