"""Finds the checkpoints of a training run, and the best one among them."""

import dataclasses
import json
import math
import re
from pathlib import Path
from typing import Any, Literal

from rllib_impass.experiments.checkpoint import (
    ALGORITHM_FILE,
    METADATA_FILE,
    STATE_FILE,
    read_algorithm,
    read_module_state,
    read_state,
)
from rllib_impass.experiments.errors import UsageError
from rllib_impass.experiments.result_keys import EVALUATION_RETURN, RETURN, number_at

# In this order: what an experiment has none of, it is not judged by.
SCORES = (EVALUATION_RETURN, RETURN)

Which = Literal["best", "last"] | int


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """One checkpoint and what its run recorded of it.

    Attributes:
        path: its folder.
        trial: the folder of the trial that saved it, if it has recorded results.
        iteration: the training iteration after which it was saved.
        score: the newest one recorded up to that iteration, if any was.
        score_name: the result key of the score.
    """

    path: Path
    trial: Path | None
    iteration: int | None
    score: float | None
    score_name: str | None


def find_checkpoint(path: str | Path, which: Which = "best") -> Checkpoint:
    """Finds a checkpoint and makes sure that it is whole.

    Args:
        path: a checkpoint, a trial, or an experiment of several trials.
        which: "best" by evaluation return (by training return where nothing was
            evaluated), "last", or the N of ``checkpoint_00000N``. Where several trials
            have a last one or an N, their score decides.

    Raises:
        UsageError: if there is none, or if it is damaged.
    """
    path = Path(path).expanduser()
    if not path.is_dir():
        what = "is a file" if path.exists() else "does not exist"
        raise UsageError(f"{path} {what}; give the folder of a checkpoint or a run")
    if which not in ("best", "last") and not isinstance(which, int):
        raise UsageError(f"{which!r} is none of 'best', 'last' and a whole number")
    if _is_checkpoint(path):
        if isinstance(which, int) and which != _number(path):
            raise UsageError(f"{path} is a checkpoint itself; choose among a run's")
        trials = {path.resolve().parent: [path]}
    else:
        trials = {trial: _checkpoints(trial) for trial in _trials(path)}
    found = _choose(path, trials, which)
    read_algorithm(found.path)
    read_module_state(found.path)
    return found


def _choose(path: Path, trials: dict[Path, list[Path]], which: Which) -> Checkpoint:
    if not any(trials.values()):
        raise UsageError(
            f"{path} has no checkpoints; give a run that saved some "
            "(checkpoint_config: {checkpoint_at_end: true})"
        )
    chosen = {trial: _narrow(group, which) for trial, group in trials.items()}
    if not any(chosen.values()):
        existing = sorted({_number(c) for group in trials.values() for c in group})
        raise UsageError(
            f"{path} has no checkpoint {which}; there are "
            f"{', '.join(map(str, existing))}"
        )
    histories = {
        trial: _read_results(trial) for trial, group in chosen.items() if group
    }
    for score_name in SCORES:
        candidates = [
            _describe(checkpoint, trial, history, score_name)
            for trial, history in histories.items()
            for checkpoint in chosen[trial]
        ]
        scored = [c for c in candidates if c.score is not None]
        if scored:
            # The first of equals: iterations without an evaluation repeat the last's.
            return max(scored, key=lambda c: c.score)
    return dataclasses.replace(candidates[-1], score_name=None)


def _narrow(checkpoints: list[Path], which: Which) -> list[Path]:
    if which == "best":
        return checkpoints
    if which == "last":
        return checkpoints[-1:]
    return [c for c in checkpoints if _number(c) == which]


def _describe(
    path: Path, trial: Path, results: list[dict[str, Any]], score_name: str
) -> Checkpoint:
    where = trial if results else None
    try:
        iteration = read_state(path)["training_iteration"]
    except UsageError:
        # Damaged; another one may still be whole.
        return Checkpoint(path, where, None, None, score_name)
    score = None
    for result in results:
        if result.get("training_iteration", math.inf) <= iteration:
            value = number_at(result, score_name)
            score = value if value is not None else score
    return Checkpoint(path, where, iteration, score, score_name)


def _read_results(trial: Path) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = []
    file = trial / "result.json"
    if file.is_file():
        for line in file.read_text().splitlines():
            try:
                results.append(json.loads(line))
            except ValueError:
                # A run that was killed leaves half a line.
                continue
    return results


def _trials(path: Path) -> list[Path]:
    if (path / "result.json").exists() or _checkpoints(path):
        return [path]
    return [folder for folder in sorted(path.iterdir()) if folder.is_dir()]


def _checkpoints(trial: Path) -> list[Path]:
    folders = (f for f in trial.glob("checkpoint_*") if f.is_dir())
    return sorted((f for f in folders if _number(f) is not None), key=_number)


def _is_checkpoint(path: Path) -> bool:
    known = (METADATA_FILE, ALGORITHM_FILE, STATE_FILE)
    return _number(path) is not None or any((path / f).exists() for f in known)


def _number(path: Path) -> int | None:
    match = re.fullmatch(r"checkpoint_(\d+)", path.name)
    return int(match[1]) if match else None
