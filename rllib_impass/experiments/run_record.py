"""What a run directory must hold to be understood in a year."""

import datetime
import importlib.metadata
import json
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

from rllib_impass.experiments import settings
from rllib_impass.experiments.errors import UsageError
from rllib_impass.experiments.spec import Experiment

FILE_NAME = "run.json"
PACKAGES = ("rllib_impass", "ray", "torch", "gymnasium", "mujoco", "envpool", "numpy")

_SECRET = re.compile(r"key$|token|secret|password", re.IGNORECASE)


def write_record(folder: Path, experiment: Experiment, command: list[str]) -> None:
    """Writes or, for a resumed run, adds to ``run.json``."""
    path = folder / FILE_NAME
    record = json.loads(path.read_text()) if path.exists() else _record(experiment)
    record["starts"].append(
        {
            "at": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
            "command": command,
            "directory": str(Path.cwd()),
            "git_commit": git_commit(Path.cwd()),
            "versions": versions(),
        }
    )
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(_as_recorded(record), indent=2) + "\n")


def refuse_changes(folder: Path, experiment: Experiment) -> None:
    """Raises UsageError if a run was started with other settings than these."""
    path = folder / FILE_NAME
    if not path.exists():
        return
    recorded, now = json.loads(path.read_text()), _as_recorded(_record(experiment))
    for key in ("run", "env", "stop", "num_samples", "config_as_given"):
        if recorded[key] != now[key]:
            raise UsageError(
                f"--resume goes on with {folder} as it was started, with {key}="
                f"{recorded[key]}, not {now[key]}; to start a new run from one of its "
                "checkpoints use --restore"
            )


def versions() -> dict[str, str]:
    """The installed versions of what decides a result."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


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
            if _SECRET.search(str(key)) and isinstance(inner, str)
            else without_secrets(inner)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [without_secrets(inner) for inner in value]
    return value


def _as_recorded(record: dict[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps(without_secrets(record), default=str))


def _record(experiment: Experiment) -> dict[str, Any]:
    config = experiment.algorithm_config()
    return {
        "name": experiment.name,
        "run": experiment.run,
        "env": experiment.env,
        "seeds": [variant.seed for variant in settings.variants(config)],
        "stop": experiment.stop,
        "checkpoint_config": experiment.checkpoint_config,
        "num_samples": experiment.num_samples,
        "config_as_given": experiment.config,
        "config": config.to_dict(),
        "starts": [],
    }
