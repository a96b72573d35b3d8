"""What commands that take a checkpoint share."""

import contextlib
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rllib_impass.experiments.errors import UsageError

if TYPE_CHECKING:
    from rllib_impass.experiments.runs import Checkpoint

CheckpointOption = Annotated[
    str, typer.Option(help="Which one of a run: best, last, or N of checkpoint_00000N.")
]
ImportOption = Annotated[
    list[str] | None,
    typer.Option("--import", metavar="MODULE", help="Import it first; repeatable."),
]


@contextlib.contextmanager
def one_line_errors() -> Iterator[None]:
    """Turns what a person can mend into one line on stderr and exit code 2."""
    try:
        yield
    except UsageError as error:
        typer.echo(f"rllib: {error}", err=True)
        raise typer.Exit(2) from None


def find(path: Path, which: str, modules: list[str] | None) -> "Checkpoint":
    """Imports what a checkpoint needs, and finds it."""
    # As `python -m` does: people keep their environments beside their runs.
    sys.path.insert(0, "")
    for module in modules or ():
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise UsageError(f"--import {module}: {error}") from None
    if which not in ("best", "last") and not which.isdecimal():
        raise UsageError(f"--checkpoint {which}: choose best, last or a number")
    from rllib_impass.experiments.runs import find_checkpoint

    return find_checkpoint(path, int(which) if which.isdecimal() else which)
