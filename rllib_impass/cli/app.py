"""`rllib`: the command that Ray dropped after 2.40, for the new API stack."""

from typing import Annotated

import typer

from rllib_impass.cli import benchmark, example
from rllib_impass.cli.actors import actors
from rllib_impass.cli.compare import compare
from rllib_impass.cli.evaluate import evaluate
from rllib_impass.cli.export import export
from rllib_impass.cli.report import report
from rllib_impass.cli.train import train
from rllib_impass.experiments.versions import versions

app = typer.Typer(
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)
for _command in (train, evaluate, export, compare, actors, report):
    app.command(no_args_is_help=True)(_command)
app.add_typer(benchmark.app, name="benchmark")
app.add_typer(example.app, name="example")


def main() -> None:
    """Entry point of the `rllib` script."""
    app()


def _print_versions(is_asked: bool) -> None:
    if is_asked:
        for package, version in versions().items():
            typer.echo(f"{package} {version}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_versions,
            is_eager=True,
            help="Versions of this package and of what it stands on.",
        ),
    ] = False,
) -> None:
    """Train continuous-control policies with RLlib.

    Example: rllib train file tuned_examples/impass/hopper_impass.yaml
    """
