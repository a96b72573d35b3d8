"""`rllib actors`: how many actors are worth having."""

from typing import Annotated

import typer
from rich.console import Console

from rllib_impass.cli import study_options as options
from rllib_impass.cli import train_options, wandb_options
from rllib_impass.cli.errors import one_line_errors
from rllib_impass.cli.option_values import given, settings, whole_numbers


def actors(
    env: Annotated[str, typer.Option(metavar="NAME", help="The task.")],
    algo: Annotated[
        str, typer.Option(metavar="NAME", help="An algorithm, or a YAML file.")
    ] = "IMPASS",
    counts: Annotated[
        str, typer.Option(metavar="NUMBERS", help="Numbers of actors, with commas.")
    ] = "1,2,4,8",
    seeds: options.Seeds = 1,
    first_seed: options.FirstSeed = 0,
    budget_steps: options.BudgetSteps = None,
    budget_seconds: options.BudgetSeconds = None,
    evaluations: options.Evaluations = 20,
    eval_episodes: options.EvalEpisodes = 10,
    set_: options.StudySet = None,
    experiment_name: train_options.ExperimentName = None,
    storage_path: train_options.StoragePath = None,
    import_: train_options.Import = None,
    ray_address: train_options.RayAddress = None,
    ray_num_cpus: train_options.RayNumCpus = None,
    wandb: wandb_options.Wandb = None,
    wandb_group: wandb_options.WandbGroup = None,
    wandb_mode: wandb_options.WandbMode = None,
    wandb_video: wandb_options.WandbVideo = False,
    quiet: train_options.Quiet = False,
    verbose: train_options.Verbose = 0,
) -> None:
    """Compare numbers of actors and recommend one for this machine.

    One trial at a time. Interrupted, the same command goes on with it.

    Example: rllib actors --env Hopper-v5 --counts 1,2,4,8 --seeds 2
    """
    console = Console()
    with one_line_errors():
        with console.status("starting Ray"):
            # Late: importing Ray takes seconds, and `--help` should not.
            from rllib_impass.cli.studying import Studying
            from rllib_impass.experiments.actor_sweep import (
                actor_study,
                write_recommendation,
            )

            studying = Studying(
                name=experiment_name or f"actors-{env}".replace("/", "-"),
                storage=storage_path,
                modules=tuple(import_ or ()),
                num_concurrent=1,
                ray_options=given(address=ray_address, num_cpus=ray_num_cpus),
                wandb=wandb_options.wandb_options(
                    wandb, wandb_group, wandb_mode, wandb_video
                ),
                verbosity=-1 if quiet else verbose,
            )
            study, folder = studying.prepare(
                lambda: actor_study(
                    algo,
                    env,
                    whole_numbers(counts, "--counts"),
                    seeds=range(first_seed, first_seed + seeds),
                    budget_steps=budget_steps,
                    budget_seconds=options.seconds(budget_steps, budget_seconds),
                    overrides=settings(None, set_ or []),
                    num_evaluations=evaluations,
                    num_episodes=eval_episodes,
                    trusted=studying.modules,
                )
            )
        raise typer.Exit(studying.run(study, folder, console, write_recommendation))
