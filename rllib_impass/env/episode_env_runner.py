"""RLlib's runner, with envs of our choice, guarded, and faster evaluation."""

import logging
import math
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.core.columns import Columns
from ray.rllib.env.env_runner import (
    ENV_STEP_FAILURE,
    NUM_ENV_STEP_FAILURES_LIFETIME,
    EnvRunner,
)
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.utils.annotations import override
from ray.rllib.utils.metrics import ENV_RESET_TIMER

from rllib_impass.env.episodes import (
    EnvFailedError,
    ReturnsSoFar,
    is_finite,
    play_episode,
)
from rllib_impass.env.vector_envs import (
    EnvPoolVectorEnv,
    FiniteActions,
    to_action_space,
)
from rllib_impass.ops.returns import action_smoothness

logger = logging.getLogger(__name__)

ACTION_SMOOTHNESS = "action_smoothness"
NUM_NONFINITE_COLUMNS = "num_nonfinite_columns_lifetime"
NUM_NONFINITE_ACTIONS = "num_nonfinite_actions_lifetime"

# What RLlib makes of seed 0 for evaluation. Every evaluation starts from its seed, so
# that policies are compared on the same episodes, even if training itself has no seed.
DEFAULT_EVALUATION_SEED = 1_000_000

# An env that fails this often within one fragment will not get better by itself.
_MAX_ENV_FAILURES_PER_SAMPLE = 3


