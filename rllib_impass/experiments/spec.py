"""What to train: from a YAML file, a Python file or flags; strict in all three.

The schema is that of RLlib's former command: ``name: {run, env, stop, config, ...}``
with a flat ``config``. Nothing in a YAML file is executed.
"""

import dataclasses
import functools
import inspect
import re
import runpy
from pathlib import Path
from typing import Any

from ray import tune
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.tune.schedulers import SCHEDULER_IMPORT

from rllib_impass.experiments import settings
from rllib_impass.experiments.class_paths import TRUSTED_PACKAGES, refuse_untrusted
from rllib_impass.experiments.errors import UsageError
from rllib_impass.experiments.old_names import (
    translate_keys,
    translate_result,
    translate_settings,
)
from rllib_impass.experiments.result_keys import refuse_impossible
from rllib_impass.experiments.runs import find_checkpoint
from rllib_impass.experiments.suggestions import refuse_unknown
from rllib_impass.experiments.yaml_files import read_yaml

DEFAULT_CHECKPOINTS = {
    # Often enough to resume from, seldom enough not to be felt.
    "checkpoint_frequency": 10,
    "checkpoint_at_end": True,
}


@dataclasses.dataclass(frozen=True)
class Experiment:
    """One entry of an experiment file, checked.

    Attributes:
        name: the folder of its results.
        run: name of the algorithm, as Tune knows it, or its class path.
        env: name of the environment.
        stop: result keys and the values to stop at.
        config: settings of the algorithm.
        num_samples: how often to repeat every combination of ``grid_search``.
        time_budget_s: seconds after which Tune stops it.
        max_failures: how often a failed trial starts again from its last checkpoint.
        restore: a checkpoint to start from.
        storage_path: where the folder of results goes, if the file says so.
        checkpoint_config: arguments of ``tune.CheckpointConfig``.
        scheduler: name of a Tune scheduler.
        scheduler_config: its arguments.
        base: the config object of a Python file.
        notes: what was translated from former names.
    """

    name: str
    run: str
    env: Any
    stop: dict[str, float]
    config: dict[str, Any] = dataclasses.field(default_factory=dict)
    num_samples: int = 1
    time_budget_s: float | None = None
    max_failures: int = 0
    restore: str | None = None
    storage_path: str | None = None
    checkpoint_config: dict[str, Any] = dataclasses.field(default_factory=dict)
    scheduler: str = "fifo"
    scheduler_config: dict[str, Any] = dataclasses.field(default_factory=dict)
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
        config.environment(settings.resolve_env(self.env))
        if self.restore is not None:
            config.callbacks(
                on_algorithm_init=functools.partial(_restore, path=self.restore)
            )
        return config

    def num_cpus(self) -> float:
        """What the largest trial asks Ray for."""
        configs = settings.variants(self.algorithm_config())
        requests = map(self.algorithm_class.default_resource_request, configs)
        return max(r.required_resources.get("CPU", 0.0) for r in requests)

    def env_backends(self) -> set[str]:
        """What steps the environments and why, for algorithms that have a choice."""
        return {
            "{} ({})".format(*config.choose_backend())
            for config in settings.variants(self.algorithm_config())
            if hasattr(config, "choose_backend")
        }


FILE_KEYS = {f.name for f in dataclasses.fields(Experiment)} - {"name", "base", "notes"}


def load_experiments(
    path: Path,
    overrides: dict[str, Any] | None = None,
    trusted: tuple[str, ...] = (),
) -> list[Experiment]:
    """Reads every experiment of a file.

    Args:
        path: a local YAML or Python file; the latter is executed.
        overrides: entries, in the schema of the file, that win over the file's.
        trusted: packages, beside our own, whose classes the file may name.

    Raises:
        UsageError: with the one thing that is wrong.
    """
    if path.suffix == ".py":
        entries = {path.stem: _run_python_file(path)}
    elif path.suffix in (".yaml", ".yml"):
        entries = read_yaml(path)
    else:
        raise UsageError(f"{path}: expected a local .yaml, .yml or .py file")
    if not isinstance(entries, dict) or not entries:
        raise UsageError(f"{path}: expected `name: {{run: ..., env: ..., ...}}`")
    return [
        make_experiment(name, entry, overrides, trusted)
        for name, entry in entries.items()
    ]


def check_name(name: Any) -> None:
    """Refuses names that would lead out of the folder that runs go to."""
    if not isinstance(name, str) or not re.fullmatch(r"[\w.-]+", name) or ".." in name:
        raise UsageError(f"{name!r} is no name for a folder of results")


def make_experiment(
    name: Any,
    entry: Any,
    overrides: dict[str, Any] | None = None,
    trusted: tuple[str, ...] = (),
) -> Experiment:
    """Checks one entry; what it raises begins with the name of the experiment."""
    check_name(name)
    if not isinstance(entry, dict):
        raise UsageError(f"{name}: expected a mapping, got {entry!r}")
    try:
        experiment = _experiment(name, entry, overrides or {}, trusted)
        for config in settings.variants(experiment.algorithm_config()):
            settings.validate(config)
            _refuse_impossible_keys(experiment, config)
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from None
    return experiment


