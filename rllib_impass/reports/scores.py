"""What runs came to: a row for each run, and for each label on each environment."""

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rllib_impass.reports import statistics
from rllib_impass.reports.run import Run
from rllib_impass.reports.statistics import Estimate
from rllib_impass.reports.tidy_csv import describe

# Return of a random policy and of a good one, by which scores are normalised.
REFERENCE_RETURNS = {
    "Hopper-v5": (18.0, 3_600.0),
    "Swimmer-v5": (0.0, 360.0),
    "HumanoidStandup-v5": (32_800.0, 164_000.0),
    "Striker-v0": (-467.0, -99.0),
}
# What a decent run reaches, for how long it takes.
THRESHOLDS = {
    "Hopper-v5": 2_000.0,
    "Swimmer-v5": 100.0,
    "HumanoidStandup-v5": 90_000.0,
    "Striker-v0": -215.0,
}


@dataclasses.dataclass(frozen=True)
class RunScore:
    """What one run came to; NaN is what it never measured.

    Attributes:
        run: the run.
        score: mean of the last 10 % of its evaluations.
        training_return: the same of its training returns.
        smoothness: the same of its evaluations' action smoothness.
        training_smoothness: the same while it explored.
        speed: env steps per second from its first result to its last.
        lag: mean policy lag.
        threshold: the return that was to be reached, if there is one for the env.
        until_threshold: steps and seconds at the first evaluation that reached it.
    """

    run: Run
    score: float
    training_return: float
    smoothness: float
    training_smoothness: float
    speed: float
    lag: float
    threshold: float | None
    until_threshold: tuple[float, float] | None


@dataclasses.dataclass(frozen=True)
class Group:
    """The runs of one label on one environment."""

    env: str
    label: str
    scores: Sequence[RunScore]

    def values(self, name: str) -> np.ndarray:
        """What is known of something, of all runs."""
        values = np.array([getattr(score, name) for score in self.scores])
        return values[np.isfinite(values)]

    def estimate(
        self, name: str, statistic: statistics.Statistic = statistics.mean
    ) -> Estimate | None:
        """A statistic of something over the runs that measured it, if any did."""
        values = self.values(name)
        return statistics.estimate([values], statistic) if len(values) else None

    @property
    def runs(self) -> list[Run]:
        """Its runs."""
        return [score.run for score in self.scores]

    @property
    def seeds(self) -> str:
        """How many runs, and how many of them did not come to their end."""
        return count_seeds(self.runs)


def score_run(run: Run, thresholds: Mapping[str, float]) -> RunScore:
    """What a run came to."""
    last = {name: statistics.mean_of_last(run.known(name)) for name in run.points}
    steps, seconds = run.series("env_steps", "time_s")
    elapsed = seconds[-1] - seconds[0] if len(seconds) > 1 else 0.0
    threshold = thresholds.get(run.env)
    lag = run.known("policy_lag")
    return RunScore(
        run=run,
        score=last["evaluation_return"],
        training_return=last["training_return"],
        smoothness=last["evaluation_smoothness"],
        training_smoothness=last["training_smoothness"],
        speed=(steps[-1] - steps[0]) / elapsed if elapsed > 0 else math.nan,
        lag=float(lag.mean()) if len(lag) else math.nan,
        threshold=threshold,
        until_threshold=_until(run, threshold),
    )


def group_scores(scores: Sequence[RunScore]) -> list[Group]:
    """The runs of each env and label; envs by name, labels as they first appear."""
    labels = label_order([score.run for score in scores])
    groups = []
    for env in sorted({score.run.env for score in scores}):
        for label in labels:
            chosen = [s for s in scores if (s.run.env, s.run.label) == (env, label)]
            if chosen:
                groups.append(Group(env, label, chosen))
    return groups


def label_order(runs: Sequence[Run]) -> list[str]:
    """Labels as they first appear; an algorithm's by number of actors."""
    algorithms = list(dict.fromkeys(run.algorithm for run in runs))
    is_study = is_actor_study(runs)
    places: dict[str, tuple[int, int]] = {}
    for run in runs:
        actors = (run.num_env_runners or 0) if is_study else 0
        place = (algorithms.index(run.algorithm), actors)
        places[run.label] = min(place, places.get(run.label, place))
    return sorted(places, key=places.get)


