"""Vector environments: gymnasium's and EnvPool's behind ``gymnasium.vector.VectorEnv``.

Both use NEXT_STEP auto-reset: the step after an episode's last one ignores its action,
has reward 0 and returns the next episode's first state.
"""

import importlib.util
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray
from ray.tune.registry import ENV_CREATOR, _global_registry

from rllib_impass.env.registration import (
    OUR_ENVS,
    EnvPoolView,
    envpool_view,
    gymnasium_id,
)

BACKENDS = ("auto", "gymnasium", "envpool")


class BackendChoice(NamedTuple):
    """Which back end steps the environments, and the reason in one clause."""

    name: str
    reason: str


def choose_backend(
    requested: str,
    env: Any,
    env_config: dict[str, Any],
    why_episodes: str | None = None,
) -> BackendChoice:
    """Resolves ``vector_backend`` for an environment.

    Args:
        requested: one of BACKENDS.
        env: as in ``config.environment()``.
        env_config: as in ``config.environment()``.
        why_episodes: why RLlib's episodes are sampled, or None.

    Raises:
        ValueError: if EnvPool is asked for and cannot serve this environment.
    """
    if requested == "gymnasium":
        return BackendChoice("gymnasium", "asked for")
    obstacle = _envpool_obstacle(env, env_config)
    if obstacle is None and why_episodes is not None:
        obstacle = f"{why_episodes}, and EnvPool's envs give no infos"
    if obstacle is None:
        return BackendChoice("envpool", "it has this env with the same spaces")
    if requested == "envpool":
        raise ValueError(
            f"vector_backend='envpool' cannot run env={env!r}: {obstacle}. "
            "Use vector_backend='auto' or 'gymnasium'."
        )
    return BackendChoice("gymnasium", obstacle)


def _envpool_obstacle(env: Any, env_config: dict[str, Any]) -> str | None:
    """Why EnvPool cannot stand in for this gymnasium env, or None if it can."""
    if importlib.util.find_spec("envpool") is None:
        return "EnvPool is not installed (pip install 'rllib_impass[fast]')"
    if not isinstance(env, str) or gymnasium_id(env) not in gym.registry:
        return "only ids of gymnasium's registry can be compared with EnvPool's"
    if env not in OUR_ENVS and _global_registry.contains(ENV_CREATOR, env):
        return f"{env} is registered with Tune and may be anything"
    if env_config:
        return f"env_config {sorted(env_config)} has no counterpart in EnvPool"
    import envpool

    view = envpool_view(env)
    if view is None or view.env_id not in envpool.list_all_envs():
        return f"EnvPool has no {env}"
    reference = gym.make(gymnasium_id(env))
    try:
        return _space_difference(view, reference)
    finally:
        reference.close()


def _space_difference(view: EnvPoolView, reference: gym.Env) -> str | None:
    import envpool

    spec = envpool.make_spec(view.env_id)
    theirs, ours = spec.observation_space, reference.observation_space
    is_box = isinstance(theirs, gym.spaces.Box)
    if not is_box or _seen_part(theirs, view).shape != ours.shape:
        return f"its observations are {theirs}, gymnasium's {ours}"
    theirs, ours = spec.action_space, reference.action_space
    same_actions = (
        isinstance(theirs, gym.spaces.Box)
        and isinstance(ours, gym.spaces.Box)
        and theirs.shape == ours.shape
        and np.allclose(theirs.low, ours.low)
        and np.allclose(theirs.high, ours.high)
    )
    if not same_actions:
        return f"its actions are {theirs}, gymnasium's {ours}"
    theirs, ours = spec.config.max_episode_steps, reference.spec.max_episode_steps
    if theirs != ours:
        return f"its time limit is {theirs} steps, gymnasium's {ours}"
    return None


class EnvPoolVectorEnv(VectorEnv):
    """EnvPool's C++ environments as a gymnasium vector env.

    Args:
        env_id: an id that EnvPool and gymnasium share, or one of ours that is a view of
            one.
        num_envs: how many copies.
        seed: of the first copy; EnvPool seeds once, at creation.
    """

    def __init__(self, env_id: str, num_envs: int, seed: int) -> None:
        import envpool

        view = envpool_view(env_id)
        self._pool = envpool.make(
            view.env_id,
            env_type="gymnasium",
            num_envs=num_envs,
            seed=seed,
            num_threads=1,
        )
        self._num_seen = view.num_seen
        self.num_envs = num_envs
        self.single_observation_space = _seen_part(self._pool.observation_space, view)
        self.single_action_space = _as_float32(self._pool.action_space)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}
        self._dtype = self._pool.action_space.dtype

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Resets every copy; ``seed`` was spent at creation and is ignored here."""
        observations, _ = self._pool.reset()
        return observations[:, : self._num_seen], {}

    def step(self, actions: NDArray[Any]) -> tuple[Any, ...]:
        """Steps every copy; EnvPool's per-env infos are not passed on."""
        actions = actions.astype(self._dtype, copy=False)
        observations, *rest, _ = self._pool.step(actions)
        return observations[:, : self._num_seen], *rest, {}

    def close_extras(self, **kwargs: Any) -> None:
        """Ends EnvPool's threads."""
        self._pool.close()


def drop_infos(env: VectorEnv) -> None:
    """Has gymnasium's own vector env return no infos.

    It merges those of all copies into arrays on every step, about a tenth of Hopper's
    step, for a Trajectory that has no infos.
    """
    if isinstance(env.unwrapped, SyncVectorEnv):
        env.unwrapped._add_info = lambda infos, *_: infos


class FiniteActions(VectorWrapper):
    """Keeps non-finite actions away from a vector env; EnvPool would abort on them.

    The affected env gets the middle of its action space instead.

    Attributes:
        num_nonfinite_actions: how many actions were replaced so far.
    """

    def __init__(self, env: VectorEnv) -> None:
        super().__init__(env)
        space = env.single_action_space
        self._middle = ((space.low + space.high) / 2.0).astype(space.dtype)
        self.num_nonfinite_actions = 0

    def step(self, actions: Any) -> tuple[Any, ...]:
        """Steps the wrapped env with finite actions only."""
        actions = np.asarray(actions)
        finite = np.isfinite(actions)
        if not finite.all():
            bad = ~finite.reshape(len(actions), -1).all(axis=1)
            self.num_nonfinite_actions += int(bad.sum())
            actions = actions.copy()
            actions[bad] = self._middle
        return self.env.step(actions)


def to_action_space(
    space: gym.spaces.Box, *, normalize: bool, clip: bool
) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """RLlib's ``normalize_actions`` / ``clip_actions`` for whole batches of actions."""
    low, high, width = space.low, space.high, space.high - space.low

    def fit(actions: NDArray[Any]) -> NDArray[Any]:
        # np.clip takes four times as long for a few dozen numbers.
        return np.minimum(np.maximum(actions, low), high)

    if normalize:
        # RLlib's `unsquash_action`, operation by operation, so that both sampling
        # paths send bit-identical actions.
        return lambda actions: fit(low + (actions + 1.0) * width / 2.0)
    return fit if clip else lambda actions: actions


def _seen_part(space: gym.spaces.Box, view: EnvPoolView) -> gym.spaces.Box:
    shown = slice(None, view.num_seen)
    return gym.spaces.Box(space.low[shown], space.high[shown], dtype=space.dtype)


def _as_float32(space: gym.spaces.Box) -> gym.spaces.Box:
    """EnvPool declares float64 actions where gymnasium declares float32."""
    return gym.spaces.Box(
        space.low.astype(np.float32), space.high.astype(np.float32), dtype=np.float32
    )
