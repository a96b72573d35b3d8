"""Measures the policy of a checkpoint, exactly as evaluation inside training does."""

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.env.single_agent_episode import SingleAgentEpisode

from rllib_impass.experiments.checkpoint import (
    SavedAlgorithm,
    evaluation_config,
    make_runner,
    read_algorithm,
)
from rllib_impass.experiments.errors import UsageError
from rllib_impass.experiments.settings import add_callback
from rllib_impass.experiments.video import VideoRecorder
from rllib_impass.ops.returns import action_smoothness

SUCCESS_INFOS = ("is_success", "success")


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """How well a policy did.

    Attributes:
        algorithm: its name.
        env: name of the environment.
        checkpoint: path of the checkpoint.
        iteration: training iterations behind the checkpoint.
        num_env_steps: env steps behind the checkpoint, if known.
        seed: decides the episodes.
        explore: whether actions were sampled or the most likely ones.
        returns: undiscounted, one for each episode.
        lengths: steps of each episode.
        success_rate: share of successful episodes, if the env tells (``is_success`` or
            ``success`` in an episode's last info).
        action_smoothness: mean absolute second difference of the actions, clipped to
            [-1, 1], averaged over episodes; lower is smoother; None for discrete ones.
        videos: the files written.
    """

    algorithm: str
    env: str
    checkpoint: str
    iteration: int
    num_env_steps: int | None
    seed: int
    explore: bool
    returns: tuple[float, ...]
    lengths: tuple[int, ...]
    success_rate: float | None
    action_smoothness: float | None
    videos: tuple[str, ...]

    @property
    def mean(self) -> float:
        """Mean return."""
        return float(np.mean(self.returns))

    def to_dict(self) -> dict[str, Any]:
        """Everything, the statistics of the returns included, ready for JSON."""
        return dataclasses.asdict(self) | {
            "num_episodes": len(self.returns),
            "return_mean": self.mean,
            # Of these very episodes, not an estimate for all.
            "return_std": float(np.std(self.returns)),
            "return_median": float(np.median(self.returns)),
            "return_min": min(self.returns),
            "return_max": max(self.returns),
            "length_mean": float(np.mean(self.lengths)),
        }


def evaluate(
    checkpoint: str | Path,
    *,
    episodes: int = 10,
    seed: int | None = None,
    explore: bool = False,
    video_dir: str | Path | None = None,
    video_episodes: int = 1,
    on_episode_end: Callable[[], None] | None = None,
) -> Evaluation:
    """Evaluates the policy of a checkpoint in this process, without starting Ray.

    Episodes come one after the other from one env. For the seed of the training run,
    and as many episodes as ``evaluation_duration``, they are those of the evaluation
    inside training. Sets the global random seeds, as RLlib does.

    Args:
        checkpoint: its folder; see ``find_checkpoint``. Loading it executes code: load
            only what you trust.
        episodes: how many, exactly.
        seed: as in ``config.debugging(seed=...)``; None for that of the training run,
            and 0 if it had none.
        explore: sample actions instead of taking the most likely one.
        video_dir: where to write videos; None for no videos.
        video_episodes: how many episodes to film, from the first one on.
        on_episode_end: called after each episode.

    Raises:
        UsageError: for whatever is wrong with the arguments or the checkpoint.
    """
    if episodes < 1:
        raise UsageError(f"episodes must be at least 1, got {episodes}")
    saved = read_algorithm(Path(checkpoint))
    config = evaluation_config(saved, seed)
    if on_episode_end is not None:
        add_callback(config, "on_episode_end", lambda **_: on_episode_end())
    recorder = None
    if video_dir is not None:
        recorder = VideoRecorder(Path(video_dir), saved.path.name, video_episodes)
        _film(config, recorder)
    try:
        sampled = [
            episode
            for worker_index, share in _shares(saved.config, episodes)
            for episode in _sample(saved, config, worker_index, share, explore)
        ]
    finally:
        if recorder is not None:
            recorder.close()
    if len(sampled) < episodes:
        raise UsageError(
            f"{saved.path}: {episodes - len(sampled)} of {episodes} episodes had "
            f"observations, rewards or actions that are not finite; {saved.env_name} "
            "or the policy is broken"
        )
    videos = recorder.files if recorder is not None else []
    return _summarize(saved, config.seed, explore, sampled, videos)


def _summarize(
    saved: SavedAlgorithm,
    seed: int,
    explore: bool,
    episodes: list[SingleAgentEpisode],
    videos: list[Path],
) -> Evaluation:
    return Evaluation(
        algorithm=saved.name,
        env=saved.env_name,
        checkpoint=str(saved.path),
        iteration=saved.iteration,
        num_env_steps=saved.num_env_steps,
        seed=seed,
        explore=explore,
        returns=tuple(float(episode.get_return()) for episode in episodes),
        lengths=tuple(map(len, episodes)),
        success_rate=_success_rate(episodes),
        action_smoothness=_action_smoothness(episodes),
        videos=tuple(map(str, videos)),
    )


def _sample(
    saved: SavedAlgorithm,
    config: AlgorithmConfig,
    worker_index: int,
    num_episodes: int,
    explore: bool,
) -> list[SingleAgentEpisode]:
    runner = make_runner(saved, config, worker_index)
    try:
        return runner.sample(num_episodes=num_episodes, explore=explore)
    finally:
        runner.stop()


def _shares(trained: AlgorithmConfig, episodes: int) -> list[tuple[int, int]]:
    """Worker indices and their episodes, as RLlib spreads them over its runners."""
    num_runners = trained.evaluation_num_env_runners
    if num_runners == 0:
        return [(0, episodes)]
    each, rest = divmod(episodes, num_runners)
    shares = [(i, each + (i <= rest)) for i in range(1, num_runners + 1)]
    return [(i, share) for i, share in shares if share]


def _film(config: AlgorithmConfig, recorder: VideoRecorder) -> None:
    config.env_config = {**config.env_config, "render_mode": "rgb_array"}
    # Functions, not methods: RLlib deep-copies the config, and with a bound method the
    # object it belongs to.
    add_callback(config, "on_episode_start", lambda env, **_: recorder.start(env))
    add_callback(config, "on_episode_step", lambda env, **_: recorder.capture(env))
    add_callback(config, "on_episode_end", lambda **_: recorder.close())


def _success_rate(episodes: list[SingleAgentEpisode]) -> float | None:
    infos = [episode.get_infos(-1) for episode in episodes]
    for key in SUCCESS_INFOS:
        successes = [bool(info[key]) for info in infos if key in info]
        if successes:
            return float(np.mean(successes))
    return None


def _action_smoothness(episodes: list[SingleAgentEpisode]) -> float | None:
    space = episodes[0].action_space
    if not isinstance(space, gym.spaces.Box) or space.dtype.kind != "f":
        return None
    values = [action_smoothness(episode.get_actions()) for episode in episodes]
    finite = [value for value in values if math.isfinite(value)]
    return float(np.mean(finite)) if finite else None
