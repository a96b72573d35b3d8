"""Finds trials in run folders, and what Tune noted of how they ended."""

import dataclasses
import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from rllib_impass.reports.errors import ReportError

RESULT_FILE = "result.json"
PARAMS_FILE = "params.json"
ERROR_FILE = "error.txt"
RECORD_FILE = "run.json"
RECOMMENDATION_FILE = "recommendation.json"
STATE_FILES = "experiment_state-*.json"

# A folder of folders of experiments, and the trials in these.
MAX_DEPTH = 3

Status = Literal["finished", "crashed", "unfinished"]
JsonDict = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class TrialState:
    """What Tune noted of a trial.

    Attributes:
        folder: the name of its folder.
        number: its place among the trials of the experiment.
        trainable: the name of what it trains.
        status: as Tune calls it.
        varied: the settings that Tune chose for it, by their path.
    """

    folder: str
    number: int
    trainable: str
    status: str
    varied: JsonDict


def find_trials(folders: Sequence[Path]) -> list[Path]:
    """The trials in or below some folders, each once, in order.

    Raises:
        ReportError: if one of the folders is none or holds no trial.
    """
    found: dict[Path, Path] = {}
    for folder in folders:
        if not folder.is_dir():
            what = "is a file" if folder.exists() else "does not exist"
            raise ReportError(f"{folder} {what}; give the folder of a run")
        trials = sorted(_trials_below(folder), key=_order)
        if not trials:
            raise ReportError(
                f"{folder} holds no trial ({RESULT_FILE} or {PARAMS_FILE}); give the "
                "folder that `rllib train`, `compare` or `actors` printed"
            )
        for trial in trials:
            found.setdefault(trial.resolve(), trial)
    return list(found.values())


def read_states(experiment: Path) -> dict[str, TrialState]:
    """What Tune last noted of each trial, by folder; empty without its notes."""
    files = sorted(experiment.glob(STATE_FILES))
    state = read_json(files[-1]) if files else {}
    trials = sorted(_noted_trials(state), key=lambda trial: trial.get("trial_id", ""))
    found = {}
    for number, trial in enumerate(trials):
        try:
            folder = trial["relative_logdir"] or ""
            name, status = trial["trainable_name"], trial["status"]
            varied = dict(trial.get("evaluated_params") or {})
        except (ValueError, KeyError, TypeError):
            continue
        # A trial that waits has no folder yet.
        key = folder or f"trial {number}"
        found[key] = TrialState(folder, number, name, status, varied)
    return found


def _noted_trials(state: JsonDict) -> Iterator[JsonDict]:
    """The trials in Tune's notes, which come out of a set: in any order."""
    for entry in state.get("trial_data", []):
        try:
            trial = json.loads(entry[0])
        except (ValueError, IndexError, TypeError):
            continue
        if isinstance(trial, dict):
            yield trial


def status_of(trial: Path, state: TrialState | None, is_done: bool) -> Status:
    """How a trial ended.

    A trial that failed, was tried again and came to its end has finished, although
    the error is still there; so Tune's word counts more than the file.

    Args:
        trial: its folder.
        state: what Tune noted, if that is known.
        is_done: whether its last result says that it is done.
    """
    if state is not None:
        by_name: dict[str, Status] = {"ERROR": "crashed", "TERMINATED": "finished"}
        return by_name.get(state.status, "unfinished")
    if is_done:
        return "finished"
    return "crashed" if (trial / ERROR_FILE).exists() else "unfinished"


def last_error(trial: Path) -> str | None:
    """The line of a trial's error that says what went wrong."""
    try:
        lines = (trial / ERROR_FILE).read_text(errors="replace").splitlines()
    except OSError:
        return None
    # Colours of a terminal.
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in lines]
    return next((line.strip() for line in reversed(lines) if line.strip()), None)


def recommendations(trials: Sequence[Path], folders: Sequence[Path]) -> list[str]:
    """What studies of these trials recommend."""
    places = dict.fromkeys([*folders, *(trial.parent for trial in trials)])
    files = [place / RECOMMENDATION_FILE for place in places]
    texts = [read_json(file).get("text") for file in files if file.is_file()]
    return list(dict.fromkeys(text for text in texts if isinstance(text, str)))


def read_json(file: Path) -> JsonDict:
    """A file that holds a JSON object; empty if it is missing or damaged."""
    try:
        content = json.loads(file.read_text())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def read_results(trial: Path) -> Iterator[JsonDict]:
    """The results of a trial, one after the other."""
    try:
        with (trial / RESULT_FILE).open() as lines:
            for line in lines:
                try:
                    result = json.loads(line)
                except ValueError:
                    # A run that was killed leaves half a line.
                    continue
                if isinstance(result, dict):
                    yield result
    except OSError:
        return


def _trials_below(folder: Path, depth: int = 0) -> Iterator[Path]:
    if (folder / RESULT_FILE).is_file() or (folder / PARAMS_FILE).is_file():
        yield folder
    elif depth < MAX_DEPTH:
        for entry in os.scandir(folder):
            # Checkpoints are large, and hold no trials.
            is_other = entry.name.startswith((".", "checkpoint_"))
            if entry.is_dir(follow_symlinks=False) and not is_other:
                yield from _trials_below(folder / entry.name, depth + 1)


def _order(trial: Path) -> tuple[str, str]:
    return (str(trial.parent), trial.name)
