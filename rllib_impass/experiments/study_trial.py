"""One trial of a study: trains on a clock of its own, is evaluated on everyone's plan.

What a trial is told is plain data, so that any worker of a cluster can build it::

    trial: {label, algorithm, env, seed, num_env_runners, num_stacked_states, config}
    settings: what a searcher varies, on top of the config
    budget: {key, amount}
    evaluation: {times, episodes}
"""

import json
import math
import time
from pathlib import Path
from typing import Any

from ray import tune
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.utils.annotations import override
from ray.rllib.utils.metrics import EVALUATION_RESULTS
from ray.tune.execution.placement_groups import PlacementGroupFactory
from ray.tune.result import SHOULD_CHECKPOINT

from rllib_impass.connectors import share_connector_states
from rllib_impass.experiments import settings

TRIAL = "trial"
TIME_TRAINING = "time_training_s"

_STATE_FILE = "study_trial.json"
_ITERATIONS_PER_EVALUATION = 4
# RLlib creates what it evaluates with only if an interval is set; we say when.
_NEVER = 10**9
# RLlib would explore, and the first episodes to end among many envs are the short ones.
_EVALUATION = {"explore": False, "num_envs_per_env_runner": 1}
# What the algorithm says of itself as a trial; this class is the trial.
_NOT_RESULTS = ("config", "done", "trial_id", EVALUATION_RESULTS)


def build_config(params: dict[str, Any]) -> AlgorithmConfig:
    """The algorithm's config for what a trial is told."""
    trial = params[TRIAL]
    config = settings.algorithm_class(trial["algorithm"]).get_default_config()
    settings.apply_settings(config, trial["config"])
    settings.apply_settings(config, params.get("settings", {}))
    config.environment(settings.resolve_env(trial["env"]))
    config.debugging(seed=trial["seed"])
    config.evaluation(
        evaluation_interval=_NEVER,
        evaluation_duration=params["evaluation"]["episodes"],
        evaluation_duration_unit="episodes",
        evaluation_config=(config.evaluation_config or {}) | _EVALUATION,
    )
    settings.add_callback(config, "on_evaluate_start", share_connector_states)
    _shorten_iterations(config, params)
    return config


def _shorten_iterations(config: AlgorithmConfig, params: dict[str, Any]) -> None:
    """So that a trial stops on time and is evaluated where it should be."""
    least_s = config.min_time_s_per_iteration
    if not least_s:
        # An iteration is one batch.
        return
    budget, times = params["budget"], params["evaluation"]["times"]
    part = budget["amount"] / (_ITERATIONS_PER_EVALUATION * times)
    if budget["key"] == TIME_TRAINING:
        config.reporting(min_time_s_per_iteration=min(least_s, part))
    else:
        config.reporting(
            min_time_s_per_iteration=0,
            min_sample_timesteps_per_iteration=math.ceil(part),
        )


class StudyTrial(tune.Trainable):
    """Trains any RLlib algorithm within a budget and evaluates it at equal distances.

    Seconds are those of training alone. Checkpoints, one after each evaluation, are
    those of the algorithm.
    """

    @classmethod
    @override(tune.Trainable)
    def default_resource_request(cls, config: dict[str, Any]) -> PlacementGroupFactory:
        built = build_config(config)
        return built.algo_class.default_resource_request(built)

    @override(tune.Trainable)
    def setup(self, config: dict[str, Any]) -> None:
        built = build_config(config)
        # With this trial's storage, or it makes an empty folder among all runs.
        self._algorithm = built.algo_class(config=built, storage=self._storage)
        self._seconds = 0.0
        self._num_evaluations = 0

    @override(tune.Trainable)
    def step(self) -> dict[str, Any]:
        started = time.perf_counter()
        result = self._algorithm.train()
        self._seconds += time.perf_counter() - started
        for key in _NOT_RESULTS:
            result.pop(key, None)
        result[TIME_TRAINING] = self._seconds
        result[TRIAL] = {k: v for k, v in self.config[TRIAL].items() if k != "config"}
        num_due = self._num_evaluations_due(result)
        if num_due > self._num_evaluations:
            result[EVALUATION_RESULTS] = self._algorithm.evaluate()
            result[SHOULD_CHECKPOINT] = True
            self._num_evaluations = num_due
        return result

    @override(tune.Trainable)
    def save_checkpoint(self, checkpoint_dir: str) -> None:
        self._algorithm.save_to_path(checkpoint_dir)
        state = {"seconds": self._seconds, "num_evaluations": self._num_evaluations}
        Path(checkpoint_dir, _STATE_FILE).write_text(json.dumps(state))

    @override(tune.Trainable)
    def load_checkpoint(self, checkpoint_dir: str) -> None:
        self._algorithm.restore_from_path(checkpoint_dir)
        state = json.loads(Path(checkpoint_dir, _STATE_FILE).read_text())
        self._seconds = state["seconds"]
        self._num_evaluations = state["num_evaluations"]

    @override(tune.Trainable)
    def cleanup(self) -> None:
        self._algorithm.stop()

    def _num_evaluations_due(self, result: dict[str, Any]) -> int:
        budget, times = self.config["budget"], self.config["evaluation"]["times"]
        share = result.get(budget["key"], 0) / budget["amount"]
        return min(int(share * times), times)
