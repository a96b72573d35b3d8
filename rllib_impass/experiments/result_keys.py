"""Which keys a training result can have: what `stop` and scores may name."""

import math
from typing import Any

from ray.rllib.utils import metrics

from rllib_impass.experiments.errors import UsageError
from rllib_impass.experiments.suggestions import closest, did_you_mean

RETURN = f"{metrics.ENV_RUNNER_RESULTS}/{metrics.EPISODE_RETURN_MEAN}"
EVALUATION_RETURN = f"{metrics.EVALUATION_RESULTS}/{RETURN}"

TOP_LEVEL_KEYS = {
    metrics.NUM_ENV_STEPS_SAMPLED_LIFETIME,
    metrics.NUM_TRAINING_STEP_CALLS_PER_ITERATION,
    "num_env_runner_failures_lifetime",
    "num_samples_waiting_for_a_batch",
    "iterations_since_restore",
    "time_since_restore",
    "time_this_iter_s",
    "time_total_s",
    "timestamp",
    "training_iteration",
}
ENV_RUNNER_KEYS = {
    metrics.EPISODE_DURATION_SEC_MEAN,
    metrics.EPISODE_LEN_MAX,
    metrics.EPISODE_LEN_MEAN,
    metrics.EPISODE_LEN_MIN,
    metrics.EPISODE_RETURN_MAX,
    metrics.EPISODE_RETURN_MEAN,
    metrics.EPISODE_RETURN_MIN,
    metrics.NUM_ENV_STEPS_SAMPLED,
    metrics.NUM_ENV_STEPS_SAMPLED_LIFETIME,
    metrics.NUM_EPISODES,
    metrics.NUM_EPISODES_LIFETIME,
    metrics.ENV_RESET_TIMER,
    metrics.ENV_RUNNER_STATE_SERVER_PULL_TIMER,
    metrics.ENV_STEP_TIMER,
    metrics.RLMODULE_INFERENCE_TIMER,
    metrics.SAMPLE_TIMER,
    metrics.TIME_BETWEEN_SAMPLING,
    metrics.WEIGHTS_SEQ_NO,
    "action_smoothness",
    "num_nonfinite_actions_lifetime",
    "num_nonfinite_columns_lifetime",
}
# What is in these differs from one algorithm, or one set of agents, to the next.
OPEN_GROUPS = (
    metrics.FAULT_TOLERANCE_STATS,
    metrics.LEARNER_RESULTS,
    metrics.REPLAY_BUFFER_RESULTS,
    metrics.TIMERS,
    "perf",
    f"{metrics.ENV_RUNNER_RESULTS}/agent_episode_return_mean",
    f"{metrics.ENV_RUNNER_RESULTS}/module_episode_return_mean",
    f"{metrics.ENV_RUNNER_RESULTS}/{metrics.NUM_AGENT_STEPS_SAMPLED_LIFETIME}",
    f"{metrics.ENV_RUNNER_RESULTS}/{metrics.NUM_MODULE_STEPS_SAMPLED_LIFETIME}",
)


def number_at(result: dict[str, Any], key: str) -> float | None:
    """What a result has at a key with "/" between its levels, if it is finite."""
    value: Any = result
    for part in key.split("/"):
        value = value.get(part) if isinstance(value, dict) else None
    is_number = isinstance(value, int | float) and math.isfinite(value)
    return float(value) if is_number else None


def refuse_impossible(key: str, where: str, *, has_evaluation: bool) -> None:
    """Raises UsageError if no result will ever have the key.

    Args:
        key: the key, with "/" between its levels.
        where: what names it, for the message.
        has_evaluation: whether evaluation runs during training.
    """
    sampled = {f"{metrics.ENV_RUNNER_RESULTS}/{name}" for name in ENV_RUNNER_KEYS}
    evaluated = {f"{metrics.EVALUATION_RESULTS}/{name}" for name in sampled}
    if key in evaluated and not has_evaluation:
        raise UsageError(
            f"{where}: {key} needs an evaluation: set evaluation_interval in config"
        )
    known = TOP_LEVEL_KEYS | sampled | evaluated
    if key not in known and not key.startswith(tuple(f"{g}/" for g in OPEN_GROUPS)):
        # The last word is what people remember: `episode_return_mean`.
        last_words = {name.rpartition("/")[2]: name for name in sorted(known)}
        remembered = closest(key.rpartition("/")[2], last_words)
        hint = did_you_mean(key, known)
        if not hint and remembered is not None:
            hint = f"; did you mean {last_words[remembered]!r}?"
        raise UsageError(f"{where}: no result will ever have {key!r}{hint}")
