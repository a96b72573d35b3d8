"""The flags of `rllib train`: names of the former command, where they still mean it."""

from pathlib import Path
from typing import Annotated

import typer

_EXPERIMENT_FILES = (".yaml", ".yml", ".py")


def complete_what(incomplete: str) -> list[str]:
    """Words for the TAB key: `file`, then experiment files."""
    start = Path(incomplete)
    folder = start if incomplete.endswith("/") else start.parent
    prefix = "" if incomplete.endswith("/") else start.name
    paths = sorted(folder.glob(f"{prefix}*")) if folder.is_dir() else []
    words = [f"{p}/" if p.is_dir() else str(p) for p in paths]
    fitting = [w for w in words if w.endswith(("/", *_EXPERIMENT_FILES))]
    return ["file", *fitting] if "file".startswith(incomplete) else fitting


What = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[file FILE]",
        help="A YAML file, or a Python file with variables `config` and `stop`.",
        show_default=False,
        autocompletion=complete_what,
    ),
]

Run = Annotated[
    str | None,
    typer.Option("--run", "--algo", "-r", "-a", metavar="NAME", help="Algorithm."),
]
Env = Annotated[
    str | None,
    typer.Option("--env", "-e", metavar="NAME", help="Environment."),
]
Stop = Annotated[
    str | None,
    typer.Option(
        "--stop",
        "-s",
        metavar="JSON",
        help="When to stop, as JSON or YAML; replaces the file's.",
    ),
]
Config = Annotated[
    str | None,
    typer.Option("--config", "-c", metavar="JSON", help="Settings, as JSON or YAML."),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="A.B=VALUE",
        help="One setting; wins over --config.",
    ),
]
NumSamples = Annotated[
    int | None, typer.Option(metavar="N", help="Repeats of every trial.")
]
Import = Annotated[
    list[str] | None,
    typer.Option(
        "--import",
        metavar="MODULE",
        help="Import this first and trust its classes: your own environments.",
    ),
]

ExperimentName = Annotated[
    str | None,
    typer.Option(
        "--experiment-name",
        "-n",
        metavar="NAME",
        help="Folder of the run.",
    ),
]
StoragePath = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="Where runs go. Default: ~/ray_results"),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Go on with the last run of this name.",
    ),
]
Restore = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="Start a new run from this checkpoint."),
]
CheckpointFreq = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Iterations between two; 0 for none. Default: 10",
    ),
]
CheckpointAtEnd = Annotated[
    bool | None,
    typer.Option(
        "--checkpoint-at-end/--no-checkpoint-at-end",
        help="Default: yes",
    ),
]
KeepCheckpoints = Annotated[
    int | None,
    typer.Option(
        "--keep-checkpoints-num",
        metavar="N",
        help="How many to keep. Default: all",
    ),
]
CheckpointScore = Annotated[
    str | None,
    typer.Option(
        "--checkpoint-score-attr",
        metavar="KEY",
        help="The result that says which to keep.",
    ),
]
MaxFailures = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="How often a failed trial goes on from its last checkpoint.",
    ),
]

Scheduler = Annotated[
    str | None, typer.Option(metavar="NAME", help="Tune scheduler, e.g. pbt.")
]
SchedulerConfig = Annotated[
    str | None,
    typer.Option(metavar="JSON", help="Its arguments, as JSON or YAML."),
]
TimeBudget = Annotated[
    float | None,
    typer.Option(
        "--time-budget-s", metavar="SECONDS", help="Stop after so many seconds."
    ),
]
RayAddress = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="A running cluster, e.g. auto.")
]
RayNumCpus = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Logical CPUs of Ray.")
]
RayNumGpus = Annotated[
    int | None, typer.Option(min=0, metavar="N", help="GPUs of Ray.")
]
RayObjectStore = Annotated[
    int | None,
    typer.Option(
        "--ray-object-store-memory",
        min=80_000_000,
        metavar="BYTES",
        help="Shared memory of Ray.",
    ),
]

Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Only where results go, and the end.")
]
Verbose = Annotated[
    int,
    typer.Option(
        "--verbose",
        "-v",
        count=True,
        show_default=False,
        help="Also what Ray's workers log; -vv for debugging.",
    ),
]
