"""A process that steps environments as fast as it can, and does nothing else.

Run as a file, so that it imports neither this package nor Ray unless its environment
needs them. Reads pickled requests from stdin, answers on stdout, ends with stdin.
"""

import importlib
import itertools
import os
import pickle
import sys
import time
from collections.abc import Callable
from typing import Any, BinaryIO

import gymnasium as gym
import numpy as np

# Prepared beforehand and used in turn: drawing actions is not what is measured.
NUM_PREPARED_ACTIONS = 64


class PlainLoop:
    """Gymnasium envs, one after the other: faster than gymnasium's own vector env.

    Args:
        make: makes one env.
        num_envs: how many.
        seed: of the first one, and of the actions.
    """

    def __init__(self, make: Callable[[], gym.Env], num_envs: int, seed: int) -> None:
        self._envs = [make() for _ in range(num_envs)]
        for number, env in enumerate(self._envs):
            env.reset(seed=seed + number)
        self._actions = random_actions(self._envs[0].action_space, num_envs, seed)

    def step_for(self, seconds: float) -> tuple[int, float]:
        """Steps made, and the time that it took, resets included."""
        num_steps = 0
        actions = itertools.cycle(self._actions)
        started = time.perf_counter()
        while (elapsed := time.perf_counter() - started) < seconds:
            for env, action in zip(self._envs, next(actions), strict=True):
                _, _, terminated, truncated, _ = env.step(action)
                if terminated or truncated:
                    env.reset()
            num_steps += len(self._envs)
        return num_steps, elapsed


class Pool:
    """EnvPool's env of an id, in threads.

    Args:
        env_id: its name.
        num_envs: how many.
        num_threads: on how many threads.
        seed: of the envs and of the actions.
    """

    def __init__(self, env_id: str, num_envs: int, num_threads: int, seed: int) -> None:
        import envpool

        self._pool = envpool.make(
            env_id,
            env_type="gymnasium",
            num_envs=num_envs,
            num_threads=num_threads,
            seed=seed,
        )
        self._pool.reset()
        self._actions = random_actions(self._pool.action_space, num_envs, seed)
        self._is_over = np.zeros(num_envs, dtype=bool)

    def step_for(self, seconds: float) -> tuple[int, float]:
        """Steps made, without those that resets took, and the time that it took."""
        num_steps = 0
        actions = itertools.cycle(self._actions)
        started = time.perf_counter()
        while (elapsed := time.perf_counter() - started) < seconds:
            _, _, terminated, truncated, _ = self._pool.step(next(actions))
            num_steps += int((~self._is_over).sum())
            self._is_over = terminated | truncated
        return num_steps, elapsed


def random_actions(space: gym.spaces.Box, num_envs: int, seed: int) -> np.ndarray:
    """Some steps' worth of them, ``[n, num_envs, A]``."""
    shape = (NUM_PREPARED_ACTIONS, num_envs, *space.shape)
    drawn = np.random.default_rng(seed).uniform(space.low, space.high, shape)
    return drawn.astype(space.dtype)


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Makes the envs of the first request, then steps them for the seconds of each."""
    kind, modules, arguments = pickle.load(requests)
    for module in modules:
        importlib.import_module(module)
    if kind == "gymnasium":
        # Pickled on its own: it may need one of the modules.
        make = pickle.loads(arguments.pop("make"))
        stepper = PlainLoop(make, **arguments)
    else:
        stepper = Pool(**arguments)
    _answer(answers, "ready")
    while True:
        try:
            seconds = pickle.load(requests)
        except EOFError:
            return
        _answer(answers, stepper.step_for(seconds))


def _answer(answers: BinaryIO, value: Any) -> None:
    pickle.dump(value, answers)
    answers.flush()


def main() -> None:
    """Keeps whatever an env prints out of the answers."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        serve(sys.stdin.buffer, answers)
    except Exception as error:
        _answer(answers, RuntimeError(f"{type(error).__name__}: {error}"))


if __name__ == "__main__":
    main()
