"""Reads what to train: from a YAML file, a Python file or flags; strict in all three.

The schema is that of RLlib's former command: ``name: {run, env, stop, config, ...}``
with a flat ``config``. Nothing in a YAML file is executed.
"""

import hashlib
import re
import runpy
from pathlib import Path
from typing import Any

from ray import tune
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.tune.utils import flatten_dict

from rllib_impass.experiments import settings
from rllib_impass.experiments.checkpoint import read_algorithm
from rllib_impass.experiments.class_paths import TRUSTED_PACKAGES, refuse_untrusted
from rllib_impass.experiments.errors import UsageError, one_line
from rllib_impass.experiments.experiment import Experiment
from rllib_impass.experiments.old_names import (
    translate_keys,
    translate_result,
    translate_settings,
)
from rllib_impass.experiments.result_keys import refuse_impossible
from rllib_impass.experiments.runs import find_checkpoint
from rllib_impass.experiments.schedulers import make_scheduler
from rllib_impass.experiments.schema import check_entry, check_stop
from rllib_impass.experiments.yaml_files import read_yaml

DEFAULT_CHECKPOINTS = {
    # Often enough to resume from, seldom enough not to be felt.
    "checkpoint_frequency": 10,
    "checkpoint_at_end": True,
}


def load_experiments(
    path: Path,
    overrides: dict[str, Any] | None = None,
    trusted: tuple[str, ...] = (),
    restore: Path | None = None,
) -> list[Experiment]:
    """Reads every experiment of a file.

    Args:
        path: a local YAML or Python file; the latter is executed.
        overrides: entries, in the schema of the file, that win over the file's.
        trusted: packages, beside our own, whose classes the file may name.
        restore: a checkpoint, or a run, to start from.

    Raises:
        UsageError: with the one thing that is wrong.
    """
    base = None
    if path.suffix == ".py":
        base, entry = _run_python_file(path)
        entries = {path.stem: entry}
    elif path.suffix in (".yaml", ".yml"):
        entries = read_yaml(path)
    else:
        raise UsageError(f"{path}: expected a local .yaml, .yml or .py file")
    if not isinstance(entries, dict) or not entries:
        raise UsageError(f"{path}: expected `name: {{run: ..., env: ..., ...}}`")
    digest = hashlib.sha256(path.read_bytes()).hexdigest() if base is not None else ""
    return [
        make_experiment(name, entry, overrides, trusted, restore, base, digest)
        for name, entry in entries.items()
    ]


def make_experiment(
    name: Any,
    entry: Any,
    overrides: dict[str, Any] | None = None,
    trusted: tuple[str, ...] = (),
    restore: Path | None = None,
    base: AlgorithmConfig | None = None,
    digest: str = "",
) -> Experiment:
    """Checks one entry; what it raises begins with the name of the experiment.

    Args:
        name: of the experiment.
        entry: what the file says of it.
        overrides: what flags say, in the same schema.
        trusted: packages whose classes may be named.
        restore: a checkpoint, or a run, to start from.
        base: the config object of a Python file.
        digest: of that file.
    """
    check_name(name)
    if not isinstance(entry, dict):
        raise UsageError(f"{name}: expected a mapping, got {entry!r}")
    try:
        merged, notes = _merge_translated(entry, overrides or {}, trusted, base)
        source = merged.pop("source") | {"digest": digest}
        experiment = Experiment(
            name=name,
            base=base,
            source=source,
            notes=tuple(notes),
            restore=_restorable(restore, merged["run"]),
            **merged,
        )
        make_scheduler(experiment)
        for config in experiment.trial_configs():
            settings.validate(config)
            if base is None:
                settings.refuse_unknown_model_settings(config)
                _refuse_impossible_keys(experiment, config)
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from None
    return experiment


def check_name(name: Any) -> None:
    """Refuses names that would lead out of the folder that runs go to."""
    if not isinstance(name, str) or not re.fullmatch(r"[\w.-]+", name) or ".." in name:
        raise UsageError(f"{name!r} is no name for a folder of results")


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