class EpisodeEnvRunner(SingleAgentEnvRunner):
    """Samples RLlib's episodes.

    Envs that fail are rebuilt, numbers that are not finite reach nobody, and
    deterministic evaluation leaves out RLlib's pipelines unless something was added to
    them.
    """

    @override(SingleAgentEnvRunner)
    def __init__(self, *, config: AlgorithmConfig, **kwargs: Any) -> None:
        self._num_env_builds = self._num_env_failures = 0
        self._env_is_suspect = False
        self._returns_so_far = ReturnsSoFar(config.gamma)
        super().__init__(config=config, **kwargs)

    @override(SingleAgentEnvRunner)
    def make_env(self) -> None:
        self._num_env_builds += 1
        self._returns_so_far.forget()
        env, mode = self.config.env, self.config.gym_env_vectorize_mode
        self._seed = self._spread_seed()
        if self.config.choose_backend().name == "envpool":
            self.config.env = lambda context: EnvPoolVectorEnv(
                env, context["num_envs"], self._seed
            )
            self.config.gym_env_vectorize_mode = "vector_entry_point"
        try:
            super().make_env()
        finally:
            self.config.env, self.config.gym_env_vectorize_mode = env, mode
        # Under the info wrapper, so that all ways to sample are guarded.
        self.env.env = FiniteActions(self.env.env)
        self._env_is_suspect = False

    @override(EnvRunner)
    def sample_get_state_and_metrics(self) -> tuple[Any, Any, Any] | Exception:
        # Handed over, not raised: RLlib would end this process after a minute's sleep,
        # forget the requests behind this one, and never show the driver why.
        try:
            return super().sample_get_state_and_metrics()
        except Exception as error:
            # RLlib raises a bare RuntimeError from what the env raised.
            cause = error.__cause__ or error
            return RuntimeError(f"{traceback.format_exc()}{cause!r}")

    @override(SingleAgentEnvRunner)
    def sample(self, **kwargs: Any) -> list[Any]:
        if self._env_is_suspect:
            self.make_env()
        self._num_env_failures = 0
        try:
            return super().sample(**kwargs)
        except BaseException:
            # Also after Ctrl-C: a fragment was left half-way.
            self._env_is_suspect = True
            raise

    @override(EnvRunner)
    def _try_env_step(self, actions: Any) -> Any:
        result = super()._try_env_step(actions)
        if isinstance(result, str) and result == ENV_STEP_FAILURE:
            self._count_env_failure()
        return result

    @override(EnvRunner)
    def _try_env_reset(self, **kwargs: Any) -> tuple[Any, Any]:
        # RLlib would rebuild an env that cannot be reset until Python's stack is full.
        while True:
            try:
                with self.metrics.log_time(ENV_RESET_TIMER):
                    return self.env.reset(**kwargs)
            except Exception as error:
                if not self.config.restart_failed_sub_environments:
                    raise
                logger.exception("an env cannot be reset and is made anew")
                self._count_env_failure(error)
                self.make_env()

    def _count_env_failure(self, cause: Exception | None = None) -> None:
        # The env is rebuilt, and that could go on for ever.
        self._num_env_failures += 1
        if self._num_env_failures >= _MAX_ENV_FAILURES_PER_SAMPLE:
            raise RuntimeError(
                f"env={self.config.env!r} failed {self._num_env_failures} times "
                "within one fragment; the log above has the errors"
            ) from cause

    @override(SingleAgentEnvRunner)
    def _sample(
        self,
        *,
        num_timesteps: int | None = None,
        num_episodes: int | None = None,
        explore: bool,
        random_actions: bool = False,
        force_reset: bool = False,
    ) -> list[Any]:
        is_noisy = explore or random_actions
        if num_episodes is not None and not is_noisy and self._plays_episodes:
            episodes = self._play_episodes(num_episodes)
        else:
            episodes = super()._sample(
                num_timesteps=num_timesteps,
                num_episodes=num_episodes,
                explore=explore,
                random_actions=random_actions,
                force_reset=force_reset,
            )
        return self._finish_episodes(episodes)

    @property
    def _plays_episodes(self) -> bool:
        return (
            self.config.in_evaluation
            and self.num_envs == 1
            and self.config.why_episodes() is None
        )

    @torch.inference_mode()
    def _play_episodes(self, num: int) -> list[SingleAgentEpisode]:
        """The episodes of RLlib's loop, bit for bit, in less than half its time."""
        # For good: RLlib would switch modes before and after every forward pass.
        self.module.eval()
        forward, fit = self.module.forward_inference, self._fit_to_action_space()

        def act(states: NDArray[np.float32]) -> tuple[NDArray, NDArray]:
            out = forward({Columns.OBS: torch.from_numpy(states).to(self._device)})
            actions = out[Columns.ACTIONS].cpu().numpy()
            return actions, fit(actions)

        episodes: list[SingleAgentEpisode] = []
        self._needs_initial_reset = True
        while len(episodes) < num:
            seed = self._seed if self._needs_initial_reset else None
            self._needs_initial_reset = False
            try:
                episode = play_episode(
                    self.env,
                    act,
                    num_stacked_states=self.config.num_stacked_states,
                    seed=seed,
                )
            except EnvFailedError as error:
                self._rebuild_env(error.__cause__)
                continue
            episodes.append(episode.to_numpy() if self.episodes_to_numpy else episode)
        # As RLlib does: the next ones start from the seed again.
        self._needs_initial_reset = True
        self._done_episodes_for_metrics.extend(episodes)
        num_steps = sum(map(len, episodes))
        self._log_env_steps(self._metrics_num_env_steps_sampled, num_steps)
        self._increase_sampled_metrics(num_steps, len(episodes))
        return episodes

    def _rebuild_env(self, error: Exception) -> None:
        """What RLlib does about a failed step."""
        self.metrics.log_value(NUM_ENV_STEP_FAILURES_LIFETIME, 1, reduce="lifetime_sum")
        if not self.config.restart_failed_sub_environments:
            raise RuntimeError(f"env={self.config.env!r} failed: {error!r}") from error
        logger.exception("the env failed and is rebuilt: %r", error)
        self._count_env_failure()
        self.make_env()

    @override(SingleAgentEnvRunner)
    def _log_episode_metrics(self, length: int, ret: float, sec: float) -> None:
        # One such return would make every mean it enters a NaN.
        if math.isfinite(ret):
            super()._log_episode_metrics(length, ret, sec)

    def _fit_to_action_space(self) -> Callable[[NDArray], NDArray]:
        return to_action_space(
            self.env.single_action_space,
            normalize=self.config.normalize_actions,
            clip=self.config.clip_actions,
        )

    def _spread_seed(self) -> int | None:
        """A seed of its own for every runner and every rebuilt env.

        RLlib's ``seed + worker_index`` overlaps: a vector env seeds its copies with
        consecutive numbers. Without a seed, fresh entropy (EnvPool's default is 42),
        except for evaluation.
        """
        if self.config.in_evaluation:
            if self._seed is None:
                return DEFAULT_EVALUATION_SEED + (self.worker_index or 0)
            return self._seed
        key = None
        if self.config.seed is not None:
            key = [self.config.seed, self.worker_index or 0, self._num_env_builds]
        # 31 bits less room for the consecutive seeds of the copies.
        return int(np.random.SeedSequence(key).generate_state(1)[0] % (2**31 - 2**16))

    def _finish_episodes(
        self, episodes: list[SingleAgentEpisode]
    ) -> list[SingleAgentEpisode]:
        """Leaves out what is not finite; adds what the learner needs, and metrics."""
        k = self.config.num_stacked_states
        finite = [episode for episode in episodes if is_finite(episode, k)]
        for episode in finite:
            self._log_smoothness(action_smoothness(episode.get_actions()))
            if not self.config.in_evaluation:
                self._returns_so_far.add_to(episode)
        self._log_nonfinite(len(episodes) - len(finite))
        num_left_out = sum(map(len, episodes)) - sum(map(len, finite))
        if num_left_out:
            # RLlib has counted them already; the learner will not get them.
            self._increase_sampled_metrics(-num_left_out, 0)
        return finite

    def _log_smoothness(self, value: float) -> None:
        if math.isfinite(value):
            self.metrics.log_value(ACTION_SMOOTHNESS, value, window=100)

    def _log_nonfinite(self, num_bad_columns: int) -> None:
        self.metrics.log_value(
            NUM_NONFINITE_COLUMNS, num_bad_columns, reduce="lifetime_sum"
        )
        guard: FiniteActions = self.env.env
        self.metrics.log_value(
            NUM_NONFINITE_ACTIONS, guard.num_nonfinite_actions, reduce="lifetime_sum"
        )
        guard.num_nonfinite_actions = 0
