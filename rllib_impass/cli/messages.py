"""What the command says to people."""

from rich.console import Console


def say(console: Console, *lines: str) -> None:
    """Prints lines as they are: paths may be long, and have brackets in them."""
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False, markup=False)
