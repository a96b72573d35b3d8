"""Benchmarks as tables of 80 columns."""

from rich import box
from rich.table import Table

from rllib_impass.cli.progress_columns import NOTHING, number
from rllib_impass.experiments.benchmark.measurement import Measurement
from rllib_impass.experiments.benchmark.replay import Replay
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
REPLAY_COLUMNS = (
    "sampled\n/s",
    "x\nSAC",
    "updates\n/s",
    "updates\n/step",
    "learner\nbusy",
    "CPU\ndriver",
    "CPU\nrunner",
    "CPU\nlearner",
    "peak\nGB",
    "lag\n",
)
REPLAY_CAPTION = (
    "Env steps per second; x SAC in those of RLlib's SAC, which learns inside its "
    "driver; busy: not waiting for data; CPU in cores; lag in weight versions."
)
SCALING_COLUMNS = ("trained/s", "to base", "runners", "learner")
SCALING_CAPTION = "runners, learner: CPU microseconds per env step."


def comparison_table(result: Throughput | Replay, cores: int) -> Table:
    """A row for each contender."""
    if isinstance(result, Replay):
        columns, caption = REPLAY_COLUMNS, REPLAY_CAPTION
        cells = [_replay_cells(result, m) for m in result.measurements]
    else:
        columns, caption = THROUGHPUT_COLUMNS, THROUGHPUT_CAPTION
        cells = [_throughput_cells(result, m) for m in result.measurements]
    # A gap of one: with the longest name, that is 80 columns.
    table = _table(f"{result.env} on {cores} cores", caption, gap=1)
    table.add_column("\n")
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    for measurement, row in zip(result.measurements, cells, strict=True):
        table.add_row(measurement.name, *row)
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
    return [
        number(measurement.sampled_per_s, 0, 7),
        number(measurement.trained_per_s, 0, 7),
        number(result.ratio_to_stock(measurement), 1, 5),
        _percent(result.ratio_to_raw(measurement)),
        *_cost_cells(measurement),
    ]


def _replay_cells(result: Replay, measurement: Measurement) -> list[str]:
    return [
        number(measurement.sampled_per_s, 0, 7),
        number(result.ratio_to_stock(measurement), 1, 5),
        number(measurement.updates_per_s, 1, 7),
        number(measurement.updates_per_env_step, 3, 7),
        _percent(measurement.learner_busy),
        *_cost_cells(measurement),
    ]


def _cost_cells(measurement: Measurement) -> list[str]:
    cores = measurement.cores
    return [
        number(cores["driver"], 2, 6),
        number(cores["runners"], 2, 6),
        number(cores["learner"], 2, 7),
        number(measurement.peak_memory / 1e9, 2, 4),
        number(measurement.policy_lag, 2, 4),
    ]


def _percent(share: float | None) -> str:
    return NOTHING if share is None else f"{share:.0%}"
