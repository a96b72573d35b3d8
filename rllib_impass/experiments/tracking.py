"""Weights & Biases beside a Tune run: whether it can be, and where it went.

What is logged, and how, is in ``wandb_logging.py``, which needs the package wandb.
"""

import dataclasses
import importlib
import json
import os
import re
import shlex
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, get_args

from ray import tune

from rllib_impass.experiments.errors import UsageError, one_line

Mode = Literal["online", "offline"]

# In the folder of a trial: which W&B run is its own, and how far it has come.
RUN_FILE = "wandb_run.json"


@dataclasses.dataclass(frozen=True)
class WandbOptions:
    """Where W&B runs go; one for each trial.

    Attributes:
        project: PROJECT or ENTITY/PROJECT.
        group: joins runs of several folders; None for the name of the folder.
        mode: "offline" writes files that `wandb sync` can upload later; None for what
            WANDB_MODE says, or else "online".
        with_video: whether to film the last checkpoint of every trial.
    """

    project: str
    group: str | None = None
    mode: Mode | None = None
    with_video: bool = False

    def __post_init__(self) -> None:
        """Settles the mode, which a resumed run shall keep."""
        mode = self.mode or os.environ.get("WANDB_MODE") or "online"
        object.__setattr__(self, "mode", mode)


def wandb_callbacks(options: WandbOptions | None) -> list[tune.Callback]:
    """What a Tune run needs in its callbacks to be logged; nothing for None.

    Raises:
        UsageError: if wandb is missing, or nobody is logged in.
    """
    if options is None:
        return []
    check_wandb(options)
    from rllib_impass.experiments.wandb_logging import WandbLogging

    return [WandbLogging(options)]


def check_wandb(options: WandbOptions) -> None:
    """Raises UsageError if logging could not work, before anything is started."""
    if not re.fullmatch(r"([^/]+/)?[^/\\#?%:]{1,128}", options.project):
        raise UsageError(
            f"--wandb {options.project}: expected PROJECT or ENTITY/PROJECT, without "
            r"any of \ # ? % :"
        )
    _import_wandb()
    if options.mode not in get_args(Mode):
        raise UsageError(f"WANDB_MODE={options.mode}; give --wandb-mode, or unset it")
    if options.mode == "online":
        check_login("choose --wandb-mode offline")


def check_login(otherwise: str) -> None:
    """Raises UsageError if W&B would ask for a key.

    Args:
        otherwise: what could be done instead of logging in.
    """
    wandb = _import_wandb()
    try:
        is_logged_in = wandb.login(prompt=False, verify=False)
    except wandb.Error as error:
        raise UsageError(f"--wandb: {one_line(error)}") from None
    if not is_logged_in:
        raise UsageError(
            "--wandb: not logged in; run `wandb login`, set WANDB_API_KEY, or "
            f"{otherwise}"
        )


def _import_wandb() -> ModuleType:
    # It greets, and says where it found a key.
    os.environ.setdefault("WANDB_SILENT", "true")
    try:
        return importlib.import_module("wandb")
    except ImportError:
        raise UsageError("--wandb needs a package: pip install wandb") from None


def where_it_went(folder: Path, options: WandbOptions) -> list[str]:
    """Lines for the end of a run: the page, or how to upload what is still here."""
    if options.mode == "offline":
        runs = f"{shlex.quote(str(folder))}/*/wandb/offline-run-*"
        return ["to upload to Weights & Biases:", f"  wandb sync {runs}"]
    pages = {read_run_file(trial).get("page") for trial in folder.glob("*/")}
    return [f"Weights & Biases: {page}" for page in sorted(filter(None, pages))]


def read_run_file(trial: Path) -> dict[str, Any]:
    """What is known of a trial's W&B run: ``id``, ``global_step``, ``page``."""
    try:
        return json.loads((trial / RUN_FILE).read_text())
    except FileNotFoundError:
        return {}


def write_run_file(trial: Path, **facts: Any) -> None:
    """Notes facts about a trial's W&B run beside those that are there."""
    part = trial / f"{RUN_FILE}.part"
    part.write_text(json.dumps(read_run_file(trial) | facts))
    # Moved into place when complete: a run may be killed at any time.
    os.replace(part, trial / RUN_FILE)
