"""What figures call a run: runs of the same label and env are seeds of one thing."""

import dataclasses
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rllib_impass.reports.run import Run

# As papers write what Python cannot.
DISPLAY_NAMES = {"IMPALANoSS": "IMPALA-noSS", "ApexDPG": "Ape-X DPG"}

_FIELDS = ("label", "num_env_runners", "num_stacked_states")


def label_runs(runs: Sequence["Run"]) -> list["Run"]:
    """The runs with a label each.

    The algorithm's name, if all runs of the algorithm are alike. If they were labelled
    differently, or differ in actors or stacked states on one env, then what they were
    labelled with, or the name with whatever differs.
    """
    of_algorithm = defaultdict(list)
    for run in runs:
        of_algorithm[run.algorithm].append(run)
    return [
        dataclasses.replace(run, label=_label(run, of_algorithm[run.algorithm]))
        for run in runs
    ]


def _label(run: "Run", alike: Sequence["Run"]) -> str:
    name = DISPLAY_NAMES.get(run.algorithm, run.algorithm)
    differs = {field for field in _FIELDS if _differs(alike, field)}
    if not differs:
        return name
    if run.label is not None:
        return DISPLAY_NAMES.get(run.label, run.label)
    words = [name]
    if "num_stacked_states" in differs:
        words.append(_count(run.num_stacked_states, "state"))
    if "num_env_runners" in differs:
        words.append(_count(run.num_env_runners, "actor"))
    return ", ".join(words)


def _differs(runs: Sequence["Run"], field: str) -> bool:
    on_env = defaultdict(set)
    for run in runs:
        on_env[run.env].add(getattr(run, field))
    return any(len(values) > 1 for values in on_env.values())


def _count(number: int | None, what: str) -> str:
    return f"{'?' if number is None else number} {what}{'' if number == 1 else 's'}"
