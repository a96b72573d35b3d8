"""Which keys a training result can have: what `stop` and scores may name."""

from ray.rllib.utils import metrics

from rllib_impass.experiments.errors import UsageError
from rllib_impass.experiments.suggestions import closest, did_you_mean

RETURN = f"{metrics.ENV_RUNNER_RESULTS}/{metrics.EPISODE_RETURN_MEAN}"
EVALUATION_RETURN = f"{metrics.EVALUATION_RESULTS}/{RETURN}"
ENV_STEPS = metrics.NUM_ENV_STEPS_SAMPLED_LIFETIME

TOP_LEVEL_KEYS = {
    metrics.NUM_ENV_STEPS_SAMPLED_LIFETIME,
    metrics.NUM_TRAINING_STEP_CALLS_PER_ITERATION,
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
    "action_smoothness",
}
# What is in these differs from one algorithm to the next.
OPEN_GROUPS = tuple(
    f"{group}/"
    for group in (
        metrics.FAULT_TOLERANCE_STATS,
        metrics.LEARNER_RESULTS,
        metrics.REPLAY_BUFFER_RESULTS,
        metrics.TIMERS,
        "perf",
    )
)


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
    if key not in known and not key.startswith(OPEN_GROUPS):
        # The last word is what people remember: `episode_return_mean`.
        last_words = {name.rpartition("/")[2]: name for name in sorted(known)}
        remembered = closest(key.rpartition("/")[2], last_words)
        hint = did_you_mean(key, known)
        if not hint and remembered is not None:
            hint = f"; did you mean {last_words[remembered]!r}?"
        raise UsageError(f"{where}: no result will ever have {key!r}{hint}")
