"""`rllib benchmark`: what training costs on this machine."""

import contextlib
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Union

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from rllib_impass.cli.errors import one_line_errors
from rllib_impass.cli.noise import silence
from rllib_impass.cli.option_values import names
from rllib_impass.cli.output_files import check_writable, write_json
from rllib_impass.cli.train_options import Import
from rllib_impass.experiments.errors import UsageError

if TYPE_CHECKING:
    from rllib_impass.experiments.benchmark.replay import ReplayPlan
    from rllib_impass.experiments.benchmark.throughput import ThroughputPlan

app = typer.Typer(
    no_args_is_help=True,
    help="Measure what training costs on this machine.\n\n"
    "Example: rllib benchmark throughput --env Hopper-v5",
)

EnvNames = Annotated[
    str, typer.Option(metavar="NAMES", help="One, or several with commas.")
]
Seconds = Annotated[
    float, typer.Option(help="Measured for each contender, all rounds together.")
]
Rounds = Annotated[int, typer.Option(help="In how many turns.")]
JsonFile = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="File for every figure.")
]


@app.command()
def throughput(
    env: EnvNames = "Hopper-v5",
    seconds: Seconds = 30.0,
    rounds: Rounds = 3,
    learner_process: Annotated[
        bool,
        typer.Option(
            "--learner-process", help="Also IMPASS with a learner in a process."
        ),
    ] = False,
    json_file: JsonFile = None,
    modules: Import = None,
) -> None:
    """Steps per second, beside stock IMPALA and bare envs.

    All are started once and measured in turns, so that noise hits all alike.
    Nothing else should run meanwhile.

    Example: rllib benchmark throughput --env Hopper-v5,Swimmer-v5 --json t.json
    """
    console = Console()
    with one_line_errors():
        check_writable(json_file, "--json")
        with console.status("checking"):
            _prepare(modules)
            # Late: importing Ray takes seconds, and `--help` should not.
            from rllib_impass.experiments.benchmark.throughput import plan_throughput

            plans = [
                plan_throughput(
                    name,
                    seconds=seconds,
                    rounds=rounds,
                    learner_process=learner_process,
                    modules=modules or (),
                )
                for name in names(env, "--env")
            ]
        _run_in_turns(plans, console, json_file)


@app.command()
def replay(
    env: EnvNames = "Hopper-v5",
    seconds: Seconds = 60.0,
    rounds: Rounds = 3,
    json_file: JsonFile = None,
    modules: Import = None,
) -> None:
    """Steps and updates per second of D4PG, beside RLlib's SAC.

    Both get the same batch, updates per env step, runners, envs and layer sizes,
    and fill their buffers before they are measured, in turns. A slice (seconds
    / rounds) should last 10 seconds or more: SAC is slow.

    Example: rllib benchmark replay --env Hopper-v5 --json r.json
    """
    console = Console()
    with one_line_errors():
        check_writable(json_file, "--json")
        with console.status("checking"):
            _prepare(modules)
            from rllib_impass.experiments.benchmark.replay import plan_replay

            plans = [
                plan_replay(name, seconds=seconds, rounds=rounds, modules=modules or ())
                for name in names(env, "--env")
            ]
        _run_in_turns(plans, console, json_file)


@app.command()
def scaling(
    only: Annotated[
        str | None,
        typer.Option(
            metavar="AXES", help="Of runners, envs, stack, width, env; with commas."
        ),
    ] = None,
    seconds: Annotated[
        float, typer.Option(help="Measured at each point, and of the base beside it.")
    ] = 10.0,
    json_file: JsonFile = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File for a figure, .png or .svg."),
    ] = None,
) -> None:
    """How the cost of IMPASS grows, one setting at a time.

    Runners, envs per runner, stacked states, hidden width and observation size
    are varied around the shipped settings on Hopper-v5.

    Example: rllib benchmark scaling --only runners,stack --plot scaling.png
    """
    console = Console()
    with one_line_errors():
        check_writable(json_file, "--json")
        _check_plot(plot)
        with console.status("checking"):
            _prepare(None)
            from rllib_impass.cli.benchmark_tables import scaling_table, scaling_title
            from rllib_impass.experiments.benchmark.scaling import plan_scaling
            from rllib_impass.experiments.benchmark.session import conditions

            axes = None if only is None else names(only, "--only")
            plan = plan_scaling(seconds=seconds, only=axes)
        figures = conditions() | {"seconds": seconds}
        with _progress(console) as on_progress:
            result = plan.run(on_progress)
        console.print(scaling_table(result, figures["cores"]))
        if json_file is not None:
            write_json(figures | result.to_dict(), json_file)
            console.print(f"wrote {json_file}", soft_wrap=True)
        if plot is not None:
            from rllib_impass.reports.plots import plot_scaling

            plot.parent.mkdir(parents=True, exist_ok=True)
            title = f"{scaling_title(figures['cores'])} (filled: as shipped)"
            plot_scaling(result.rows(), plot, title)
            console.print(f"wrote {plot}", soft_wrap=True)


def _run_in_turns(
    plans: list[Union["ThroughputPlan", "ReplayPlan"]],
    console: Console,
    json_file: Path | None,
) -> None:
    from rllib_impass.cli.benchmark_tables import comparison_table
    from rllib_impass.experiments.benchmark.session import conditions
    from rllib_impass.registry import register_all

    figures = conditions() | {
        "seconds": plans[0].seconds,
        "rounds": plans[0].rounds,
        "results": [],
    }
    for plan in plans:
        # Tune forgot our environments when the last one's Ray ended.
        register_all()
        with _progress(console) as on_progress:
            result = plan.run(on_progress)
        console.print(comparison_table(result, figures["cores"]))
        figures["results"].append(result.to_dict())
        if json_file is not None:
            # After each env: the next may take long.
            write_json(figures, json_file)
    if json_file is not None:
        console.print(f"wrote {json_file}", soft_wrap=True)


def _prepare(modules: list[str] | None) -> None:
    silence()
    from rllib_impass.experiments.class_paths import import_modules
    from rllib_impass.registry import register_all

    # The table has a row for each back end anyway.
    logging.getLogger("rllib_impass").setLevel(logging.WARNING)
    # What they learn does not matter, nor that RLlib has a new API stack.
    for name in ("rllib_impass.algorithms.d4pg", "ray.rllib.algorithms.sac"):
        logging.getLogger(name).setLevel(logging.ERROR)
    register_all()
    import_modules(modules or ())


def _check_plot(plot: Path | None) -> None:
    from rllib_impass.reports.style import FORMATS

    check_writable(plot, "--plot")
    if plot is not None and plot.suffix not in FORMATS:
        raise UsageError(f"--plot {plot} must end in {' or '.join(FORMATS)}")


@contextlib.contextmanager
def _progress(console: Console) -> Iterator[Callable[[str, float], None]]:
    """A bar if somebody watches, else a line on stderr for whatever begins."""
    if not console.is_terminal:
        yield _print_beginnings()
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
    )
    # It is drawn by the process that is measured: seldom.
    with Progress(
        *columns, console=console, transient=True, refresh_per_second=1
    ) as progress:
        task = progress.add_task("starting Ray", total=1.0)
        yield lambda label, done: progress.update(
            task, description=label, completed=done
        )


def _print_beginnings() -> Callable[[str, float], None]:
    before = ""

    def print_if_new(label: str, done: float) -> None:
        nonlocal before
        if label != before:
            print(label, file=sys.stderr, flush=True)
        before = label

    return print_if_new
