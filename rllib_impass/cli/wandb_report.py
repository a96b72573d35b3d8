"""`rllib report --wandb`: the same comparison as a report on Weights & Biases."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from rllib_impass.cli.output_files import check_writable
from rllib_impass.experiments.errors import UsageError

FILE_NAME = "wandb_report.json"

WandbProject = Annotated[
    str | None,
    typer.Option(
        "--wandb",
        metavar="ENTITY/PROJECT",
        help="Publish a W&B report of this project's runs.",
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="With --wandb: only write its JSON, for the runs in DIR...",
    ),
]


def report_on_wandb(
    path: str, folders: list[Path], out: Path, *, dry_run: bool
) -> None:
    """Publishes a report, or writes what would be published.

    Args:
        path: ENTITY/PROJECT.
        folders: run folders, which say what the project holds; for a dry run.
        out: the folder that a dry run writes to.
        dry_run: whether to stay off the network.
    """
    # Late: Ray and wandb take seconds, and `--help` should not.
    from rllib_impass.experiments.tracking import check_login
    from rllib_impass.reports import wandb_report
    from rllib_impass.reports.errors import ReportError

    if dry_run and not folders:
        raise UsageError("--dry-run: give the folders of runs that --wandb logged")
    if folders and not dry_run:
        raise UsageError("--wandb asks the project for its runs; leave out the folders")
    console = Console()
    file = out / FILE_NAME
    check_writable(file if dry_run else None, "--out")
    try:
        if dry_run:
            runs = wandb_report.tracked_runs(folders)
            wandb_report.write_json(wandb_report.build_report(path, runs), file)
            told = f"wrote {file.absolute()}"
        else:
            check_login("look at it first with --dry-run")
            with console.status("asking Weights & Biases"):
                runs = wandb_report.project_runs(path)
                address = wandb_report.publish(wandb_report.build_report(path, runs))
            told = f"Weights & Biases: {address}"
    except ReportError as error:
        raise UsageError(str(error)) from None
    console.print(told, soft_wrap=True, highlight=False, markup=False)
