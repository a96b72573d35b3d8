"""The flags that `rllib compare` and `rllib actors` have in common."""

from typing import Annotated

import typer

DEFAULT_SECONDS = 360.0

Seeds = Annotated[int, typer.Option(min=1, metavar="N", help="Trials of each.")]
FirstSeed = Annotated[
    int, typer.Option(min=0, metavar="N", help="Seeds count up from here.")
]
BudgetSteps = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Env steps of each trial.")
]
BudgetSeconds = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        help="Training time of each trial, evaluations not counted; one trial at "
        f"a time. Default, without --budget-steps: {DEFAULT_SECONDS:.0f}",
    ),
]
Evaluations = Annotated[
    int, typer.Option(min=1, metavar="N", help="In each trial, at equal distances.")
]
EvalEpisodes = Annotated[
    int, typer.Option(min=1, metavar="N", help="Deterministic ones, per evaluation.")
]
StudySet = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="A.B=VALUE", help="One setting, for all; wins over files."
    ),
]


def seconds(steps: int | None, seconds: float | None) -> float | None:
    """The budget in seconds: what was asked for, or the default if nothing was."""
    return DEFAULT_SECONDS if steps is None and seconds is None else seconds