def _merge_translated(
    entry: dict[str, Any],
    overrides: dict[str, Any],
    trusted: tuple[str, ...],
    base: AlgorithmConfig | None,
) -> tuple[dict[str, Any], list[str]]:
    """File and flags, each translated and checked, as one; and notes on it.

    Settings are merged; everything else, ``stop`` included, is replaced.
    """
    below, notes = translate_keys(entry)
    above, more = translate_keys(overrides)
    below, above = check_entry(below), check_entry(above)
    merged = below | above
    if base is not None:
        merged.setdefault("env", None)
    for key in ("run", "env", "stop"):
        if not merged.get(key) and not (key == "env" and base is not None):
            raise UsageError(f"{key} is missing")
    for part in (below, above):
        for key in ("run", "env", "config"):
            refuse_untrusted(part.get(key), (*TRUSTED_PACKAGES, *trusted), key)
    algorithm = settings.algorithm_class(merged["run"], base)
    known = set(settings.builder_methods(type(algorithm.get_default_config())))
    for key in ("config", "checkpoint_config"):
        merged[key] = merge_settings(below.get(key, {}), above.get(key, {}))
    source = dict(merged)
    below_config, notes_below = translate_settings(below.get("config", {}), known)
    above_config, notes_above = translate_settings(above.get("config", {}), known)
    merged["config"] = merge_settings(below_config, above_config)
    merged["stop"], notes_stop = _translate_stop(merged["stop"])
    merged["checkpoint_config"], notes_score = _checkpoint_config(
        merged["checkpoint_config"]
    )
    notes = [*notes, *more, *notes_below, *notes_above, *notes_stop, *notes_score]
    return merged | {"source": source}, notes


def _translate_stop(stop: dict[str, Any]) -> tuple[dict[str, float], list[str]]:
    flat = flatten_dict(stop)
    check_stop(flat)
    renamed = {key: translate_result(key) for key in flat}
    notes = [f"{key} -> {today}" for key, today in renamed.items() if key != today]
    return {renamed[key]: value for key, value in flat.items()}, notes


def _checkpoint_config(given: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    config, notes = DEFAULT_CHECKPOINTS | given, []
    score = config.get("checkpoint_score_attribute")
    if score is not None:
        today = translate_result(score)
        config["checkpoint_score_attribute"] = today
        notes = [] if today == score else [f"{score} -> {today}"]
    try:
        tune.CheckpointConfig(**config)
    except (ValueError, TypeError) as error:
        raise UsageError(f"checkpoint_config: {error}") from None
    return config, notes


def _restorable(path: Path | None, run: str) -> str | None:
    if path is None:
        return None
    found = find_checkpoint(path, "last").path.absolute()
    saved = read_algorithm(found)
    if saved.name != run.rpartition(".")[2]:
        raise UsageError(f"{found} is a checkpoint of {saved.name}, not of {run}")
    return str(found)


def _refuse_impossible_keys(experiment: Experiment, config: AlgorithmConfig) -> None:
    keys = [(key, "stop") for key in experiment.stop]
    score = experiment.checkpoint_config.get("checkpoint_score_attribute")
    if score is not None:
        keys.append((score, "checkpoint_score_attribute"))
    for key, where in keys:
        refuse_impossible(key, where, has_evaluation=bool(config.evaluation_interval))


def _run_python_file(path: Path) -> tuple[AlgorithmConfig, dict[str, Any]]:
    try:
        # Under a name that no module has, so that workers get its classes by value.
        variables = runpy.run_path(str(path), run_name=f"experiment_{path.stem}")
    except (Exception, SystemExit) as error:
        raise UsageError(f"{path}: {one_line(error)}") from None
    config = variables.get("config")
    if not isinstance(config, AlgorithmConfig) or config.algo_class is None:
        raise UsageError(f"{path}: expected a variable `config`, an AlgorithmConfig")
    algorithm = config.algo_class
    entry = {"run": getattr(algorithm, "__name__", algorithm)}
    return config, entry | ({"stop": variables["stop"]} if "stop" in variables else {})
