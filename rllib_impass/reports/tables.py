"""The tables of a report, as plain text cells: for the page and for Markdown."""

import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np

from rllib_impass.reports import scores as scoring
from rllib_impass.reports import statistics
from rllib_impass.reports.dots import stack_of
from rllib_impass.reports.number_format import (
    NOTHING,
    compact,
    duration,
    figure,
    probability,
)
from rllib_impass.reports.scores import Group, RunScore
from rllib_impass.reports.statistics import Estimate


@dataclasses.dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        title: above it.
        columns: its header; the first column names the rows.
        rows: their cells.
        num_names: how many of the first columns hold words, the others numbers.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    num_names: int = 1


def score_tables(groups: Sequence[Group]) -> list[Table]:
    """Final scores: a table for each environment."""
    columns = ("algorithm", "seeds", "IQM", "95 % interval", "mean", "median")
    return [
        Table(env, columns, [_score_cells(group) for group in chosen], num_names=2)
        for env, chosen in _by_env(groups)
    ]


def aggregate_table(groups: Sequence[Group]) -> Table | None:
    """Normalised scores over all environments, if there are several."""
    found = scoring.aggregates(groups)
    if not found:
        return None
    columns = ("algorithm", "IQM", "95 % interval")
    rows = [(label, *_cells(estimate)) for label, estimate in found.items()]
    return Table("Normalised, all environments", columns, rows)


def normalisation_table(groups: Sequence[Group]) -> Table:
    """What counts as 0 and as 1."""
    rows = [
        (env, source, figure(floor), figure(reference))
        for env, (floor, reference, source) in scoring.normalisation(groups).items()
    ]
    columns = ("env", "scale", "0 is", "1 is")
    return Table("Normalisation", columns, rows, num_names=2)


def improvement_table(groups: Sequence[Group]) -> Table | None:
    """P(X > Y) of every pair."""
    rows = [
        (
            row["env"] or "all, averaged",
            f"{row['x']} > {row['y']}",
            *_cells(row["estimate"], probability),
        )
        for row in scoring.improvements(groups)
    ]
    columns = ("env", "pair", "P(X > Y)", "95 % interval")
    return Table("Probability of improvement", columns, rows, 2) if rows else None


def threshold_tables(groups: Sequence[Group]) -> list[Table]:
    """Steps and time to a return, for each environment that has a threshold."""
    columns = ("algorithm", "reached by", "median env steps", "median time")
    tables = []
    for env, chosen in _by_env(groups):
        threshold = chosen[0].scores[0].threshold
        if threshold is not None:
            title = f"{env}, return of {figure(threshold)}"
            rows = [_threshold_cells(group) for group in chosen]
            tables.append(Table(title, columns, rows, num_names=2))
    return tables


def conduct_tables(groups: Sequence[Group]) -> list[Table]:
    """Throughput, lag and smoothness, a table for each environment."""
    columns = (
        "algorithm",
        "states",
        "actors",
        "env steps/s",
        "policy lag",
        "smoothness, evaluated",
        "smoothness, training",
    )
    return [
        Table(env, columns, [_conduct_cells(group) for group in chosen], num_names=2)
        for env, chosen in _by_env(groups)
    ]


def run_table(scores: Sequence[RunScore]) -> Table:
    """Every run, with how it ended."""
    columns = (
        "env",
        "algorithm",
        "seed",
        "status",
        "env steps",
        "time",
        "score",
        "run",
    )
    rows = []
    for score in scores:
        run = score.run
        rows.append(
            (
                run.env,
                run.label,
                NOTHING if run.seed is None else str(run.seed),
                run.status + (f": {run.error}" if run.error else ""),
                _last(run.known("env_steps"), compact),
                _last(run.known("time_s"), duration),
                figure(score.score),
                run.name,
            )
        )
    return Table("Runs", columns, rows, num_names=4)


def to_markdown(table: Table) -> str:
    """The table as GitHub renders it."""
    aligned = [
        "---" if number < table.num_names else "---:"
        for number in range(len(table.columns))
    ]
    lines = [table.columns, aligned, *table.rows]
    escaped = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in escaped)


def _score_cells(group: Group) -> tuple[str, ...]:
    statistic = statistics.interquartile_mean
    iqm, interval = _cells(group.estimate("score", statistic))
    others = [
        _cells(group.estimate("score", other))[0]
        for other in (statistics.mean, statistics.median)
    ]
    return (group.label, group.seeds, iqm, interval, *others)


def _threshold_cells(group: Group) -> tuple[str, ...]:
    reached = [score.until_threshold for score in group.scores]
    number = sum(until is not None for until in reached)
    steps, seconds = ([until and until[axis] for until in reached] for axis in range(2))
    return (
        group.label,
        f"{number} of {len(reached)}",
        _until_cell(steps, compact),
        _until_cell(seconds, duration),
    )


def _until_cell(needed: Sequence[float | None], form: Callable[[float], str]) -> str:
    if any(value is not None and math.isnan(value) for value in needed):
        # Runs without a clock.
        return NOTHING
    middle = statistics.median_until(needed)
    return "not reached" if middle is None else form(middle)


def _conduct_cells(group: Group) -> tuple[str, ...]:
    actors = sorted({run.num_env_runners or 0 for run in group.runs})
    means = [
        _cells(group.estimate(name))[0]
        for name in ("speed", "lag", "smoothness", "training_smoothness")
    ]
    return (group.label, stack_of(group), "/".join(map(str, actors)), *means)


def _cells(
    estimate: Estimate | None, form: Callable[[float], str] = figure
) -> tuple[str, str]:
    if estimate is None:
        return NOTHING, NOTHING
    if estimate.low is None:
        return form(estimate.value), NOTHING
    interval = f"{form(estimate.low)} to {form(estimate.high)}"
    return form(estimate.value), interval


def _last(values: np.ndarray, form: Callable[[float], str]) -> str:
    return form(float(values[-1])) if len(values) else NOTHING


def _by_env(groups: Sequence[Group]) -> list[tuple[str, list[Group]]]:
    found: dict[str, list[Group]] = {}
    for group in groups:
        found.setdefault(group.env, []).append(group)
    return list(found.items())
