"""Which code an experiment file may name: importing a module runs it."""

import contextlib
import importlib
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rllib_impass.experiments.errors import UsageError

TRUSTED_PACKAGES = ("rllib_impass", "ray.rllib", "gymnasium")

_CLASS_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")
_MODULE_AND_ENV = re.compile(r"([A-Za-z_][\w.]*):(.+)")


def import_modules(names: Iterable[str]) -> None:
    """Imports what `--import` names, from the current folder as well.

    Ray's workers find the folder through ``PYTHONPATH``: call this before it starts.
    """
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    inherited = os.environ.get("PYTHONPATH")
    if here not in (inherited or "").split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (here, inherited)))
    for name in names:
        try:
            importlib.import_module(name)
        except Exception as error:
            raise UsageError(f"--import {name}: {error}") from None


def refuse_untrusted(value: Any, trusted: Iterable[str], where: str) -> None:
    """Looks for class paths in settings, at any depth, and imports none of them."""
    if isinstance(value, dict):
        for key, inner in value.items():
            # What is in there goes to the environment alone, as it is.
            if key != "env_config":
                refuse_untrusted(inner, trusted, f"{where}.{key}")
    elif isinstance(value, list):
        for inner in value:
            refuse_untrusted(inner, trusted, where)
    elif isinstance(value, str):
        module = _module_of(value)
        if module is not None and not _is_in(module, trusted):
            raise UsageError(
                f"{where}={value!r} names code outside {', '.join(trusted)}; if you "
                f"trust it, add `--import {module}`"
            )


def _is_in(module: str, packages: Iterable[str]) -> bool:
    return any(module == p or module.startswith(f"{p}.") for p in packages)


def load_class(path: str, where: str) -> type:
    """Imports the class of a path that `refuse_untrusted` has let pass."""
    module, _, name = path.rpartition(".")
    with contextlib.suppress(ImportError, AttributeError):
        return getattr(importlib.import_module(module), name)
    raise UsageError(f"{where}={path!r} does not exist")


def is_class_path(value: Any) -> bool:
    """Whether a setting reads like ``package.module.Class``."""
    return isinstance(value, str) and _CLASS_PATH.fullmatch(value) is not None


def _module_of(value: str) -> str | None:
    if match := _MODULE_AND_ENV.fullmatch(value):
        return match.group(1)
    return value.rpartition(".")[0] if _CLASS_PATH.fullmatch(value) else None
