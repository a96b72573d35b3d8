"""`rllib train`: from flags to experiments."""

from pathlib import Path

import typer
from rich.console import Console

from rllib_impass.cli import train_options as options
from rllib_impass.cli import wandb_options
from rllib_impass.cli.errors import one_line_errors
from rllib_impass.cli.option_values import given, mapping, settings


def train(
    what: options.What = None,
    run: options.Run = None,
    env: options.Env = None,
    stop: options.Stop = None,
    config: options.Config = None,
    set_: options.Set = None,
    num_samples: options.NumSamples = None,
    import_: options.Import = None,
    experiment_name: options.ExperimentName = None,
    storage_path: options.StoragePath = None,
    resume: options.Resume = False,
    restore: options.Restore = None,
    checkpoint_freq: options.CheckpointFreq = None,
    checkpoint_at_end: options.CheckpointAtEnd = None,
    keep_checkpoints_num: options.KeepCheckpoints = None,
    checkpoint_score_attr: options.CheckpointScore = None,
    max_failures: options.MaxFailures = None,
    scheduler: options.Scheduler = None,
    scheduler_config: options.SchedulerConfig = None,
    time_budget_s: options.TimeBudget = None,
    ray_address: options.RayAddress = None,
    ray_num_cpus: options.RayNumCpus = None,
    ray_num_gpus: options.RayNumGpus = None,
    ray_object_store_memory: options.RayObjectStore = None,
    wandb: wandb_options.Wandb = None,
    wandb_group: wandb_options.WandbGroup = None,
    wandb_mode: wandb_options.WandbMode = None,
    wandb_video: wandb_options.WandbVideo = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = 0,
) -> None:
    """Train a policy, from a file or from flags.

    A flag wins over the file, the file over the defaults.

    \b
    Examples:
      rllib train file tuned_examples/impass/hopper_impass.yaml
      rllib train file my.yaml --set lr=1e-4 --set seed=3
      rllib train --run IMPASS --env Hopper-v5 --stop '{time_total_s: 60}'
      rllib train --run PPO --env Pendulum-v1 --stop '{training_iteration: 9}'
    """
    # Late imports, here and below: Ray takes seconds, and `--help` should not.
    with one_line_errors():
        with Console().status("starting Ray"):
            from rllib_impass.cli.training import Training

            flags = {
                "run": run,
                "env": env,
                "stop": mapping(stop, "--stop"),
                "config": settings(config, set_ or []),
                "num_samples": num_samples,
                "checkpoint_config": given(
                    checkpoint_frequency=checkpoint_freq,
                    checkpoint_at_end=checkpoint_at_end,
                    num_to_keep=keep_checkpoints_num,
                    checkpoint_score_attribute=checkpoint_score_attr,
                ),
                "max_failures": max_failures,
                "scheduler": scheduler.lower() if scheduler else None,
                "scheduler_config": mapping(scheduler_config, "--scheduler-config"),
                "time_budget_s": time_budget_s,
            }
            training = Training(
                file=_file(what or []),
                overrides=given(**flags),
                modules=tuple(import_ or ()),
                name=experiment_name,
                storage=storage_path,
                restore=restore,
                is_resumed=resume,
                ray_options=given(
                    address=ray_address,
                    num_cpus=ray_num_cpus,
                    num_gpus=ray_num_gpus,
                    object_store_memory=ray_object_store_memory,
                ),
                wandb=wandb_options.wandb_options(
                    wandb, wandb_group, wandb_mode, wandb_video
                ),
                verbosity=-1 if quiet else verbose,
            )
            jobs = training.prepare()
        raise typer.Exit(training.run(jobs))


def _file(what: list[str]) -> Path | None:
    from rllib_impass.experiments.errors import UsageError

    if what and (what[0] != "file" or len(what) != 2):
        raise UsageError(
            f"`{' '.join(what)}` is not understood; write `rllib train file FILE.yaml`"
            " or `rllib train --run ALGORITHM --env ENV --stop ...`"
        )
    return Path(what[1]) if what else None
