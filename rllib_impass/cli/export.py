"""`rllib export`: a policy as one file."""

from pathlib import Path
from typing import Annotated

import typer

from rllib_impass.cli.checkpoint_options import CheckpointOption, find
from rllib_impass.cli.errors import one_line_errors
from rllib_impass.cli.train_options import Import


def export(
    path: Annotated[
        Path, typer.Argument(help="A checkpoint, a trial or an experiment folder.")
    ],
    file: Annotated[
        Path, typer.Argument(help="The file to write, such as hopper.pt2.")
    ],
    checkpoint: CheckpointOption = "best",
    force: Annotated[
        bool, typer.Option("--force", help="Replace the file if it exists.")
    ] = False,
    modules: Import = None,
) -> None:
    """Write the policy of a checkpoint as one file for PyTorch alone.

    It holds the deterministic policy, its observation normaliser and its
    mapping to the env's actions; docs/export.md shows how to run it. Loading
    a checkpoint executes code: load only those you trust.

    Example: rllib export ~/ray_results/hopper-impass hopper.pt2
    """
    with one_line_errors():
        found = find(path, checkpoint, modules)
        # Late: importing Ray takes seconds, and `--help` should not.
        from rllib_impass.experiments.export import export_policy

        policy = export_policy(found.path, file, force=force)
        typer.echo(
            f"{policy['algorithm']} on {policy['env']}, iteration "
            f"{policy['training_iteration']}: {found.path}"
        )
        typer.echo(f"wrote {file}")
