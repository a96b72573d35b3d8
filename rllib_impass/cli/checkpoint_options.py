"""What commands that take a checkpoint share."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rllib_impass.experiments.class_paths import import_modules
from rllib_impass.experiments.errors import UsageError

if TYPE_CHECKING:
    from rllib_impass.experiments.runs import Checkpoint

CheckpointOption = Annotated[
    str, typer.Option(help="Which one of a run: best, last, or N of checkpoint_00000N.")
]


def find(path: Path, which: str, modules: list[str] | None) -> "Checkpoint":
    """Imports what a checkpoint needs, and finds it."""
    import_modules(modules or ())
    if which not in ("best", "last") and not which.isdecimal():
        raise UsageError(f"--checkpoint {which}: choose best, last or a number")
    # Late: importing Ray takes seconds, and `--help` should not.
    from rllib_impass.experiments.runs import find_checkpoint
    from rllib_impass.registry import register_all

    register_all()
    return find_checkpoint(path, int(which) if which.isdecimal() else which)
