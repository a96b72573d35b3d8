"""Which code an experiment file may name: importing a module runs it."""

import importlib
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rllib_impass.experiments.errors import UsageError, one_line

TRUSTED_PACKAGES = ("rllib_impass", "ray.rllib", "gymnasium")

_CLASS_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")


def import_modules(names: Iterable[str]) -> None:
    """Imports what `--import` names, from the current folder as well.

    Puts that folder on ``PYTHONPATH`` as well, for Ray's workers.
    """
    names = list(names)
    if not names:
        return
    here = str(Path.cwd())
    # At the end: a file beside a run must not take the place of an installed package.
    sys.path.append(here)
    inherited = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (inherited, here)))
    for name in names:
        try:
            importlib.import_module(name)
        except (Exception, SystemExit) as error:
            raise UsageError(f"--import {name}: {one_line(error)}") from None


def refuse_untrusted(value: Any, trusted: Iterable[str], where: str) -> None:
    """Looks for what could name code, at any depth, and imports none of it.

    RLlib and gymnasium import much more than tidy class paths. So whatever has a dot
    or a colon in it must begin with a trusted package.
    """
    if isinstance(value, dict):
        for key, inner in value.items():
            # What is in there goes to the environment alone, as it is.
            if key != "env_config":
                refuse_untrusted(inner, trusted, f"{where}.{key}")
    elif isinstance(value, list):
        for inner in value:
            refuse_untrusted(inner, trusted, where)
    elif isinstance(value, str) and ("." in value or ":" in value):
        module = value.partition(":")[0] if ":" in value else value.rpartition(".")[0]
        if not any(module == p or module.startswith(f"{p}.") for p in trusted):
            raise UsageError(
                f"{where}={value!r} names code outside {', '.join(trusted)}; if you "
                f"trust it, add `--import {module}`"
            )


def load_class(path: str, base: type | tuple[type, ...], where: str) -> type:
    """Imports the class of a path that ``refuse_untrusted`` has let pass."""
    module, _, name = path.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"{where}={path!r}: {one_line(error)}") from None
    if not (isinstance(found, type) and issubclass(found, base)):
        raise UsageError(f"{where}={path!r} is not the kind of class that goes there")
    return found


def is_class_path(value: Any) -> bool:
    """Whether a setting reads like ``package.module.Class``."""
    return isinstance(value, str) and _CLASS_PATH.fullmatch(value) is not None
