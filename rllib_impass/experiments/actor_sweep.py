"""The paper's Fig. 8: the same algorithm with more and more actors."""

import contextlib
import dataclasses
import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ray import tune

from rllib_impass.experiments.comparison import NUM_EPISODES, NUM_EVALUATIONS
from rllib_impass.experiments.errors import UsageError
from rllib_impass.experiments.study import (
    Budget,
    Study,
    find_contenders,
    write_study,
)

COUNTS = (1, 2, 4, 8)
RECOMMENDATION_FILE = "recommendation.json"
# Less than this is not worth another process.
WORTHWHILE_GAIN = 0.05


def actor_study(
    algorithm: str,
    env: str,
    counts: Sequence[int] = COUNTS,
    *,
    seeds: Sequence[int] = (0,),
    budget_steps: int | None = None,
    budget_seconds: float | None = None,
    overrides: dict[str, Any] | None = None,
    num_evaluations: int = NUM_EVALUATIONS,
    num_episodes: int = NUM_EPISODES,
    trusted: tuple[str, ...] = (),
) -> Study:
    """What `actor_sweep` runs; see there."""
    if not counts or min(counts) < 1:
        raise UsageError(f"counts must be numbers of actors from 1 on, got {counts}")
    budget = Budget.of(steps=budget_steps, seconds=budget_seconds)
    contenders = []
    for count in sorted(set(counts)):
        given = (overrides or {}) | {"num_env_runners": count}
        found = find_contenders(algorithm, env, budget, given, trusted)
        if len(found) > 1:
            raise UsageError(
                f"{algorithm} holds {len(found)} experiments; actors are counted for "
                "one: give a file with one experiment"
            )
        label = f"{found[0].label}, {count} actor{'s' if count > 1 else ''}"
        contenders.append(dataclasses.replace(found[0], label=label))
    study = Study(
        tuple(contenders), tuple(seeds), budget, num_evaluations, num_episodes
    )
    study.validate()
    return study


def actor_sweep(
    folder: str | Path,
    algorithm: str,
    env: str,
    counts: Sequence[int] = COUNTS,
    *,
    tune_config: tune.TuneConfig | None = None,
    callbacks: Sequence[tune.Callback] = (),
    **study: Any,
) -> tune.Tuner:
    """One algorithm on one task with different numbers of actors, as a Tune run.

    One trial at a time, whatever the budget: what is asked is how fast each is.

    Args:
        folder: of the results, for `rllib report`.
        algorithm: a name, or a YAML file.
        env: the task.
        counts: numbers of env runners.
        tune_config: with a scheduler of Tune.
        callbacks: of Tune.
        **study: as those of `comparison`.
    """
    made = actor_study(algorithm, env, counts, **study)
    folder = Path(folder).expanduser().absolute()
    write_study(folder, made, sys.argv)
    return made.tuner(
        folder, tune_config=tune_config, callbacks=callbacks, num_concurrent=1
    )


def recommend(steps_per_s: Mapping[int, float]) -> str:
    """How many actors are worth having, from the speed with each number of them.

    The smallest number after which no other is faster by `WORTHWHILE_GAIN`.
    """
    speeds = {n: steps_per_s[n] for n in sorted(steps_per_s)}
    if not speeds or not all(map(math.isfinite, speeds.values())):
        raise ValueError(f"speeds must be finite numbers, got {speeds}")
    counts = list(speeds)
    for place, count in enumerate(counts):
        rest = [speeds[n] for n in counts[place + 1 :]]
        gain = max(rest, default=0.0) / speeds[count] - 1.0
        if gain < WORTHWHILE_GAIN:
            break
    actors = f"{count} actor{'s' if count > 1 else ''}"
    if not rest:
        return (
            f"{actors} trained {speeds[count]:,.0f} env steps/s, the most of those "
            "tried; more may gain more"
        )
    return (
        f"more than {actors} gain less than {WORTHWHILE_GAIN:.0%} on this machine "
        f"({speeds[count]:,.0f} env steps/s)"
    )


def write_recommendation(folder: Path) -> str | None:
    """Recommends a number of actors from the trials in a folder, and writes it there.

    Returns:
        The recommendation; None unless two numbers of actors have results.
    """
    speeds: dict[int, list[float]] = {}
    for path in sorted(folder.glob("*/result.json")):
        if (measured := _speed(path)) is not None:
            speeds.setdefault(measured[0], []).append(measured[1])
    if len(speeds) < 2:
        return None
    means = {count: sum(each) / len(each) for count, each in speeds.items()}
    text = recommend(means)
    content = {"text": text, "env_steps_per_s": means}
    (folder / RECOMMENDATION_FILE).write_text(json.dumps(content, indent=2) + "\n")
    return text


def _speed(path: Path) -> tuple[int, float] | None:
    """Actors, and env steps per second of training after the first tenth."""
    rows = []
    for line in path.read_text().splitlines():
        # A run that was killed leaves half a line.
        with contextlib.suppress(ValueError):
            rows.append(json.loads(line))
    points = [
        (row["time_training_s"], row["num_env_steps_sampled_lifetime"])
        for row in rows
        if "num_env_steps_sampled_lifetime" in row
    ]
    if len(points) < 2:
        return None
    end_s, end_steps = points[-1]
    start_s, start_steps = next(p for p in points if p[0] >= 0.1 * end_s)
    if not (start_s < end_s and start_steps < end_steps):
        return None
    speed = (end_steps - start_steps) / (end_s - start_s)
    return rows[-1]["trial"]["num_env_runners"], speed
