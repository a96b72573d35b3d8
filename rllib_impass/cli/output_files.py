"""Files that a command was asked to write."""

import json
import os
from pathlib import Path
from typing import Any

from rllib_impass.experiments.errors import UsageError


def check_writable(file: Path | None, flag: str) -> None:
    """Raises UsageError if a file could not be written, before hours of work.

    Args:
        file: what was asked for; its folder may be missing.
        flag: which flag asked.
    """
    if file is None:
        return
    if file.is_dir():
        raise UsageError(f"{flag} {file} is a folder; give a file")
    folder = next(path for path in file.absolute().parents if path.exists())
    if not folder.is_dir():
        raise UsageError(f"{flag} {file}: {folder} is no folder")
    if not os.access(file if file.exists() else folder, os.W_OK):
        raise UsageError(f"{flag} {file}: no permission to write there")


def write_json(figures: Any, file: Path) -> None:
    """Writes figures, and makes the folder that they go to."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(figures, indent=2) + "\n")
    except OSError as error:
        raise UsageError(f"--json {file}: {error.strerror}; give a file") from None
