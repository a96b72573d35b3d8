"""IMPASS for Ray RLlib: V-trace actor-learners for continuous control."""

import importlib
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rllib_impass.registry import (
        D4PG,
        IMPASS,
        ApexDPG,
        ApexDPGConfig,
        D4PGConfig,
        IMPALANoSS,
        IMPALANoSSConfig,
        IMPASSConfig,
    )

__version__ = version("rllib_impass")

__all__ = [
    "D4PG",
    "IMPASS",
    "ApexDPG",
    "ApexDPGConfig",
    "D4PGConfig",
    "IMPALANoSS",
    "IMPALANoSSConfig",
    "IMPASSConfig",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(importlib.import_module("rllib_impass.registry"), name)
    raise AttributeError(f"module 'rllib_impass' has no attribute {name!r}")


# `import rllib_impass` registers everything with Tune. Not in the `rllib` command: Ray
# takes seconds to import, which `--help` and the TAB key have no use for.
if Path((sys.argv or [""])[0]).name not in ("rllib", "rllib.exe"):
    importlib.import_module("rllib_impass.registry").register_all()
