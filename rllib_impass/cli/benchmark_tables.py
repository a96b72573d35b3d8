"""Benchmarks as tables of 80 columns."""

from rich import box
from rich.table import Table

from rllib_impass.cli.progress_columns import NOTHING, number
from rllib_impass.experiments.benchmark.measurement import Measurement
from rllib_impass.experiments.benchmark.scaling import ALGORITHM, BASE_ENV, Scaling
from rllib_impass.experiments.benchmark.throughput import Throughput

THROUGHPUT_COLUMNS = (
    "sampled\n/s",
    "trained\n/s",
    "x\nstock",
    "of\nraw",
    "CPU\ndriver",
    "CPU\nrunner",
    "CPU\nlearner",
    "peak\nGB",
    "lag\n",
)
THROUGHPUT_CAPTION = (
    "Env steps per second; stock is RLlib's IMPALA, raw the same back end without "
    "training; CPU in cores; lag in weight versions."
)
SCALING_COLUMNS = ("trained/s", "to base", "runners", "learner")
SCALING_CAPTION = "runners, learner: CPU microseconds per env step."


def throughput_table(result: Throughput, cores: int) -> Table:
    """A row for each contender."""
    # A gap of one: with the longest name, that is 80 columns.
    table = _table(f"{result.env} on {cores} cores", THROUGHPUT_CAPTION, gap=1)
    table.add_column("\n")
    for column in THROUGHPUT_COLUMNS:
        table.add_column(column, justify="right", no_wrap=True)
    for measurement in result.measurements:
        table.add_row(measurement.name, *_throughput_cells(result, measurement))
    return table


def scaling_table(result: Scaling, cores: int) -> Table:
    """A row for each point, in sections for each axis."""
    table = _table(scaling_title(cores), SCALING_CAPTION, gap=3)
    table.add_column("setting")
    table.add_column("value")
    for column in SCALING_COLUMNS:
        table.add_column(column, justify="right", no_wrap=True)
    before = None
    for row in result.rows():
        is_new = row["label"] != before
        if is_new and before is not None:
            table.add_section()
        before = row["label"]
        table.add_row(
            row["label"] if is_new else "",
            str(row["value"]),
            number(row["trained_per_s"], 0, 9),
            "base" if row["is_base"] else number(row["ratio_to_base"], 2, 7),
            number(row["runners_us_per_step"], 1, 7),
            number(row["learner_us_per_step"], 1, 7),
        )
    return table


def scaling_title(cores: int) -> str:
    """What all points have in common."""
    return f"{ALGORITHM} on {BASE_ENV}, {cores} cores, one setting varied at a time"


def _table(title: str, caption: str, gap: int) -> Table:
    return Table(
        title=title,
        title_justify="left",
        caption=caption,
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        # The box brings one.
        padding=(0, gap - 1, 0, 0),
    )


def _throughput_cells(result: Throughput, measurement: Measurement) -> list[str]:
    cores = measurement.cores
    to_raw = result.ratio_to_raw(measurement)
    return [
        number(measurement.sampled_per_s, 0, 7),
        number(measurement.trained_per_s, 0, 7),
        number(result.ratio_to_stock(measurement), 1, 5),
        NOTHING if to_raw is None else f"{to_raw:.0%}",
        number(cores["driver"], 2, 6),
        number(cores["runners"], 2, 6),
        number(cores["learner"], 2, 7),
        number(measurement.peak_memory / 1e9, 2, 4),
        number(measurement.policy_lag, 2, 4),
    ]