def _experiment(
    name: str,
    entry: dict[str, Any],
    overrides: dict[str, Any],
    trusted: tuple[str, ...],
) -> Experiment:
    base = entry.get("base")
    entry, notes = translate_keys({k: v for k, v in entry.items() if k != "base"})
    refuse_unknown(entry, FILE_KEYS, "the experiment")
    entry = _merge(entry, overrides)
    _check_types(entry)
    for key in ("run", "env", "stop"):
        if not entry.get(key):
            raise UsageError(f"{key} is missing")
    for key in ("run", "env", "config"):
        refuse_untrusted(entry[key], (*TRUSTED_PACKAGES, *trusted), key)
    algorithm = settings.algorithm_class(entry["run"], base)
    known = settings.builder_methods(type(algorithm.get_default_config()))
    entry["config"], more = translate_settings(entry["config"], set(known))
    entry["stop"], renamed = _translate_stop(entry["stop"])
    entry["checkpoint_config"] = _checkpoint_config(entry["checkpoint_config"])
    if entry.get("restore"):
        entry["restore"] = str(
            find_checkpoint(entry["restore"], "last").path.absolute()
        )
    notes = (*notes, *more, *renamed)
    return Experiment(name=name, base=base, notes=notes, **entry)


def _merge(entry: dict[str, Any], overrides: dict[str, Any]) -> dict[str, Any]:
    """Settings are merged; everything else, ``stop`` included, is replaced."""
    merged = entry | overrides
    for key in ("config", "checkpoint_config"):
        merged[key] = merge_settings(entry.get(key) or {}, overrides.get(key) or {})
    return merged


def merge_settings(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Merges settings at any depth; what is above wins."""
    merged = dict(below)
    for key, value in above.items():
        inner = merged.get(key)
        is_grid = isinstance(inner, dict) and "grid_search" in inner
        if isinstance(inner, dict) and isinstance(value, dict) and not is_grid:
            value = merge_settings(inner, value)
        merged[key] = value
    return merged


def _check_types(entry: dict[str, Any]) -> None:
    for key in ("stop", "config", "checkpoint_config", "scheduler_config"):
        if not isinstance(entry.get(key) or {}, dict):
            raise UsageError(f"{key} must be a mapping, got {entry[key]!r}")
    for key, minimum in (("num_samples", 1), ("max_failures", -1)):
        value = entry.get(key, minimum)
        if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
            raise UsageError(
                f"{key} must be a whole number of at least {minimum}, got {value!r}"
            )
    budget = entry.get("time_budget_s")
    if budget is not None and (not isinstance(budget, int | float) or budget <= 0):
        raise UsageError(f"time_budget_s must be seconds above 0, got {budget!r}")
    _check_scheduler(
        entry.get("scheduler", "fifo"), entry.get("scheduler_config") or {}
    )


def _check_scheduler(name: Any, arguments: dict[str, Any]) -> None:
    refuse_unknown([name], SCHEDULER_IMPORT, "scheduler")
    # Tune's `create_scheduler` leaves out, in silence, what it does not know.
    known = inspect.signature(SCHEDULER_IMPORT[name]).parameters
    refuse_unknown(arguments, known, f"scheduler_config of {name}")


def _translate_stop(stop: dict[str, Any]) -> tuple[dict[str, float], list[str]]:
    notes, translated = [], {}
    for key, value in tune.utils.util.flatten_dict(stop).items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise UsageError(f"stop.{key} must be a number, got {value!r}")
        today = translate_result(key)
        translated[today] = value
        if today != key:
            notes.append(f"{key} -> {today}")
    return translated, notes


def _checkpoint_config(given: dict[str, Any]) -> dict[str, Any]:
    known = {field.name for field in dataclasses.fields(tune.CheckpointConfig)}
    refuse_unknown(given, known, "checkpoint_config")
    config = DEFAULT_CHECKPOINTS | given
    score = config.get("checkpoint_score_attribute")
    if score is not None:
        config["checkpoint_score_attribute"] = translate_result(score)
    try:
        tune.CheckpointConfig(**config)
    except (ValueError, TypeError) as error:
        raise UsageError(f"checkpoint_config: {error}") from None
    return config


def _refuse_impossible_keys(experiment: Experiment, config: AlgorithmConfig) -> None:
    # A Python file may log metrics of its own.
    if experiment.base is not None:
        return
    has_evaluation = bool(config.evaluation_interval)
    for key in experiment.stop:
        refuse_impossible(key, "stop", has_evaluation=has_evaluation)
    score = experiment.checkpoint_config.get("checkpoint_score_attribute")
    if score is not None:
        refuse_impossible(
            score, "checkpoint_score_attribute", has_evaluation=has_evaluation
        )


def _run_python_file(path: Path) -> dict[str, Any]:
    try:
        # Under a name that no module has, so that workers get its classes by value.
        variables = runpy.run_path(str(path), run_name=f"experiment_{path.stem}")
    except Exception as error:
        raise UsageError(f"{path}: {type(error).__name__}: {error}") from None
    config = variables.get("config")
    if not isinstance(config, AlgorithmConfig) or config.algo_class is None:
        raise UsageError(f"{path}: expected a variable `config`, an AlgorithmConfig")
    algorithm = config.algo_class
    entry = {
        "run": getattr(algorithm, "__name__", algorithm),
        "env": config.env,
        "base": config,
    }
    return entry | ({"stop": variables["stop"]} if "stop" in variables else {})


def _restore(algorithm: Algorithm, path: str, **kwargs: Any) -> None:
    algorithm.restore_from_path(path)
