"""The actor: steps a vector env and returns arrays instead of episode objects."""

import math
import time
from typing import Any

import numpy as np
import torch
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.core.columns import Columns
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.utils.annotations import override
from ray.rllib.utils.metrics import ENV_STEP_TIMER, RLMODULE_INFERENCE_TIMER

from rllib_impass.env.episode_env_runner import EpisodeEnvRunner
from rllib_impass.env.trajectory import Trajectory
from rllib_impass.env.trajectory_recorder import TrajectoryRecorder
from rllib_impass.env.vector_envs import drop_infos
from rllib_impass.ops.returns import mean_abs_second_difference


class TrajectoryEnvRunner(EpisodeEnvRunner):
    """Samples Trajectories for training, and RLlib's episodes for everything else.

    The fast path costs one batched forward pass and one vector-env step per time step.
    Evaluation gives episodes, and so does training when ``config.why_episodes()`` gives
    a reason, through RLlib's connectors and callbacks.
    """

    @override(EpisodeEnvRunner)
    def __init__(self, *, config: AlgorithmConfig, **kwargs: Any) -> None:
        super().__init__(config=config, **kwargs)
        # None where RLlib's episodes are sampled.
        self._recorder: TrajectoryRecorder | None = None
        if self.env is not None and self._samples_trajectories:
            self._recorder = self._make_recorder()

    @property
    def _samples_trajectories(self) -> bool:
        return not self.config.in_evaluation and self.config.why_episodes() is None

    @override(EpisodeEnvRunner)
    def make_env(self) -> None:
        super().make_env()
        if self._samples_trajectories:
            drop_infos(self.env)

    @override(EpisodeEnvRunner)
    def _sample(self, **kwargs: Any) -> list[Trajectory] | list[SingleAgentEpisode]:
        if self._recorder is None:
            return super()._sample(**kwargs)
        if (
            kwargs.get("num_timesteps") != self.config.steps_per_sample
            or kwargs.get("random_actions")
            or not kwargs["explore"]
        ):
            raise ValueError(
                "an env runner that trains samples one fragment of "
                f"{self.config.steps_per_sample} steps, with exploration; use "
                "`algorithm.evaluate()` for anything else"
            )
        if kwargs.get("force_reset") or self._needs_initial_reset:
            self._reset_recorder()
        return [self._sample_trajectory()]

    @torch.inference_mode()
    def _sample_trajectory(self) -> Trajectory:
        inference_s, stepping_s, step = 0.0, 0.0, 0
        num_steps = self.config.get_rollout_fragment_length(self.worker_index)
        while step < num_steps:
            started = time.perf_counter()
            states = torch.from_numpy(self._recorder.states).to(self._device)
            out = self.module.forward_exploration({Columns.OBS: states})
            actions = out[Columns.ACTIONS].cpu().numpy()
            decided = time.perf_counter()
            try:
                # Not through `_try_env_step`: it logs each step, and `self.env` makes
                # lists of infos, which together take as long as the forward pass.
                result = self.env.env.step(self._to_action_space(actions))
            except Exception as error:
                self._rebuild_env(error)
                self._reset_recorder()
                step = 0
                continue
            stepped = time.perf_counter()
            dist_inputs = out[Columns.ACTION_DIST_INPUTS].cpu().numpy()
            self._recorder.record(actions, dist_inputs, *result[:4])
            inference_s += decided - started
            stepping_s += stepped - decided
            step += 1
        self._log_timers(inference_s / num_steps, stepping_s / num_steps)
        self._log_env_steps(self._metrics_num_try_env_step, num_steps)
        return self._cut()

    def _log_timers(self, inference_s: float, stepping_s: float) -> None:
        self.metrics.log_value(RLMODULE_INFERENCE_TIMER, inference_s, reduce="ema")
        self.metrics.log_value(ENV_STEP_TIMER, stepping_s, reduce="ema")

    def _cut(self) -> Trajectory:
        trajectory = self._recorder.cut(self._weights_seq_no)
        trajectory, num_bad_columns = trajectory.without_nonfinite_columns()
        ages = np.where(trajectory.valid, trajectory.ages[:-1], 0)
        self._log_smoothness(
            mean_abs_second_difference(np.clip(trajectory.actions, -1.0, 1.0), ages)
        )
        self._log_nonfinite(num_bad_columns)

        episodes = self._recorder.finished_episodes
        num_steps = trajectory.num_valid_steps
        self._increase_sampled_metrics(num_steps, len(episodes))
        if num_steps:
            self._log_env_steps(self._metrics_num_env_steps_sampled, num_steps)
        for episode in episodes:
            self._log_episode_metrics(
                episode.length, episode.episode_return, episode.seconds
            )
        episodes.clear()
        return trajectory

    def _reset_recorder(self) -> None:
        observations, _ = self._try_env_reset(
            seed=self._seed if self._needs_initial_reset else None
        )
        self._recorder.reset(observations)
        self._needs_initial_reset = False

    def _make_recorder(self) -> TrajectoryRecorder:
        # For good: RLlib would switch modes before and after every forward pass.
        self.module.eval()
        self._to_action_space = self._fit_to_action_space()
        return TrajectoryRecorder(
            num_steps=self.config.get_rollout_fragment_length(self.worker_index),
            num_envs=self.num_envs,
            frame_size=math.prod(self.env.single_observation_space.shape),
            action_size=math.prod(self.env.single_action_space.shape),
            num_stacked_states=self.config.num_stacked_states,
            gamma=self.config.gamma,
            num_repeated=self.config.num_repeated_steps,
        )


def forget_weights_version(runner: TrajectoryEnvRunner) -> None:
    """Makes a runner pull the newest weights before its next sample."""
    runner._weights_seq_no = 0
