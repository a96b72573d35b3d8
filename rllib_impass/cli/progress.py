"""One line per result, for people."""

import math
from typing import Any

from ray import tune
from rich.console import Console
from rich.text import Text

COLUMNS = (
    ("iter", 5),
    ("time", 7),
    ("env steps", 11),
    ("steps/s", 8),
    ("return", 10),
    ("length", 7),
    ("lag", 5),
    ("evaluation", 11),
)


class ProgressLines(tune.Callback):
    """Prints a fixed set of columns that fits into 80."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[float, float]] = {}
        self._has_header = False

    def on_trial_result(
        self,
        iteration: int,
        trials: list[Any],
        trial: Any,
        result: dict[str, Any],
        **info: Any,
    ) -> None:
        """Prints the trial's newest result."""
        # Not kept: Tune pickles its callbacks, and a console cannot be.
        console = Console()
        if not self._has_header:
            self._has_header = True
            header = "".join(name.rjust(width) for name, width in COLUMNS)
            console.print(Text(header, style="bold"))
        runners = result.get("env_runners", {})
        policy = result.get("learners", {}).get("default_policy", {})
        evaluation = result.get("evaluation", {}).get("env_runners", {})
        steps = result.get("num_env_steps_sampled_lifetime", 0)
        seconds = result["time_total_s"]
        before_s, before_steps = self._last.get(trial.trial_id, (0.0, 0))
        self._last[trial.trial_id] = (seconds, steps)
        cells = (
            f"{result['training_iteration']}",
            f"{seconds:.0f} s",
            f"{steps:,.0f}",
            f"{(steps - before_steps) / max(seconds - before_s, 1e-9):,.0f}",
            _number(runners.get("episode_return_mean")),
            _number(runners.get("episode_len_mean"), 0),
            _number(policy.get("policy_lag_mean")),
            _number(evaluation.get("episode_return_mean")),
        )
        widths = (width for _, width in COLUMNS)
        line = "".join(c.rjust(w) for c, w in zip(cells, widths, strict=True))
        console.print(Text(line))


def _number(value: float | None, digits: int = 1) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:,.{digits}f}"
