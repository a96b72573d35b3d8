"""Several contenders, the same tasks, seeds and budget: what a Tune run compares."""

import dataclasses
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ray import tune
from ray.rllib.utils.metrics import NUM_ENV_STEPS_SAMPLED_LIFETIME
from ray.tune.experiment import Trial

from rllib_impass.experiments import settings
from rllib_impass.experiments.errors import UsageError
from rllib_impass.experiments.examples import tuned_example
from rllib_impass.experiments.experiment import Experiment
from rllib_impass.experiments.run_record import (
    describe_start,
    without_secrets,
    write_whole,
)
from rllib_impass.experiments.schedulers import wait_for_returns
from rllib_impass.experiments.spec import load_experiments, make_experiment
from rllib_impass.experiments.study_trial import (
    TIME_TRAINING,
    TRIAL,
    StudyTrial,
    build_config,
)
from rllib_impass.experiments.tracking import WandbOptions

RECORD_FILE = "study.json"

_STOP_KEYS = {
    # What RLlib's own results call it, by which a tuned file is checked.
    NUM_ENV_STEPS_SAMPLED_LIFETIME: NUM_ENV_STEPS_SAMPLED_LIFETIME,
    TIME_TRAINING: "time_total_s",
}


@dataclasses.dataclass(frozen=True)
class Budget:
    """What every trial may spend: env steps, or seconds of training.

    Attributes:
        key: the result that counts it.
        amount: how much of it.
    """

    key: str
    amount: float

    @classmethod
    def of(cls, *, steps: int | None, seconds: float | None) -> "Budget":
        """The budget that is given; raises UsageError unless it is exactly one."""
        if (steps is None) == (seconds is None):
            raise UsageError("give a budget in steps or in seconds, one of the two")
        key = NUM_ENV_STEPS_SAMPLED_LIFETIME if seconds is None else TIME_TRAINING
        amount = steps if seconds is None else seconds
        if not amount > 0:
            raise UsageError(f"the budget must be above 0, got {amount}")
        return cls(key, amount)

    @property
    def is_time(self) -> bool:
        """Whether trials must not share cores, or they would be slower for it."""
        return self.key == TIME_TRAINING


@dataclasses.dataclass(frozen=True)
class Contender:
    """An algorithm with its settings on one task.

    Attributes:
        label: its name in figures.
        origin: where its settings come from.
        experiment: what was checked.
    """

    label: str
    origin: str
    experiment: Experiment

    def trial(self, seed: int) -> dict[str, Any]:
        """What a trial is told of it."""
        (config,) = self.experiment.trial_configs()
        return {
            "label": self.label,
            "algorithm": self.experiment.run,
            "env": self.experiment.env,
            "seed": seed,
            "num_env_runners": config.num_env_runners,
            "num_stacked_states": getattr(config, "num_stacked_states", None),
            "config": self.experiment.config,
        }


def find_contenders(
    name: str,
    env: str,
    budget: Budget,
    overrides: dict[str, Any] | None = None,
    trusted: tuple[str, ...] = (),
) -> list[Contender]:
    """Contenders by the name of an algorithm, or those of an experiment file.

    Args:
        name: an algorithm, whose tuned file for the task is taken if there is one, or
            the path of a YAML file, whose experiments are run on the task.
        env: the task.
        budget: what stops them.
        overrides: settings that win over the file's.
        trusted: packages whose classes may be named.
    """
    given = {
        "env": env,
        "stop": {_STOP_KEYS[budget.key]: budget.amount},
        "config": overrides or {},
    }
    if name.endswith((".yaml", ".yml")):
        experiments = load_experiments(Path(name), given, trusted)
        found = [Contender(e.name, name, e) for e in experiments]
    else:
        example = tuned_example(name, env)
        if example is None:
            experiment = make_experiment(name, {"run": name}, given, trusted)
            found = [Contender(name, "defaults", experiment)]
        else:
            (experiment,) = load_experiments(example.path, given, trusted)
            found = [Contender(name, example.path.name, experiment)]
    for contender in found:
        if len(list(contender.experiment.trial_configs())) > 1:
            raise UsageError(f"{name}: a contender has one setting, not a grid_search")
    return found


