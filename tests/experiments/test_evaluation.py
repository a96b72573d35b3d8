"""A checkpoint is evaluated exactly as it was inside training."""

import os
import sys

import imageio
import numpy as np
import pytest
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.algorithms.sac import SACConfig

from configs import EVALUATION_EPISODES, serial_config, train_and_save
from new_process import run_python
from rllib_impass.experiments.errors import UsageError
from rllib_impass.experiments.evaluation import evaluate
from toy_envs import FaultyEnv, GoalEnv


def assert_equal_to_training(run, index, evaluation):
    trained = run.evaluations[index]
    assert evaluation.mean == trained["episode_return_mean"]
    figures = evaluation.to_dict()
    assert figures["return_min"] == trained["episode_return_min"]
    assert figures["return_max"] == trained["episode_return_max"]
    assert figures["length_mean"] == trained["episode_len_mean"]


def test_it_equals_the_evaluation_inside_training(run):
    # From the newest to the oldest: EnvRunners ignore weights that are not newer.
    for index in (2, 1, 0):
        evaluation = evaluate(run.checkpoints[index], episodes=EVALUATION_EPISODES)
        assert_equal_to_training(run, index, evaluation)
        assert evaluation.iteration == index + 1
        smoothness = run.evaluations[index]["action_smoothness"]
        assert evaluation.action_smoothness == pytest.approx(smoothness, rel=1e-6)
    assert len({e["episode_return_mean"] for e in run.evaluations}) == 3


def test_it_equals_the_evaluation_inside_training_without_a_seed(single_state_run):
    evaluation = evaluate(single_state_run.checkpoints[1], episodes=EVALUATION_EPISODES)
    assert_equal_to_training(single_state_run, 1, evaluation)


def test_it_equals_the_evaluation_of_several_remote_runners(ray_session, tmp_path):
    config = serial_config("Hopper-v5").evaluation(evaluation_num_env_runners=2)
    run = train_and_save(config, tmp_path, 1)
    first, second, third = evaluate(run.checkpoints[0], episodes=3).returns
    trained = run.evaluations[0]
    # RLlib reports the mean of its runners' means.
    mean = np.mean([np.mean([first, second]), third])
    assert mean == pytest.approx(trained["episode_return_mean"], rel=1e-12)
    assert max(first, second, third) == trained["episode_return_max"]


@pytest.mark.parametrize(
    ("config", "has_smoothness"),
    [
        (
            PPOConfig()
            .environment("CartPole-v1")
            .training(train_batch_size_per_learner=200, num_epochs=1),
            False,
        ),
        (
            SACConfig()
            .environment("Pendulum-v1")
            .training(
                num_steps_sampled_before_learning_starts=50,
                train_batch_size_per_learner=32,
            )
            .env_runners(rollout_fragment_length=50)
            .rl_module(model_config={"fcnet_hiddens": [16]}),
            True,
        ),
    ],
    ids=["PPO", "SAC"],
)
def test_rllibs_own_algorithms_are_evaluated(
    ray_session, tmp_path, config, has_smoothness
):
    config.env_runners(num_env_runners=0, num_envs_per_env_runner=1)
    config.debugging(seed=3).evaluation(evaluation_config={"explore": False})
    run = train_and_save(config, tmp_path, 1)
    evaluation = evaluate(run.checkpoints[0], episodes=EVALUATION_EPISODES)
    assert_equal_to_training(run, 0, evaluation)
    assert (evaluation.action_smoothness is not None) == has_smoothness


def test_seeds_and_exploration_matter(run):
    default, again, other = (
        evaluate(run.checkpoints[0], episodes=2, seed=seed) for seed in (None, 1, 2)
    )
    assert default.returns == again.returns
    assert default.returns != other.returns
    explored = evaluate(run.checkpoints[0], episodes=2, explore=True)
    assert explored.returns != default.returns


def test_success_is_counted_where_the_env_tells(ray_session, tmp_path, run):
    checkpoint = train_and_save(serial_config(GoalEnv), tmp_path, 1).checkpoints[0]
    evaluation = evaluate(checkpoint, episodes=5)
    assert evaluation.success_rate == pytest.approx(3 / 5)
    assert evaluation.lengths == (3,) * 5
    assert evaluation.env == "GoalEnv"
    with pytest.raises(UsageError, match=r"renders nothing|no frame"):
        evaluate(checkpoint, episodes=1, video_dir=tmp_path / "videos")
    assert not (tmp_path / "videos").exists()
    assert evaluate(run.checkpoints[0], episodes=1).success_rate is None


def test_broken_episodes_are_an_error(ray_session, tmp_path):
    config = serial_config(FaultyEnv, fault="nan_reward", at_step=10**9)
    algorithm = config.build_algo()
    algorithm.train()
    algorithm.config.env_config["at_step"] = 0
    path = algorithm.save_to_path(str(tmp_path / "saved"))
    algorithm.stop()
    with pytest.raises(UsageError, match="2 of 2 episodes had"):
        evaluate(path, episodes=2)


def test_a_film_changes_nothing(run, tmp_path):
    ended = []
    plain = evaluate(run.checkpoints[2], episodes=2)
    filmed = evaluate(
        run.checkpoints[2],
        episodes=2,
        video_dir=tmp_path,
        on_episode_end=lambda: ended.append(1),
    )
    assert filmed.returns == plain.returns
    assert len(ended) == 2
    (file,) = filmed.videos
    with imageio.get_reader(file) as reader:
        metadata = reader.get_meta_data()
        frames = np.stack(tuple(reader.iter_data()))
    assert metadata["codec"] == "h264"
    assert metadata["pix_fmt"].startswith("yuv420p")
    # Hopper's 125 steps a second, in real time, at no more than 30 frames.
    assert metadata["fps"] == 25
    assert frames.shape[1:] == (480, 480, 3)
    # The first state and every fifth one; and something moves.
    assert len(frames) == filmed.lengths[0] // 5 + 1
    assert np.abs(frames[0].astype(int) - frames[-1]).max() > 50


def test_a_machine_without_graphics_is_told_in_one_line(run, tmp_path):
    script = f"""
        from rllib_impass.experiments.errors import UsageError
        from rllib_impass.experiments.evaluation import evaluate
        try:
            evaluate({str(run.checkpoints[0])!r}, video_dir={str(tmp_path)!r})
        except UsageError as error:
            print(error)
    """
    path = os.pathsep.join(sys.path)
    done = run_python(script, timeout=100, MUJOCO_GL="osmesa", PYTHONPATH=path)
    (line,) = done.stdout.splitlines()
    assert "set MUJOCO_GL" in line
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert not list(tmp_path.iterdir())
