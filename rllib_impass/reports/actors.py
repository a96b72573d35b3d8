"""What more actors bring: throughput against their number."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rllib_impass.reports.labels import label_without_actors
from rllib_impass.reports.number_format import figure, tick
from rllib_impass.reports.panels import Panel
from rllib_impass.reports.scores import Group
from rllib_impass.reports.style import MUTED

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def throughput_panels(
    groups: Sequence[Group], colours: Mapping[str, str]
) -> list[Panel]:
    """Env steps per second against actors, for all that differs in nothing else."""
    by_actors: dict[str, dict[int, Group]] = {}
    for group in groups:
        run = group.runs[0]
        if run.num_env_runners is not None and len(group.values("speed")):
            title = f"{group.env}, {label_without_actors(run)}"
            by_actors.setdefault(title, {})[run.num_env_runners] = group
    return [
        _panel(title, dict(sorted(points.items())), colours)
        for title, points in by_actors.items()
        if len(points) > 1
    ]


def _panel(
    title: str, points: Mapping[int, Group], colours: Mapping[str, str]
) -> Panel:
    speeds = {actors: group.values("speed").mean() for actors, group in points.items()}
    texts = _texts(speeds)

    def draw(axes: "Axes") -> None:
        actors = list(speeds)
        top = 1.3 * max(group.values("speed").max() for group in points.values())
        axes.plot(range(len(actors)), list(speeds.values()), color=MUTED, linewidth=1.2)
        for place, (number, group) in enumerate(points.items()):
            colour = colours[group.label]
            for speed in group.values("speed"):
                axes.plot(place, speed, "o", color=colour, alpha=0.4, markersize=4)
            axes.plot(place, speeds[number], "o", color=colour, markersize=7)
            axes.annotate(
                texts[number],
                (place, speeds[number]),
                xytext=(0, 7),
                textcoords="offset points",
                ha="center",
                fontsize=7.5,
            )
        axes.set_xticks(range(len(actors)), [str(number) for number in actors])
        axes.set_xlim(-0.4, len(actors) - 0.6)
        axes.set_ylim(0, top)
        axes.set_xlabel("actors")
        axes.set_ylabel("env steps per second")
        axes.yaxis.set_major_formatter(tick)

    says = "; ".join(f"{number}: {' '.join(t.split())}" for number, t in texts.items())
    return Panel(title, f"{title}: env steps per second by actors. {says}.", draw)


def _texts(speeds: Mapping[int, float]) -> dict[int, str]:
    """Each speed, and what it gains on the one before."""
    texts, before = {}, None
    for actors, speed in speeds.items():
        gain = "" if before is None else f"\n{speed / before - 1:+.0%}"
        texts[actors] = f"{figure(speed)}{gain}"
        before = speed
    return texts