@dataclasses.dataclass(frozen=True)
class Study:
    """Trials that differ in nothing but what is compared.

    Attributes:
        contenders: what is compared, task by task.
        seeds: of the trials of each.
        budget: of each trial.
        num_evaluations: of each trial, at equal distances; the last at its end.
        num_episodes: of each evaluation.
    """

    contenders: tuple[Contender, ...]
    seeds: tuple[int, ...]
    budget: Budget
    num_evaluations: int
    num_episodes: int

    def __post_init__(self) -> None:
        for name in ("num_evaluations", "num_episodes"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be at least 1")
        if not self.seeds:
            raise UsageError("there must be at least one seed")
        keys = [(c.label, c.experiment.env) for c in self.contenders]
        for key in keys:
            if keys.count(key) > 1:
                raise UsageError(f"{key[0]} is named twice for {key[1]}")

    def param_space(self) -> dict[str, Any]:
        """What Tune makes trials of: seed by seed, so that early results are fair."""
        trials = [c.trial(seed) for seed in self.seeds for c in self.contenders]
        return self._common() | {TRIAL: tune.grid_search(trials)}

    def num_cpus(self) -> float:
        """What the largest trial asks Ray for."""
        requests = (
            StudyTrial.default_resource_request(
                self._common() | {TRIAL: contender.trial(self.seeds[0])}
            )
            for contender in self.contenders
        )
        return max(r.required_resources.get("CPU", 0.0) for r in requests)

    def validate(self) -> None:
        """Raises UsageError if a trial could not be built."""
        for contender in self.contenders:
            params = self._common() | {TRIAL: contender.trial(self.seeds[0])}
            settings.validate(build_config(params))

    def tuner(
        self,
        folder: Path,
        *,
        search_space: dict[str, Any] | None = None,
        tune_config: tune.TuneConfig | None = None,
        callbacks: Sequence[tune.Callback] = (),
        num_concurrent: int | None = None,
    ) -> tune.Tuner:
        """The study as a Tune run.

        Args:
            folder: of its results.
            search_space: settings of the algorithms that Tune varies on top.
            tune_config: how; with a scheduler, a searcher, or more samples.
            callbacks: of Tune.
            num_concurrent: trials at a time; None for one at a time if the budget is a
                time, and otherwise for as many as there is room for.
        """
        if num_concurrent is None and self.budget.is_time:
            num_concurrent = 1
        tune_config = tune_config or tune.TuneConfig()
        tune_config = dataclasses.replace(
            tune_config,
            max_concurrent_trials=tune_config.max_concurrent_trials or num_concurrent,
            trial_name_creator=trial_name,
            trial_dirname_creator=_trial_folder,
        )
        wait_for_returns()
        return tune.Tuner(
            StudyTrial,
            param_space=self.param_space() | {"settings": search_space or {}},
            tune_config=tune_config,
            run_config=tune.RunConfig(
                name=folder.name,
                storage_path=str(folder.parent),
                stop={self.budget.key: self.budget.amount},
                checkpoint_config=tune.CheckpointConfig(num_to_keep=1),
                callbacks=list(callbacks),
                verbose=0,
            ),
        )

    def record(self) -> dict[str, Any]:
        """Everything that makes it what it is, as plain data."""
        trials = [contender.trial(seed=self.seeds[0]) for contender in self.contenders]
        record = self._common() | {"trials": trials, "seeds": list(self.seeds)}
        return json.loads(json.dumps(without_secrets(record), default=str))

    def _common(self) -> dict[str, Any]:
        return {
            "budget": dataclasses.asdict(self.budget),
            "evaluation": {
                "times": self.num_evaluations,
                "episodes": self.num_episodes,
            },
        }


def write_study(
    folder: Path, study: Study, command: list[str], wandb: WandbOptions | None = None
) -> None:
    """Writes down what is studied, or that it goes on."""
    folder.mkdir(parents=True, exist_ok=True)
    record = _read_record(folder) or {**_identity(study, wandb), "starts": []}
    record["starts"].append(describe_start(command))
    write_whole(folder / RECORD_FILE, record)


def is_same_study(
    folder: Path, study: Study, wandb: WandbOptions | None = None
) -> bool:
    """Whether a folder holds this very study, logged to the same place."""
    record = _read_record(folder)
    identity = _identity(study, wandb)
    return record is not None and all(record[key] == identity[key] for key in identity)


def _identity(study: Study, wandb: WandbOptions | None) -> dict[str, Any]:
    # Tune goes on with the callbacks of the first start.
    return {"study": study.record(), "wandb": wandb and dataclasses.asdict(wandb)}


def _read_record(folder: Path) -> dict[str, Any] | None:
    try:
        return json.loads((folder / RECORD_FILE).read_text())
    except (OSError, ValueError):
        return None


def resumed_tuner(folder: Path) -> tune.Tuner:
    """The study in a folder; what is finished, crashed trials included, stays."""
    return tune.Tuner.restore(str(folder), StudyTrial, resume_unfinished=True)


def trial_name(trial: Trial) -> str:
    """What sets a trial apart, for people; a table keeps the end of what is long."""
    told = trial.config[TRIAL]
    return f"{told['env']} {told['label']} {told['seed']}"


def _trial_folder(trial: Trial) -> str:
    told = trial.config[TRIAL]
    # The id, because a searcher may try one contender and seed several times.
    words = (told["label"], told["env"], f"seed{told['seed']}", trial.trial_id)
    return "_".join(re.sub(r"[^\w.-]+", "-", word) for word in words)
