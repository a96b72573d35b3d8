"""`rllib report`: what runs came to, as a page."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from rllib_impass.cli.errors import one_line_errors
from rllib_impass.cli.messages import say
from rllib_impass.cli.wandb_report import DryRun, WandbProject, report_on_wandb
from rllib_impass.experiments.errors import UsageError

if TYPE_CHECKING:
    from rllib_impass.reports.sections import Report

DEFAULT_OUT = "report"


def report(
    places: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="DIR...",
            help="Run folders, folders of these, or the results.csv of other reports.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Where to write; default: report in the first folder."
        ),
    ] = None,
    threshold: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ENV=RETURN",
            help="A return to be reached, for how long it takes; may be repeated.",
        ),
    ] = None,
    wandb: WandbProject = None,
    dry_run: DryRun = False,
) -> None:
    """Write a page with figures and tables of trials.

    It holds learning curves, final scores with intervals, probabilities of
    improvement, time to a threshold, throughput, policy lag and action
    smoothness; docs/reports.md says how each is computed.

    \b
    Examples:
      rllib report ~/ray_results/hopper-impass
      rllib report runs/a runs/b --out comparison --threshold Hopper-v5=1500
      rllib report earlier/results.csv runs --out all
      rllib report --wandb me/my-project
    """
    with one_line_errors():
        if wandb is not None:
            out = out or Path(DEFAULT_OUT)
            report_on_wandb(wandb, places or [], out, dry_run=dry_run)
            return
        if dry_run:
            raise UsageError("--dry-run does nothing without --wandb ENTITY/PROJECT")
        if not places:
            raise UsageError("give the folder of a run, or --wandb ENTITY/PROJECT")
        if out is None and places[0].is_file():
            raise UsageError(f"{places[0]} is a file: say with --out where to write")
        show_report(places, out, _thresholds(threshold or []), Console())


def show_report(
    places: list[Path],
    out: Path | None,
    thresholds: dict[str, float],
    console: Console,
) -> None:
    """Writes the page, and says in short what is on it."""
    target = places[0] / DEFAULT_OUT if out is None else out
    with console.status("reading") as status:
        # Late: numpy and matplotlib take a second, and `--help` should not.
        from rllib_impass.reports.errors import ReportError
        from rllib_impass.reports.report import PAGE, write_report

        try:
            made = write_report(places, target, thresholds, status.update)
        except ReportError as error:
            raise UsageError(str(error)) from None
    console.print(_summary(made))
    for note in made.notes:
        console.print(f"- {note}", highlight=False, markup=False)
    say(console, f"wrote {(target / PAGE).absolute()}")


def _summary(made: "Report") -> Table:
    """Final scores in 80 columns."""
    from rllib_impass.reports.tables import score_tables

    table = Table(
        title="final scores", title_justify="left", box=box.SIMPLE_HEAD, show_edge=False
    )
    for number, name in enumerate(
        ("env", "algorithm", "seeds", "IQM", "95 % interval")
    ):
        table.add_column(name, justify="left" if number < 3 else "right")
    for of_env in score_tables(made.groups):
        for number, row in enumerate(of_env.rows):
            table.add_row("" if number else of_env.title, *row[:4])
        table.add_section()
    return table


def _thresholds(words: list[str]) -> dict[str, float]:
    found = {}
    for word in words:
        env, _, value = word.rpartition("=")
        try:
            found[env] = float(value)
        except ValueError:
            env = ""
        if not env:
            raise UsageError(
                f"--threshold {word!r}: expected ENV=RETURN, such as Hopper-v5=2000"
            )
    return found
