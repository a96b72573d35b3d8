"""What figures call a run: runs of the same label and env are seeds of one thing."""

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rllib_impass.reports.run import Run

# As papers write what Python cannot.
DISPLAY_NAMES = {"IMPALANoSS": "IMPALA-noSS", "ApexDPG": "Ape-X DPG"}


def label_runs(runs: Sequence["Run"]) -> list["Run"]:
    """The runs with a label each.

    The algorithm's name, if all runs of the algorithm are alike; otherwise its variant.
    Runs of one variant that differ on one env in stacked states or actors say so.
    """
    of_algorithm = defaultdict(list)
    for run in runs:
        of_algorithm[run.algorithm].append(run)
    return [
        dataclasses.replace(run, label=_label(run, of_algorithm[run.algorithm]))
        for run in runs
    ]


def label_without_actors(run: "Run") -> str:
    """What is left of a label if the number of actors is not part of it."""
    return run.label.removesuffix(f", {_count(run.num_env_runners, 'actor')}")


def _label(run: "Run", of_algorithm: Sequence["Run"]) -> str:
    variant = _variant(run)
    alike = [other for other in of_algorithm if _variant(other) == variant]
    is_only_one = not _differ(of_algorithm, _variant)
    words = [_display(run.algorithm) if is_only_one else variant]
    if _differ(alike, lambda other: other.num_stacked_states):
        words.append(_count(run.num_stacked_states, "state"))
    if _differ(alike, lambda other: other.num_env_runners):
        words.append(_count(run.num_env_runners, "actor"))
    return ", ".join(words)


def _variant(run: "Run") -> str:
    return _display(run.variant or run.algorithm)


def _display(name: str) -> str:
    return DISPLAY_NAMES.get(name, name)


def _differ(runs: Sequence["Run"], aspect: Callable[["Run"], Hashable]) -> bool:
    """Whether runs on one env do; tuned files of two envs may."""
    on_env = defaultdict(set)
    for run in runs:
        on_env[run.env].add(aspect(run))
    return any(len(values) > 1 for values in on_env.values())


def _count(number: int | None, what: str) -> str:
    return f"{'?' if number is None else number} {what}{'' if number == 1 else 's'}"
