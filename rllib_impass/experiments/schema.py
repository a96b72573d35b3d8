"""What an experiment may say, key by key; checked before anything looks at it."""

import math
from typing import Any

from rllib_impass.experiments.errors import UsageError
from rllib_impass.experiments.suggestions import refuse_unknown

KEYS: dict[str, tuple[type, ...]] = {
    "run": (str,),
    "env": (str, dict),
    "stop": (dict,),
    "config": (dict,),
    "num_samples": (int,),
    "time_budget_s": (int, float),
    "max_failures": (int,),
    "storage_path": (str,),
    "checkpoint_config": (dict,),
    "scheduler": (str,),
    "scheduler_config": (dict,),
}
CHECKPOINT_KEYS: dict[str, tuple[type, ...]] = {
    "checkpoint_frequency": (int,),
    "checkpoint_at_end": (bool,),
    "num_to_keep": (int,),
    "checkpoint_score_attribute": (str,),
    "checkpoint_score_order": (str,),
}
MINIMA = {"num_samples": 1, "max_failures": -1, "time_budget_s": 0}
_NAMES = {
    str: "text",
    dict: "a mapping",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
}


def check_entry(entry: dict[str, Any]) -> dict[str, Any]:
    """The entry without what is empty in it; raises UsageError if it is no entry."""
    entry = {key: value for key, value in entry.items() if value is not None}
    refuse_unknown(entry, KEYS, "the experiment")
    _check_types(entry, KEYS, "")
    for key, minimum in MINIMA.items():
        if entry.get(key, minimum) < minimum:
            raise UsageError(f"{key} must be at least {minimum}, got {entry[key]}")
    checkpoints = entry.get("checkpoint_config", {})
    refuse_unknown(checkpoints, CHECKPOINT_KEYS, "checkpoint_config")
    _check_types(checkpoints, CHECKPOINT_KEYS, "checkpoint_config.")
    _check_inside(entry, "")
    return entry


def check_stop(stop: dict[str, Any]) -> None:
    """Every criterion must be a number that can be reached."""
    for key, value in stop.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not math.isfinite(value):
            raise UsageError(f"stop.{key} must be a number, got {value!r}")


def contains_grid(value: Any) -> bool:
    """Whether there is a ``grid_search`` in a value, at any depth."""
    if isinstance(value, dict):
        return "grid_search" in value or any(map(contains_grid, value.values()))
    return isinstance(value, list) and any(map(contains_grid, value))


def _check_types(
    values: dict[str, Any], kinds: dict[str, tuple[type, ...]], prefix: str
) -> None:
    for key, value in values.items():
        # To Python, True is a whole number.
        is_bool = isinstance(value, bool) and bool not in kinds[key]
        if is_bool or not isinstance(value, kinds[key]):
            expected = " or ".join(
                _NAMES.get(kind, "true or false") for kind in kinds[key]
            )
            raise UsageError(f"{prefix}{key} must be {expected}, got {value!r}")


def _check_inside(value: Any, where: str) -> None:
    """Keys are text everywhere; a grid is a list with something in it."""
    if isinstance(value, list):
        for inner in value:
            _check_inside(inner, where)
    if not isinstance(value, dict):
        return
    for key, inner in value.items():
        if not isinstance(key, str):
            raise UsageError(f"{where.lstrip('.')}: the key {key!r} must be text")
        _check_inside(inner, f"{where}.{key}")
    grid = value.get("grid_search")
    if "grid_search" in value and (
        len(value) > 1 or not isinstance(grid, list) or not grid
    ):
        raise UsageError(
            f"{where.lstrip('.')}: expected {{grid_search: [...]}} with the values to "
            f"try, got {value!r}"
        )
