"""`rllib compare`: algorithms on tasks, everything else being equal."""

from typing import Annotated

import typer
from rich.console import Console

from rllib_impass.cli import study_options as options
from rllib_impass.cli import train_options, wandb_options
from rllib_impass.cli.errors import one_line_errors
from rllib_impass.cli.option_values import given, names, settings


def compare(
    env: Annotated[str, typer.Option(metavar="NAMES", help="Tasks, with commas.")],
    algos: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Algorithms, RLlib's PPO, SAC, APPO and IMPALA among them, or YAML "
            "files, with commas.",
        ),
    ] = "IMPASS,IMPALANoSS,D4PG",
    seeds: options.Seeds = 3,
    first_seed: options.FirstSeed = 0,
    budget_steps: options.BudgetSteps = None,
    budget_seconds: options.BudgetSeconds = None,
    evaluations: options.Evaluations = 20,
    eval_episodes: options.EvalEpisodes = 10,
    set_: options.StudySet = None,
    concurrent: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Trials at a time. Default: as many as Ray has CPUs for; one with a "
            "budget in seconds.",
        ),
    ] = None,
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
    """Compare algorithms with equal budgets, seeds and evaluations.

    Each takes its settings from its tuned file for the task, or its defaults
    where there is none. Interrupted, the same command goes on with it.

    \b
    Examples:
      rllib compare --env Hopper-v5,Swimmer-v5 --seeds 5
      rllib compare --env Ant-v5 --algos IMPASS,PPO --budget-steps 1_000_000
    """
    console = Console()
    with one_line_errors():
        with console.status("starting Ray"):
            # Late: importing Ray takes seconds, and `--help` should not.
            from rllib_impass.cli.studying import Studying
            from rllib_impass.experiments.comparison import comparison_study

            envs = names(env, "--env")
            studying = Studying(
                name=experiment_name or f"compare-{'-'.join(envs)}".replace("/", "-"),
                storage=storage_path,
                modules=tuple(import_ or ()),
                num_concurrent=concurrent,
                ray_options=given(address=ray_address, num_cpus=ray_num_cpus),
                wandb=wandb_options.wandb_options(
                    wandb, wandb_group, wandb_mode, wandb_video
                ),
                verbosity=-1 if quiet else verbose,
            )
            study, folder = studying.prepare(
                lambda: comparison_study(
                    envs,
                    names(algos, "--algos"),
                    seeds=range(first_seed, first_seed + seeds),
                    budget_steps=budget_steps,
                    budget_seconds=options.seconds(budget_steps, budget_seconds),
                    overrides=settings(None, set_ or []),
                    num_evaluations=evaluations,
                    num_episodes=eval_episodes,
                    trusted=studying.modules,
                )
            )
        raise typer.Exit(studying.run(study, folder, console))
