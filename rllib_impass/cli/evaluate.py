"""`rllib evaluate`: how good is the policy of a checkpoint?"""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from rllib_impass.cli.checkpoint_options import CheckpointOption, find
from rllib_impass.cli.errors import one_line_errors
from rllib_impass.cli.output_files import write_json
from rllib_impass.cli.train_options import Import

if TYPE_CHECKING:
    from rllib_impass.experiments.evaluation import Evaluation


def evaluate(
    path: Annotated[
        Path, typer.Argument(help="A checkpoint, a trial or an experiment folder.")
    ],
    checkpoint: CheckpointOption = "best",
    episodes: Annotated[int, typer.Option(min=1, help="How many, exactly.")] = 10,
    seed: Annotated[
        int | None, typer.Option(help="Of the episodes; default: the training run's.")
    ] = None,
    explore: Annotated[
        bool, typer.Option("--explore", help="Sample actions; default: deterministic.")
    ] = False,
    video: Annotated[
        Path | None, typer.Option(help="Folder for an MP4 of the first episode.")
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="File for every figure.")
    ] = None,
    modules: Import = None,
) -> None:
    """Evaluate the policy of a checkpoint.

    The episodes are those of the evaluation inside training, unless --seed
    says otherwise. Loading a checkpoint executes code: load only those you
    trust.

    Example: rllib evaluate ~/ray_results/hopper-impass --video videos
    """
    console = Console()
    with one_line_errors():
        with console.status("reading the checkpoint"):
            found = find(path, checkpoint, modules)
            # Late: importing Ray takes seconds, and `--help` should not.
            from rllib_impass.experiments.checkpoint import read_algorithm
            from rllib_impass.experiments.evaluation import evaluate as run

            saved = read_algorithm(found.path)
        console.print(
            f"{saved.name} on {saved.env_name}, iteration {saved.iteration}: "
            f"{saved.path}",
            soft_wrap=True,
        )
        with _progress(console, episodes) as on_episode_end:
            result = run(
                found.path,
                episodes=episodes,
                seed=seed,
                explore=explore,
                video_dir=video,
                on_episode_end=on_episode_end,
            )
        console.print(_table(result))
        for file in result.videos:
            console.print(f"wrote {file}", soft_wrap=True)
        if json_file is not None:
            write_json(result.to_dict(), json_file)
            console.print(f"wrote {json_file}", soft_wrap=True)


@contextlib.contextmanager
def _progress(console: Console, episodes: int) -> Iterator[Callable[[], None] | None]:
    """A bar while episodes run, if somebody watches."""
    if not console.is_terminal:
        yield None
        return
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("episodes", total=episodes)
        yield lambda: progress.advance(task)


def _table(result: "Evaluation") -> Table:
    figures = result.to_dict()
    rows = {
        "episodes": f"{figures['num_episodes']} (seed {result.seed})",
        "return, mean ± std": (
            f"{figures['return_mean']:,.2f} ± {figures['return_std']:,.2f}"
        ),
        "return, median": f"{figures['return_median']:,.2f}",
        "return, min to max": (
            f"{figures['return_min']:,.2f} to {figures['return_max']:,.2f}"
        ),
        "length, mean": f"{figures['length_mean']:,.1f}",
    }
    if result.success_rate is not None:
        rows["success rate"] = f"{result.success_rate:.0%}"
    if result.action_smoothness is not None:
        rows["action smoothness"] = f"{result.action_smoothness:.4f} (lower: smoother)"
    table = Table(show_header=False)
    for name, value in rows.items():
        table.add_row(name, value)
    return table