def is_actor_study(runs: Sequence[Run]) -> bool:
    """Whether runs of one algorithm on one environment differ in their actors."""
    actors: dict[tuple[str, str], set[int | None]] = {}
    for run in runs:
        actors.setdefault((run.algorithm, run.env), set()).add(run.num_env_runners)
    return any(len(counts) > 1 for counts in actors.values())


def count_seeds(runs: Sequence[Run]) -> str:
    """Such as "5 seeds, 1 crashed"."""
    words = [f"{len(runs)} seed{'' if len(runs) == 1 else 's'}"]
    for status in ("crashed", "unfinished"):
        number = sum(run.status == status for run in runs)
        words += [f"{number} {status}"] if number else []
    return ", ".join(words)


def improvements(groups: Sequence[Group]) -> list[dict[str, Any]]:
    """P(X > Y) for each pair of labels: on each env, and averaged over all."""
    labels = list(dict.fromkeys(group.label for group in groups))
    scored = {(g.env, g.label): g.values("score") for g in groups}
    scored = {key: values for key, values in scored.items() if len(values)}
    envs = list(dict.fromkeys(group.env for group in groups))
    rows = []
    for x, y in itertools.combinations(labels, 2):
        both = [e for e in envs if (e, x) in scored and (e, y) in scored]
        scopes = [([env], env) for env in both]
        if len(envs) > 1 and both == envs:
            scopes.append((both, None))
        for scope, env in scopes:
            of_x, of_y = ([scored[e, label] for e in scope] for label in (x, y))
            chance = statistics.estimate_improvement(of_x, of_y)
            rows.append({"env": env, "x": x, "y": y, "estimate": chance})
    return rows


def normalisation(groups: Sequence[Group]) -> dict[str, tuple[float, float, str]]:
    """For each env that has scores what is 0, what is 1, and where that is from."""
    found = {}
    for env in dict.fromkeys(group.env for group in groups):
        pooled = np.concatenate([g.values("score") for g in groups if g.env == env])
        if not len(pooled):
            continue
        if env in REFERENCE_RETURNS:
            found[env] = (*REFERENCE_RETURNS[env], "reference returns")
        else:
            low, high = float(pooled.min()), float(pooled.max())
            found[env] = (low, high, "lowest and highest run here")
    return found


def aggregates(groups: Sequence[Group]) -> dict[str, Estimate]:
    """IQM of normalised scores over all envs, of labels that have scores on each."""
    scales = normalisation(groups)
    if len(scales) < 2:
        return {}
    found = {}
    for label in dict.fromkeys(group.label for group in groups):
        strata = [
            statistics.normalise(g.values("score"), *scales[g.env][:2])
            for g in groups
            if g.label == label and len(g.values("score"))
        ]
        if len(strata) == len(scales):
            found[label] = statistics.estimate(strata, statistics.interquartile_mean)
    return found


def score_rows(scores: Sequence[RunScore]) -> list[dict[str, Any]]:
    """A row for each run."""
    rows = []
    for score in scores:
        run = score.run
        steps, seconds = score.until_threshold or (math.nan, math.nan)
        evaluations = len(run.known("evaluation_return"))
        figures = {
            "env_steps": _last(run.known("env_steps")),
            "time_s": _last(run.known("time_s")),
            "num_evaluations": evaluations,
            "num_scored": statistics.num_scored(evaluations),
            "score": score.score,
            "training_return": score.training_return,
            "evaluation_smoothness": score.smoothness,
            "training_smoothness": score.training_smoothness,
            "env_steps_per_s": score.speed,
            "policy_lag": score.lag,
            "threshold": score.threshold,
            "env_steps_to_threshold": steps,
            "time_s_to_threshold": seconds,
        }
        rows.append(describe(run) | figures)
    return rows


def _until(run: Run, threshold: float | None) -> tuple[float, float] | None:
    if threshold is None:
        return None
    steps, returns = run.series("env_steps", "evaluation_return")
    index = statistics.first_at_or_above(returns, threshold)
    if index is None:
        return None
    seconds = run.points["time_s"][run.points["env_steps"] == steps[index]]
    return float(steps[index]), float(seconds[0])


def _last(values: np.ndarray) -> float:
    return float(values[-1]) if len(values) else math.nan
