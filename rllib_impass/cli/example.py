"""`rllib example`: the tuned files that come with the package; no network needed."""

import textwrap
from typing import Annotated

import typer

from rllib_impass.cli.errors import one_line_errors

app = typer.Typer(
    no_args_is_help=True,
    help="List, show and run the tuned files that come with the package.\n\n"
    "Example: rllib example run hopper_impass",
)


def complete_id(incomplete: str) -> list[str]:
    """Names for the TAB key."""
    from rllib_impass.experiments.examples import list_examples

    return [e.id for e in list_examples() if e.id.startswith(incomplete)]


ExampleId = Annotated[
    str, typer.Argument(metavar="ID", show_default=False, autocompletion=complete_id)
]


@app.command("list")
def list_(
    filter_: Annotated[
        str,
        typer.Option(
            "--filter", "-f", metavar="WORD", help="Only those with this in their id."
        ),
    ] = "",
) -> None:
    """List the tuned files.

    Example: rllib example list --filter hopper
    """
    from rich.console import Console

    from rllib_impass.experiments.examples import list_examples

    console = Console()
    for example in list_examples():
        if filter_ in example.id:
            console.print(f"[bold]{example.id}[/bold]: {example.status}")
            task = f"{example.run} on {example.env}, {example.budget}"
            for fact in (task, example.expected):
                lines = textwrap.wrap(fact, console.width - 2)
                console.print(textwrap.indent("\n".join(lines), "  "))


@app.command()
def get(example_id: ExampleId) -> None:
    """Print a tuned file.

    Example: rllib example get hopper_impass > my.yaml
    """
    with one_line_errors():
        from rllib_impass.experiments.examples import find_example

        typer.echo(find_example(example_id).path.read_text(), nl=False)


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True}
)
def run(context: typer.Context, example_id: ExampleId) -> None:
    """Train a tuned file; takes every flag of `rllib train`.

    Example: rllib example run hopper_impass --set seed=1
    """
    with one_line_errors():
        from rllib_impass.cli.app import app as rllib
        from rllib_impass.experiments.examples import find_example

        path = find_example(example_id).path
        rllib(["train", "file", str(path), *context.args])
