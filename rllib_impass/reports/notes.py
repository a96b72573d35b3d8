"""What a reader must know before believing a report."""

from collections.abc import Iterator, Sequence

from rllib_impass.reports.number_format import compact
from rllib_impass.reports.run import Results
from rllib_impass.reports.scores import Group
from rllib_impass.reports.statistics import FEW_RUNS

_MAX_NAMED = 4
# Runs of one env that differ by more had different budgets.
_ALIKE = 0.9


def title(groups: Sequence[Group]) -> str:
    """What was compared, on what."""
    labels = list(dict.fromkeys(group.label for group in groups))
    envs = list(dict.fromkeys(group.env for group in groups))
    compared = _named(labels, "variants")
    if len(labels) > 1 and all(", " in label for label in labels):
        # Labels that say what differs: the algorithms once, and that they differ.
        names = dict.fromkeys(label.split(", ")[0] for label in labels)
        compared = f"{len(labels)} variants of {_named(list(names), 'algorithms')}"
    return f"{compared} on {_named(envs, 'environments')}"


def facts(results: Results) -> list[str]:
    """What a report is made of, in a few words each."""
    runs = results.runs
    found = [_count(len(runs), "run")]
    for status in ("finished", "crashed", "unfinished"):
        number = sum(run.status == status for run in runs)
        found += [f"{number} {status}"] if number else []
    folders = dict.fromkeys(run.folder.absolute().parent.name for run in runs)
    return [*found, f"from {_named(list(folders), 'folders')}"]


def notes(results: Results, groups: Sequence[Group]) -> list[str]:
    """What qualifies the figures, worst first."""
    return [
        *_incomplete(results),
        *_few_seeds(groups),
        *_not_evaluated(groups),
        *_unequal(groups),
        *_clocks(results),
    ]


def _incomplete(results: Results) -> Iterator[str]:
    crashed = [run for run in results.runs if run.status == "crashed"]
    if crashed:
        blank = sum(not len(run.known("evaluation_return")) for run in crashed)
        yield (
            f"{len(crashed)} of {_count(len(results.runs), 'run')} crashed. A crashed "
            "run counts with the evaluations that it had"
            + (f"; {blank} had none, and no score." if blank else ".")
        )
    unfinished = sum(run.status == "unfinished" for run in results.runs)
    if unfinished:
        is_one = unfinished == 1
        yield (
            f"{_count(unfinished, 'run')} {'is' if is_one else 'are'} unfinished "
            "(interrupted, or still running) and "
            f"{'counts' if is_one else 'count'} with what there is."
        )
    if results.num_never_started:
        yield f"{_count(results.num_never_started, 'trial')} never started."


def _few_seeds(groups: Sequence[Group]) -> Iterator[str]:
    fewest = min(len(group.scores) for group in groups)
    if fewest < FEW_RUNS:
        yield (
            f"As few as {_count(fewest, 'seed')}: with fewer than {FEW_RUNS}, "
            "intervals are rough, and no difference here is shown to be more than "
            "chance."
        )


def _not_evaluated(groups: Sequence[Group]) -> Iterator[str]:
    missing = [
        f"{group.label} on {group.env}"
        for group in groups
        if not any(len(run.known("evaluation_return")) for run in group.runs)
    ]
    if missing:
        yield (
            f"Without any evaluation, and so without a score: {'; '.join(missing)}. "
            "Training return is shown as such; to evaluate, set evaluation_interval."
        )


def _unequal(groups: Sequence[Group]) -> Iterator[str]:
    for env in dict.fromkeys(group.env for group in groups):
        runs = [run for group in groups if group.env == env for run in group.runs]
        ended = [run.known("env_steps") for run in runs if run.status == "finished"]
        lengths = [steps[-1] for steps in ended if len(steps)]
        if lengths and min(lengths) < _ALIKE * max(lengths):
            yield (
                f"Finished runs on {env} have from {compact(min(lengths))} to "
                f"{compact(max(lengths))} env steps; a score is of a run's own end."
            )


def _clocks(results: Results) -> Iterator[str]:
    clocks = {run.clock for run in results.runs if len(run.points["time_s"])}
    if clocks == {"total"}:
        yield "Wall time and throughput include evaluations."
    elif len(clocks) > 1:
        labels = dict.fromkeys(r.label for r in results.runs if r.clock == "total")
        yield (
            "Wall time and throughput include evaluations for some runs of "
            f"{', '.join(labels)}, and not for the others."
        )


def _named(names: Sequence[str], many: str) -> str:
    if len(names) > _MAX_NAMED:
        return f"{len(names)} {many}"
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
