"""`rllib report`: what runs came to, as a page."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from rllib_impass.cli.errors import one_line_errors
from rllib_impass.experiments.errors import UsageError

if TYPE_CHECKING:
    from rllib_impass.reports.sections import Report

DEFAULT_OUT = "report"


def report(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="DIR", help="Run folders, or folders of these."),
    ],
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
) -> None:
    """Writes a page with figures and tables of finished or running trials.

    It holds learning curves, final scores with intervals, probabilities of
    improvement, time to a threshold, throughput, policy lag and action
    smoothness; docs/reports.md says how each is computed.

    \b
    Examples:
      rllib report ~/ray_results/hopper-impass
      rllib report runs/a runs/b --out comparison --threshold Hopper-v5=1500
    """
    console = Console()
    with one_line_errors():
        thresholds = _thresholds(threshold or [])
        target = folders[0] / DEFAULT_OUT if out is None else out
        with console.status("reading") as status:
            # Late: numpy and matplotlib take a second, and `--help` should not.
            from rllib_impass.reports.errors import ReportError
            from rllib_impass.reports.report import PAGE, write_report

            try:
                made = write_report(folders, target, thresholds, status.update)
            except ReportError as error:
                raise UsageError(str(error)) from None
        console.print(_summary(made))
        for note in made.notes:
            console.print(f"- {note}", highlight=False, markup=False)
        page = (target / PAGE).absolute()
        console.print(f"wrote {page}", soft_wrap=True, highlight=False, markup=False)


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
