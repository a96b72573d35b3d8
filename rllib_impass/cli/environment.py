"""Environment variables for a while: much of Tune can be set by nothing else."""

import contextlib
import os
from collections.abc import Iterator, Mapping


@contextlib.contextmanager
def environment_defaults(defaults: Mapping[str, str]) -> Iterator[None]:
    """Sets the variables that the user has not set, and unsets them again."""
    unset = {name: text for name, text in defaults.items() if name not in os.environ}
    os.environ.update(unset)
    try:
        yield
    finally:
        for name in unset:
            os.environ.pop(name, None)
