"""How the cost of training grows: one setting at a time, around the shipped ones."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

from rllib_impass.experiments.benchmark.measured_algorithm import (
    MeasuredAlgorithm,
    make_config,
)
from rllib_impass.experiments.benchmark.measurement import Measurement, Slice, ratio
from rllib_impass.experiments.benchmark.session import (
    OnProgress,
    Progress,
    check_seconds,
    own_ray,
    refuse_other_ray,
)
from rllib_impass.experiments.errors import UsageError
from rllib_impass.experiments.suggestions import did_you_mean

ALGORITHM = "IMPASS"
BASE_ENV = "Hopper-v5"


@dataclasses.dataclass(frozen=True)
class Axis:
    """One thing that is varied while all else stays as it is shipped.

    Attributes:
        name: how `--only` calls it.
        label: how tables and plots call it.
        values: what it is varied to.
        settings: what a value means to `make_config`.
        shipped: its value in a config.
    """

    name: str
    label: str
    values: tuple[Any, ...]
    settings: Callable[[Any], dict[str, Any]]
    shipped: Callable[[AlgorithmConfig], Any]


AXES = (
    Axis(
        name="runners",
        label="env runners",
        values=(1, 2, 4, 8),
        settings=lambda value: {"num_env_runners": value},
        shipped=lambda config: config.num_env_runners,
    ),
    Axis(
        name="envs",
        label="envs per runner",
        values=(4, 8, 16, 32, 64),
        settings=lambda value: {"num_envs_per_env_runner": value},
        shipped=lambda config: config.num_envs_per_env_runner,
    ),
    Axis(
        name="stack",
        label="stacked states",
        values=(1, 4, 8),
        settings=lambda value: {"num_stacked_states": value},
        shipped=lambda config: config.num_stacked_states,
    ),
    Axis(
        name="width",
        label="hidden width",
        values=(64, 256),
        settings=lambda value: {"model_config": {"fcnet_hiddens": [value, value]}},
        shipped=lambda config: config.model_config["fcnet_hiddens"][0],
    ),
    Axis(
        name="env",
        label="environment",
        values=(BASE_ENV, "HumanoidStandup-v5"),
        settings=lambda value: {"env": value},
        shipped=lambda config: config.env,
    ),
)


@dataclasses.dataclass(frozen=True)
class Point:
    """One value of one axis.

    Attributes:
        axis: the axis.
        value: the value.
        measurement: how fast it was.
        base: the shipped settings, measured right before it; the measurement itself
            where the value is the shipped one.
    """

    axis: Axis
    value: Any
    measurement: Measurement
    base: Measurement

    @property
    def is_base(self) -> bool:
        """Whether this is the shipped value."""
        return self.measurement is self.base

    @property
    def ratio_to_base(self) -> float | None:
        """Steps trained, in those of the shipped settings at the same time."""
        return ratio(self.measurement.trained_per_s, self.base.trained_per_s)

    def to_row(self) -> dict[str, Any]:
        """One line of a table."""
        cpu = self.measurement.cpu_us_per_step
        return {
            "axis": self.axis.name,
            "label": self.axis.label,
            "value": self.value,
            "is_base": self.is_base,
            "trained_per_s": self.measurement.trained_per_s,
            "ratio_to_base": self.ratio_to_base,
            "runners_us_per_step": cpu["runners"],
            "learner_us_per_step": cpu["learner"],
        }


@dataclasses.dataclass(frozen=True)
class Scaling:
    """How fast training is at every point, axis by axis."""

    points: tuple[Point, ...]

    def rows(self) -> list[dict[str, Any]]:
        """A tidy table."""
        return [point.to_row() for point in self.points]

    def to_dict(self) -> dict[str, Any]:
        """The table, with all that was measured, ready for JSON."""
        points = [
            point.to_row()
            | {
                "measurement": point.measurement.to_dict(),
                "base": point.base.to_dict(),
            }
            for point in self.points
        ]
        return {"env": BASE_ENV, "points": points}


@dataclasses.dataclass(frozen=True)
class ScalingPlan:
    """A benchmark that has been checked and can run.

    Attributes:
        seconds: measured at each point, and of the base beside it.
        axes: what to vary.
        base: the shipped settings.
        others: all other points, by axis and value.
    """

    seconds: float
    axes: tuple[Axis, ...]
    base: MeasuredAlgorithm
    others: dict[tuple[str, Any], MeasuredAlgorithm]

    def run(self, on_progress: OnProgress | None = None) -> Scaling:
        """Builds, measures and stops one point after the other.

        The base is built once and measured beside every point, so that a machine that
        grows slower slows both.

        Args:
            on_progress: called with what is going on and the share that is done.
        """
        pair_s = 2 * (self.seconds + self.base.warm_up_s)
        progress = Progress(pair_s * len(self.others), on_progress)
        most = max(other.num_cpus for other in self.others.values())
        slices: dict[tuple[str, Any], tuple[Slice, Slice]] = {}
        with own_ray(self.base.num_cpus + most), contextlib.ExitStack() as stack:
            progress.begin("starting the shipped settings")
            stack.callback(self.base.stop)
            self.base.start()
            for key, other in self.others.items():
                progress.begin(other.name)
                slices[key] = self._measure_pair(other, progress)
        return Scaling(tuple(self._points(slices)))

    def _measure_pair(
        self, other: MeasuredAlgorithm, progress: Progress
    ) -> tuple[Slice, Slice]:
        try:
            other.start()
            base = self.base.measure(self.seconds, progress.advance)
            return base, other.measure(self.seconds, progress.advance)
        finally:
            other.stop()

    def _points(
        self, slices: dict[tuple[str, Any], tuple[Slice, Slice]]
    ) -> Iterator[Point]:
        name, backend = self.base.name, self.base.backend
        every = Measurement(name, backend, tuple(base for base, _ in slices.values()))
        for axis in self.axes:
            for value in _values(axis, self.base.config):
                other = self.others.get((axis.name, value))
                if other is None:
                    yield Point(axis, value, every, every)
                    continue
                base, own = slices[axis.name, value]
                yield Point(
                    axis,
                    value,
                    Measurement(other.name, other.backend, (own,)),
                    Measurement(name, backend, (base,)),
                )


def plan_scaling(
    *, seconds: float = 10.0, only: Sequence[str] | None = None
) -> ScalingPlan:
    """Checks everything; starts nothing.

    Args:
        seconds: measured at each point, and of the shipped settings beside it.
        only: names of axes; none for all.

    Raises:
        UsageError: with the one thing that is wrong.
    """
    check_seconds(seconds)
    refuse_other_ray()
    axes = _choose_axes(only)
    base = MeasuredAlgorithm("shipped settings", make_config(ALGORITHM, BASE_ENV))
    others = {
        (axis.name, value): _vary(axis, value)
        for axis in axes
        for value in axis.values
        if value != axis.shipped(base.config)
    }
    return ScalingPlan(seconds, axes, base, others)


def measure_scaling(
    *,
    seconds: float = 10.0,
    only: Sequence[str] | None = None,
    on_progress: OnProgress | None = None,
) -> Scaling:
    """Measures IMPASS around its shipped settings, with a Ray of its own.

    Args:
        seconds: measured at each point, and of the shipped settings beside it.
        only: names of axes; none for all.
        on_progress: called with what is going on and the share that is done.
    """
    return plan_scaling(seconds=seconds, only=only).run(on_progress)


def _choose_axes(only: Sequence[str] | None) -> tuple[Axis, ...]:
    by_name = {axis.name: axis for axis in AXES}
    for name in only or ():
        if name not in by_name:
            hint = did_you_mean(name, by_name) or f"; there are {', '.join(by_name)}"
            raise UsageError(f"there is no axis {name!r}{hint}")
    return tuple(a for a in AXES if not only or a.name in only)


def _vary(axis: Axis, value: Any) -> MeasuredAlgorithm:
    arguments = {"env": BASE_ENV} | axis.settings(value)
    name = f"{axis.label} {value}"
    return MeasuredAlgorithm(name, make_config(ALGORITHM, **arguments))


def _values(axis: Axis, base: AlgorithmConfig) -> list[Any]:
    """The axis's values, with the shipped one, which another release may change."""
    shipped = axis.shipped(base)
    if shipped in axis.values:
        return list(axis.values)
    return sorted([*axis.values, shipped])
