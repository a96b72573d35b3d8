"""An experiment that has been checked, and what it becomes."""

import dataclasses
import functools
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ray import tune
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

from rllib_impass.connectors import share_connector_states
from rllib_impass.experiments import settings
from rllib_impass.experiments.checkpoint_score import (
    CHECKPOINT_SCORE,
    CheckpointScore,
)

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Experiment:
    """One entry of an experiment file.

    Attributes:
        name: the folder of its results.
        run: name of the algorithm, as Tune knows it, or its class path.
        env: name of the environment, its class path, or a grid of them; None for that
            of a Python file.
        stop: result keys and the values to stop at.
        config: settings of the algorithm.
        num_samples: how often to repeat every combination of ``grid_search``.
        time_budget_s: seconds after which Tune stops it.
        max_failures: how often a failed trial starts again from its last checkpoint.
        storage_path: where the folder of results goes, if the file says so.
        checkpoint_config: arguments of ``tune.CheckpointConfig``.
        scheduler: name of a Tune scheduler.
        scheduler_config: its arguments.
        restore: a checkpoint to start from.
        base: the config object of a Python file.
        source: what the experiment was made from, to notice changes.
        notes: what was translated from former names.
    """

    name: str
    run: str
    env: Any
    stop: dict[str, float]
    config: dict[str, Any]
    checkpoint_config: dict[str, Any]
    source: dict[str, Any]
    num_samples: int = 1
    time_budget_s: float | None = None
    max_failures: int = 0
    storage_path: str | None = None
    scheduler: str = "fifo"
    scheduler_config: dict[str, Any] = dataclasses.field(default_factory=dict)
    restore: str | None = None
    base: AlgorithmConfig | None = None
    notes: tuple[str, ...] = ()

    @property
    def algorithm_class(self) -> type[Algorithm]:
        """The class behind ``run``."""
        return settings.algorithm_class(self.run, self.base)

    def algorithm_config(self) -> AlgorithmConfig:
        """The config for Tune, with every ``grid_search`` in its place."""
        if self.base is not None:
            config = self.base.copy(copy_frozen=False)
        else:
            config = self.algorithm_class.get_default_config()
        settings.apply_settings(config, self.config)
        if self.env is not None:
            config.environment(settings.resolve_env(self.env))
        if self.restore is not None:
            restore = functools.partial(_restore, path=self.restore)
            settings.add_callback(config, "on_algorithm_init", restore)
        if self._score_key is not None:
            score = CheckpointScore(self._score_key)
            settings.add_callback(config, "on_train_result", score)
        settings.add_callback(config, "on_evaluate_start", share_connector_states)
        return config

    def tune_checkpoints(self) -> tune.CheckpointConfig:
        """Which checkpoints Tune takes and keeps."""
        arguments = self.checkpoint_config
        if self._score_key is not None:
            arguments = arguments | {"checkpoint_score_attribute": CHECKPOINT_SCORE}
        return tune.CheckpointConfig(**arguments)

    @property
    def _score_key(self) -> str | None:
        return self.checkpoint_config.get("checkpoint_score_attribute")

    def trial_configs(self) -> Iterator[AlgorithmConfig]:
        """The config of every trial, ``grid_search`` resolved."""
        return settings.variants(self.algorithm_config())

    def num_cpus(self) -> float:
        """What the largest trial asks Ray for."""
        ask = self.algorithm_class.default_resource_request
        requests = map(ask, self.trial_configs())
        return max(r.required_resources.get("CPU", 0.0) for r in requests)

    def env_backends(self) -> set[str]:
        """What steps the environments and why, for algorithms that have a choice."""
        return {
            "{} ({})".format(*config.choose_backend())
            for config in self.trial_configs()
            if hasattr(config, "choose_backend")
        }


def _restore(algorithm: Algorithm, path: str, **kwargs: Any) -> None:
    if Path(path).is_dir():
        algorithm.restore_from_path(path)
    else:
        # A run that is resumed has checkpoints of its own by now.
        logger.warning("%s, which this run started from, is gone", path)
