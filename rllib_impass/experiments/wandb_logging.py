"""Ray's W&B callback, made to survive resumption, to keep secrets, and to be found.

Ray's own demands a key even offline, hands it to a ``runtime_env`` that Ray logs,
overwrites the run of a trial that is resumed, and counts iterations instead of steps.
"""

import json
import logging
import math
import numbers
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.fs
import ray
from ray.air.integrations.wandb import (
    WandbLoggerCallback,
    _QueueItem,
    _WandbLoggingActor,
)
from ray.air.util.node import _force_on_current_node
from ray.rllib.utils.annotations import override
from ray.rllib.utils.metrics import NUM_ENV_STEPS_SAMPLED_LIFETIME
from ray.tune.experiment import Trial
from ray.tune.registry import get_trainable_cls
from ray.tune.utils import flatten_dict

from rllib_impass.experiments.errors import one_line
from rllib_impass.experiments.result_keys import EVALUATION_RETURN, RETURN
from rllib_impass.experiments.run_record import without_secrets
from rllib_impass.experiments.tracking import (
    WandbOptions,
    check_wandb,
    read_run_file,
    write_run_file,
)

logger = logging.getLogger(__name__)

STEP = "global_step"
# openrlbenchmark's name for a metric, and ours.
CHARTS = {
    "charts/episodic_return": RETURN,
    "charts/episodic_length": "env_runners/episode_len_mean",
    "charts/eval_return": EVALUATION_RETURN,
}
ENV, ALGORITHM = "env_id", "exp_name"
# What `rllib report --wandb` sorts runs by.
FACTS = (ENV, ALGORITHM, "seed", "num_env_runners", "num_stacked_states")
# In the config of a trial of `rllib compare`: what it was told.
STUDY_TRIAL = "trial"
# Says nothing of how training goes, or is in the config.
_NO_METRICS = ("config", "done", "should_checkpoint", "pid", "timestamp", STUDY_TRIAL)
# W&B's own code for a run that was stopped from outside.
_KILLED = 255
# What is not uploaded by then can be with `wandb sync`.
_UPLOAD_TIMEOUT_S = 120
_SETTINGS = {"console": "off", "silent": True, "disable_git": True}


class WandbLogging(WandbLoggerCallback):
    """Logs every trial to a W&B run of its own, which a resumed trial goes on with.

    It never holds a key: the process that logs has its environment, or netrc, from
    whoever started Ray on this machine.

    Args:
        options: where to log, and what.
    """

    def __init__(self, options: WandbOptions) -> None:
        super().__init__(upload_timeout=_UPLOAD_TIMEOUT_S)
        self._options = options
        self._ended: set[Trial] = set()

    @override(WandbLoggerCallback)
    def setup(self, *args: Any, **kwargs: Any) -> None:
        # Instead of Ray's, which looks for a key and passes it on.
        check_wandb(self._options)
        on_this_machine = ray.remote(num_cpus=0, **_force_on_current_node())
        self._remote_logger_class = on_this_machine(LoggingActor)

    @override(WandbLoggerCallback)
    def log_trial_start(self, trial: Trial) -> None:
        if trial in self._trial_queues or trial in self._ended:
            # The trial is retried.
            return
        entity, _, project = self._options.project.rpartition("/")
        folder = _folder(trial)
        folder.mkdir(parents=True, exist_ok=True)
        config = run_config(trial)
        if "id" not in read_run_file(folder):
            unique = f"{trial.trial_id}_{uuid.uuid4().hex[:8]}"
            facts = {name: config.get(name) for name in FACTS}
            write_run_file(folder, id=unique, **facts)
        words = (config[k] for k in (ENV, ALGORITHM, "seed", "trial_id"))
        self._start_logging_actor(
            trial,
            [],
            entity=entity or None,
            project=project,
            group=self._options.group or trial.experiment_dir_name,
            id=read_run_file(folder)["id"],
            name="__".join(map(str, words)),
            config=config,
            mode=self._options.mode,
            resume="allow",
            dir=str(folder),
            settings=_SETTINGS,
        )

    @override(WandbLoggerCallback)
    def log_trial_result(
        self, iteration: int, trial: Trial, result: dict[str, Any]
    ) -> None:
        self._collect_ended()
        if trial in self._trial_queues:
            self._trial_queues[trial].put((_QueueItem.RESULT, _numbers(result)))

    @override(WandbLoggerCallback)
    def log_trial_end(self, trial: Trial, failed: bool = False) -> None:
        if trial in self._trial_queues:
            if self._options.with_video and trial.checkpoint and not failed:
                checkpoint = (_QueueItem.CHECKPOINT, trial.checkpoint.path)
                self._trial_queues[trial].put(checkpoint)
            self._trial_queues[trial].put((_QueueItem.END, int(failed)))

    @override(WandbLoggerCallback)
    def on_experiment_end(self, trials: list[Trial], **info: Any) -> None:
        for queue in self._trial_queues.values():
            # For trials that were interrupted; nobody reads a second one.
            queue.put((_QueueItem.END, _KILLED))
        futures = list(self._trial_logging_futures.values())
        _, late = ray.wait(
            futures, num_returns=len(futures), timeout=self._upload_timeout
        )
        for future in late:
            folder = _folder(self._logging_future_to_trial[future])
            logger.warning(
                "W&B has not got everything; to upload the rest: wandb sync %s/wandb/*",
                folder,
            )
        self._collect_ended()
        self._cleanup_logging_actors(kill_on_timeout=True)

    def _collect_ended(self) -> None:
        """Collects processes that have ended; says why, if they should not have."""
        futures = list(self._trial_logging_futures.values())
        done, _ = ray.wait(futures, num_returns=len(futures), timeout=0)
        for future in done:
            trial = self._logging_future_to_trial[future]
            try:
                complaint = ray.get(future)
            except ray.exceptions.RayError as error:
                cause = getattr(error, "cause", None) or error
                complaint = f"no longer logged: {one_line(cause)}"
            if complaint:
                logger.warning("W&B, %s: %s", trial, complaint)
            self._ended.add(trial)
        self._cleanup_logging_actors()


