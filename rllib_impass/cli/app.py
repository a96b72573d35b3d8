"""`rllib`: the command that Ray dropped after 2.40, for the new API stack."""

import importlib.metadata
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from rllib_impass.cli.evaluate import evaluate
from rllib_impass.cli.export import export

app = typer.Typer(
    help="Train continuous-control policies with RLlib.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_show_locals=False,
)
train_app = typer.Typer(help="Train a policy.", no_args_is_help=True)
app.add_typer(train_app, name="train")
app.command()(evaluate)
app.command()(export)

PACKAGES = ("rllib_impass", "ray", "torch", "gymnasium", "mujoco")
DEFAULT_STORAGE = Path("~/ray_results")


def main() -> None:
    """Entry point of the `rllib` script."""
    app()


def _print_versions(is_asked: bool) -> None:
    if is_asked:
        for package in PACKAGES:
            typer.echo(f"{package} {importlib.metadata.version(package)}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_versions, is_eager=True),
    ] = False,
) -> None:
    """Train continuous-control policies with RLlib."""


@train_app.command("file")
def train_file(
    file: Annotated[Path, typer.Argument(help="A tuned YAML file.")],
    storage_path: Annotated[
        Path, typer.Option(help="Where results and checkpoints go.")
    ] = DEFAULT_STORAGE,
) -> None:
    """Trains what a YAML file describes.

    Example: rllib train file tuned_examples/impass/hopper_impass.yaml
    """
    # Late: importing Ray takes seconds, and `--help` should not.
    from rllib_impass.cli.train import train

    raise typer.Exit(train(file, storage_path.expanduser(), Console()))
