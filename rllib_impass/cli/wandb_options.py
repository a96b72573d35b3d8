"""The flags that log to Weights & Biases, the same for every command that trains."""

import enum
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rllib_impass.experiments.tracking import WandbOptions


class Mode(str, enum.Enum):
    """When W&B gets to see a run."""

    ONLINE = "online"
    OFFLINE = "offline"


Wandb = Annotated[
    str | None,
    typer.Option(
        "--wandb",
        metavar="PROJECT",
        help="Log to this W&B project, or ENTITY/PROJECT.",
    ),
]
WandbGroup = Annotated[
    str | None,
    typer.Option(metavar="GROUP", help="W&B group. Default: the run's folder"),
]
WandbMode = Annotated[
    Mode | None,
    typer.Option(help="Offline needs no login. Default: online"),
]
WandbVideo = Annotated[
    bool,
    typer.Option("--wandb-video", help="Also film each trial's last checkpoint."),
]


def wandb_options(
    project: str | None, group: str | None, mode: Mode | None, with_video: bool = False
) -> "WandbOptions | None":
    """What the flags ask for; None without ``--wandb``.

    Raises:
        UsageError: if it cannot be had.
    """
    # Late: tracking imports Ray, and `--help` should not.
    from rllib_impass.experiments.errors import UsageError
    from rllib_impass.experiments.tracking import WandbOptions, check_wandb

    if project is None:
        others = {"group": group, "mode": mode, "video": with_video}
        for name, value in others.items():
            if value:
                raise UsageError(f"--wandb-{name} does nothing without --wandb PROJECT")
        return None
    options = WandbOptions(project, group, mode and mode.value, with_video)
    check_wandb(options)
    return options