class LoggingActor(_WandbLoggingActor):
    """The process that logs one trial, each of its env steps only once."""

    @override(_WandbLoggingActor)
    def run(self) -> str | None:
        """Logs until the trial ends; returns what the user should hear of, if any."""
        self._trial = Path(self.kwargs["dir"])
        self._complaint: str | None = None
        self._run = self._wandb.init(**self.kwargs)
        write_run_file(self._trial, page=self._run.project_url)
        self._run.define_metric(STEP)
        self._run.define_metric("*", step_metric=STEP)
        while True:
            kind, content = self.queue.get()
            if kind == _QueueItem.END:
                break
            if kind == _QueueItem.CHECKPOINT:
                self._handle_checkpoint(content)
            else:
                self._log(history_row(content))
        self._run.finish(exit_code=content)
        return self._complaint

    def _log(self, row: dict[str, float]) -> None:
        # A trial that went back to a checkpoint repeats steps; W&B cannot.
        if row[STEP] <= read_run_file(self._trial).get(STEP, -1):
            return
        self._run.log(row, step=row[STEP])
        write_run_file(self._trial, **{STEP: row[STEP]})

    @override(_WandbLoggingActor)
    def _handle_checkpoint(self, checkpoint_path: str) -> None:
        """Films the policy."""
        # Late: most runs have no video.
        from rllib_impass.experiments.evaluation import evaluate

        folder = self._trial / "videos"
        try:
            shown = evaluate(checkpoint_path, episodes=1, video_dir=folder)
        except Exception as error:
            # Whatever an env or a graphics driver raises: the curves are worth more.
            self._complaint = f"no video: {one_line(error)}"
            return
        step = read_run_file(self._trial).get(STEP, 0)
        (file,) = shown.videos
        video = self._wandb.Video(file, format="mp4", caption=f"{shown.mean:,.1f}")
        # openrlbenchmark knows this name.
        self._run.log({"videos": video, STEP: step}, step=step)


def history_row(result: Mapping[str, float]) -> dict[str, float]:
    """What is logged of a result: RLlib's names, and openrlbenchmark's beside them.

    Args:
        result: numbers, with nested keys joined by "/".
    """
    row = {k: v for k, v in result.items() if not math.isnan(v)}
    # Algorithms that learn from files take no steps.
    iteration = result["training_iteration"]
    row[STEP] = int(result.get(NUM_ENV_STEPS_SAMPLED_LIFETIME, iteration))
    row |= {chart: row[key] for chart, key in CHARTS.items() if key in row}
    # Comparisons have a clock that stands still during evaluations.
    seconds = result.get("time_training_s", result["time_total_s"])
    row |= {"charts/time_s": seconds, "charts/SPS": row[STEP] / max(seconds, 1e-9)}
    return row


def run_config(trial: Trial) -> dict[str, Any]:
    """The config of a W&B run: what was chosen on top, everything under ``all``."""
    told = trial.config.get(STUDY_TRIAL)
    if told is None:
        chosen, about = _chosen(trial), {ENV: trial.config["env"]}
        about[ALGORITHM] = trial.trainable_name
    else:
        chosen = told["config"] | trial.config.get("settings", {})
        about = {name: value for name, value in told.items() if name != "config"}
        about |= {ENV: told["env"], ALGORITHM: told["algorithm"]}
    about[ENV] = getattr(about[ENV], "__name__", about[ENV])
    everything = json.loads(json.dumps(trial.config, default=str, skipkeys=True))
    always = {"seed": None, "trial_id": trial.trial_id, "all": everything}
    return without_secrets(always | chosen | about)


def _chosen(trial: Trial) -> dict[str, Any]:
    """The settings that are not the algorithm's defaults, and a few that always say."""
    defaults = get_trainable_cls(trial.trainable_name).get_default_config().to_dict()
    return {
        # RLlib keeps some behind properties.
        name.removeprefix("_"): value
        for name, value in trial.config.items()
        if name in defaults
        and _is_plain(value)
        and (name in FACTS or value != defaults[name])
    }


def _is_plain(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True


def _numbers(result: dict[str, Any]) -> dict[str, float]:
    """The metrics of a result, flat."""
    metrics = {k: v for k, v in result.items() if k not in _NO_METRICS}
    flat = flatten_dict(metrics, delimiter="/")
    return {k: v for k, v in flat.items() if isinstance(v, numbers.Real)}


def _folder(trial: Trial) -> Path:
    """The trial's folder among the results; on this machine, if they are elsewhere."""
    is_here = isinstance(trial.storage.storage_filesystem, pyarrow.fs.LocalFileSystem)
    return Path(trial.storage.trial_fs_path if is_here else trial.local_path)
