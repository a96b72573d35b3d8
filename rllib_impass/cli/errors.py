"""How the command fails: one line, and a code that scripts can read."""

import contextlib
import sys
from collections.abc import Iterator

import typer

from rllib_impass.experiments.errors import UsageError

USAGE = 2
INTERRUPTED = 130


@contextlib.contextmanager
def one_line_errors() -> Iterator[None]:
    """Turns a UsageError into one line on stderr, and codes that scripts can read."""
    try:
        yield
    except UsageError as error:
        print(f"rllib: {' '.join(str(error).split())}", file=sys.stderr)
        raise typer.Exit(USAGE) from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
