"""What a run directory must hold to be understood in a year."""

import dataclasses
import datetime
import json
import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

from rllib_impass.experiments.errors import UsageError
from rllib_impass.experiments.experiment import Experiment
from rllib_impass.experiments.tracking import WandbOptions
from rllib_impass.experiments.versions import versions

FILE_NAME = "run.json"

_SECRET = re.compile(
    r"api_?key|access_?key|private_?key|secret|token|passw|credential|auth",
    re.IGNORECASE,
)
# Says nothing of what is trained.
_UNIMPORTANT_SETTINGS = ("log_level",)


def write_record(
    folder: Path,
    experiment: Experiment,
    command: list[str],
    wandb: WandbOptions | None = None,
) -> None:
    """Writes or, for a resumed run, adds to ``run.json``."""
    path = folder / FILE_NAME
    record = _read(path) if path.exists() else _record(experiment, wandb)
    record["starts"].append(describe_start(command))
    write_whole(path, _as_recorded(record))


def describe_start(command: list[str]) -> dict[str, Any]:
    """When, how and with what a run was started."""
    return {
        "at": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "command": [_without_secret(word) for word in command],
        "directory": str(Path.cwd()),
        "git_commit": git_commit(Path.cwd()),
        "versions": {"python": platform.python_version(), **versions()},
    }


def write_whole(path: Path, record: dict[str, Any]) -> None:
    """Writes JSON; moved into place when complete, as a run may be killed any time."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(record, indent=2) + "\n")
    os.replace(part, path)


def refuse_changes(
    folder: Path, experiment: Experiment, wandb: WandbOptions | None = None
) -> None:
    """Raises UsageError if a run was started with other settings than these."""
    before = _read(folder / FILE_NAME)["source"]
    now = _as_recorded(_record(experiment, wandb))["source"]
    for key in sorted({*before, *now}):
        if before.get(key) != now.get(key):
            raise UsageError(
                f"--resume goes on with {folder} as it was started, with {key}="
                f"{before.get(key)}, not {now.get(key)}; to start a new run from one "
                "of its checkpoints use --restore"
            )


def git_commit(folder: Path) -> str | None:
    """The commit that a folder is at, "-dirty" if files differ; None outside git."""
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--abbrev=40", "--dirty", "--exclude=*"],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def without_secrets(value: Any) -> Any:
    """The same, with what looks like a key or password blotted out."""
    if isinstance(value, dict):
        return {
            str(key): "<redacted>"
            if _SECRET.search(str(key)) and inner
            else without_secrets(inner)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [without_secrets(inner) for inner in value]
    return value


def _without_secret(word: str) -> str:
    """A word of a command; one that assigns a secret keeps only its beginning."""
    found = _SECRET.search(word)
    return f"{word[: found.end()]}...<redacted>" if found else word


def _read(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None


def _as_recorded(record: dict[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps(without_secrets(record), default=str))


def _record(experiment: Experiment, wandb: WandbOptions | None) -> dict[str, Any]:
    config = {
        name: value
        for name, value in experiment.source["config"].items()
        if name not in _UNIMPORTANT_SETTINGS
    }
    source = experiment.source | {"config": config}
    if wandb is not None:
        # Tune resumes with the callback of the first start.
        source["wandb"] = dataclasses.asdict(wandb)
    return {
        "name": experiment.name,
        "source": source,
        "seeds": [trial.seed for trial in experiment.trial_configs()],
        "stop": experiment.stop,
        "checkpoint_config": experiment.checkpoint_config,
        "restore": experiment.restore,
        "config": experiment.algorithm_config().to_dict(),
        "starts": [],
    }
