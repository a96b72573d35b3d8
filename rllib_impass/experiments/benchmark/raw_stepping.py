"""Environments alone, on all cores: what no training can beat."""

import functools
import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
from ray import cloudpickle
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.env.env_context import EnvContext
from ray.tune.registry import ENV_CREATOR, _global_registry

from rllib_impass.experiments.benchmark.measurement import Slice
from rllib_impass.experiments.benchmark.process_usage import (
    Processes,
    UsageMeter,
    num_cores,
)

NUM_ENVS_PER_CORE = 32
WARM_UP_S = 0.5

_WORKER = Path(__file__).with_name("raw_worker.py")
# Not `python FILE`: that would let the file's neighbours shadow other modules.
_RUN_WORKER = "import runpy, sys; runpy.run_path(sys.argv[1], run_name='__main__')"


class RawStepping:
    """Random actions, no policy, no Ray: EnvPool's threads, or a process per core.

    Args:
        name: of the contender.
        backend: "envpool" or "gymnasium".
        config: whose environment to step.
        modules: what the workers import first.
    """

    warm_up_s = WARM_UP_S
    num_cpus = 0

    def __init__(
        self,
        name: str,
        backend: str,
        config: AlgorithmConfig,
        modules: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.backend = backend
        self._requests = _requests(backend, config, tuple(modules))
        self._workers: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Starts the workers and waits until they could step."""
        command = [sys.executable, "-W", "ignore", "-c", _RUN_WORKER, str(_WORKER)]
        for request in self._requests:
            worker = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                # Ctrl-C is for us; we end them.
                start_new_session=True,
            )
            self._workers.append(worker)
            _send(worker, request)
        for worker in self._workers:
            self._receive(worker)

    def measure(self, seconds: float, on_tick: Callable[[float], None]) -> Slice:
        """Steps for a while, after a while that does not count.

        Args:
            seconds: how long.
            on_tick: called with the seconds that have passed since the last call.
        """
        self._step_for(WARM_UP_S)
        on_tick(WARM_UP_S)
        pids = tuple(worker.pid for worker in self._workers)
        with UsageMeter(Processes(runners=pids)) as meter:
            answers = self._step_for(seconds)
        on_tick(seconds)
        return Slice(
            seconds=max(elapsed for _, elapsed in answers),
            num_sampled=sum(num_steps for num_steps, _ in answers),
            num_trained=None,
            usage=meter.usage,
        )

    def stop(self) -> None:
        """Ends the workers, whatever they do."""
        for worker in self._workers:
            worker.kill()
            worker.wait()
            worker.stdin.close()
            worker.stdout.close()
        self._workers.clear()

    def _step_for(self, seconds: float) -> list[tuple[int, float]]:
        for worker in self._workers:
            _send(worker, seconds)
        return [self._receive(worker) for worker in self._workers]

    def _receive(self, worker: subprocess.Popen[bytes]) -> Any:
        try:
            answer = pickle.load(worker.stdout)
        except EOFError:
            answer = RuntimeError(f"its process ended with code {worker.wait()}")
        if isinstance(answer, Exception):
            raise RuntimeError(f"{self.name}: {answer}")
        return answer


def _requests(
    backend: str, config: AlgorithmConfig, modules: tuple[str, ...]
) -> list[tuple[str, tuple[str, ...], dict[str, Any]]]:
    """What each worker is to make."""
    cores = num_cores()
    if backend == "envpool":
        arguments = {
            "env_id": config.envpool_id,
            "num_envs": NUM_ENVS_PER_CORE * cores,
            "num_threads": cores,
            "seed": 0,
        }
        return [(backend, modules, arguments)]
    make = cloudpickle.dumps(_env_maker(config))
    return [
        (
            backend,
            modules,
            {
                "make": make,
                "num_envs": NUM_ENVS_PER_CORE,
                "seed": core * NUM_ENVS_PER_CORE,
            },
        )
        for core in range(cores)
    ]


def _env_maker(config: AlgorithmConfig) -> Callable[[], gym.Env]:
    env = config.env
    is_tunes = isinstance(env, str) and _global_registry.contains(ENV_CREATOR, env)
    if isinstance(env, str) and not is_tunes:
        # RLlib's own way would import Ray in every worker.
        return functools.partial(gym.make, env)
    _, creator = Algorithm._get_env_id_and_creator(env, config)
    return functools.partial(creator, EnvContext(config.env_config, worker_index=0))


def _send(worker: subprocess.Popen[bytes], request: Any) -> None:
    pickle.dump(request, worker.stdin)
    worker.stdin.flush()
