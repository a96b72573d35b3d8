"""The paper's Fig. 7: algorithms on tasks, everything else being equal."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ray import tune

from rllib_impass.experiments.study import (
    Budget,
    Study,
    find_contenders,
    write_study,
)

ALGORITHMS = ("IMPASS", "IMPALANoSS", "D4PG")
NUM_EVALUATIONS = 20
NUM_EPISODES = 10


def comparison_study(
    envs: Sequence[str],
    algorithms: Sequence[str] = ALGORITHMS,
    *,
    seeds: Sequence[int] = (0,),
    budget_steps: int | None = None,
    budget_seconds: float | None = None,
    overrides: dict[str, Any] | None = None,
    num_evaluations: int = NUM_EVALUATIONS,
    num_episodes: int = NUM_EPISODES,
    trusted: tuple[str, ...] = (),
) -> Study:
    """What `comparison` runs; see there."""
    budget = Budget.of(steps=budget_steps, seconds=budget_seconds)
    study = Study(
        contenders=tuple(
            contender
            for env in envs
            for name in algorithms
            for contender in find_contenders(name, env, budget, overrides, trusted)
        ),
        seeds=tuple(seeds),
        budget=budget,
        num_evaluations=num_evaluations,
        num_episodes=num_episodes,
    )
    study.validate()
    return study


def comparison(
    folder: str | Path,
    envs: Sequence[str],
    algorithms: Sequence[str] = ALGORITHMS,
    *,
    search_space: dict[str, Any] | None = None,
    tune_config: tune.TuneConfig | None = None,
    callbacks: Sequence[tune.Callback] = (),
    **study: Any,
) -> tune.Tuner:
    """Algorithms on tasks with equal budgets and seeds, as a Tune run.

    .. code-block:: python

        from ray import tune
        from rllib_impass.experiments.comparison import comparison

        tuner = comparison(
            "results/lr", ["Hopper-v5"], ["IMPASS"], seeds=[0, 1], budget_steps=10**6,
            search_space={"lr": tune.loguniform(1e-4, 1e-3)},
            tune_config=tune.TuneConfig(num_samples=4),
        )
        tuner.fit()

    Args:
        folder: of the results, for `rllib report`.
        envs: the tasks.
        algorithms: names, whose tuned files are taken where there are some, RLlib's
            own among them; or YAML files, whose experiments are run on each task.
        search_space: settings that Tune varies on top, for all algorithms.
        tune_config: how, with a scheduler or a searcher of Tune.
        callbacks: of Tune.
        **study: ``seeds``; ``budget_steps`` or ``budget_seconds`` of training;
            ``overrides``, settings that win over the files; ``num_evaluations`` at
            equal distances, of ``num_episodes`` each; ``trusted`` packages.

    Raises:
        UsageError: if something could not run.
    """
    made = comparison_study(envs, algorithms, **study)
    folder = Path(folder).expanduser().absolute()
    write_study(folder, made, sys.argv)
    return made.tuner(
        folder,
        search_space=search_space,
        tune_config=tune_config,
        callbacks=callbacks,
    )
