"""What a report says, in order: for the page and for Markdown alike."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from rllib_impass.reports import actors, dots, tables
from rllib_impass.reports import scores as scoring
from rllib_impass.reports.curves import curve_panels
from rllib_impass.reports.notes import facts, notes, title
from rllib_impass.reports.panels import Panel, Plot
from rllib_impass.reports.run import Results
from rllib_impass.reports.scores import Group, RunScore
from rllib_impass.reports.style import colours
from rllib_impass.reports.tables import Table

_CURVES = (
    "Mean over seeds with its 95 % bootstrap band. Dashed: fewer seeds remain, because "
    "some crashed (X) or ended earlier."
)


@dataclasses.dataclass(frozen=True)
class Section:
    """A part of a report.

    Attributes:
        title: its heading.
        text: how to read it.
        plots: its figures.
        tables: its tables.
        is_folded: whether the page shows it only when asked.
    """

    title: str
    text: str
    plots: Sequence[Plot] = ()
    tables: Sequence[Table] = ()
    is_folded: bool = False


@dataclasses.dataclass(frozen=True)
class Report:
    """All that a report says.

    Attributes:
        title: what was compared, on what.
        facts: what it is made of, in a few words each.
        notes: what a reader must know before believing it.
        recommendations: what actor studies recommend.
        sections: its parts.
        groups: the runs of each env and label.
        scores: what each run came to.
    """

    title: str
    facts: Sequence[str]
    notes: Sequence[str]
    recommendations: Sequence[str]
    sections: Sequence[Section]
    groups: Sequence[Group]
    scores: Sequence[RunScore]

    @property
    def plots(self) -> list[Plot]:
        """All figures."""
        return [plot for section in self.sections for plot in section.plots]


def make_report(results: Results, thresholds: Mapping[str, float]) -> Report:
    """Says what runs came to.

    Args:
        results: the runs.
        thresholds: for some environments, the return to be reached.
    """
    scores = [scoring.score_run(run, thresholds) for run in results.runs]
    groups = scoring.group_scores(scores)
    labels = scoring.label_order(results.runs)
    is_study = scoring.is_actor_study(results.runs)
    is_ordered = is_study and len({run.algorithm for run in results.runs}) == 1
    palette = colours(labels, is_ordered=is_ordered)
    sections = [
        _final_scores(groups, palette),
        _learning(groups, palette),
        *(_actor_study(groups, palette) if is_study else ()),
        *_comparison(groups, palette),
        *_thresholds(groups),
        _conduct(groups, palette),
        *_training(groups, palette),
        Section("Runs", "", tables=[tables.run_table(scores)], is_folded=True),
    ]
    return Report(
        title(groups),
        facts(results),
        notes(results, groups),
        results.recommendations,
        sections,
        groups,
        scores,
    )


def _final_scores(groups: Sequence[Group], palette: Mapping[str, str]) -> Section:
    caption = (
        "Large dot and bar: interquartile mean (IQM) and its 95 % stratified bootstrap "
        "interval. Small dots: the seeds; X: crashed."
    )
    panels = dots.score_panels(groups, palette)
    return Section(
        "Final scores",
        "The score of a run is the mean return of the last 10 % of its deterministic "
        "evaluations, at least one; never the best of them.",
        _plots("final_scores", "Final scores", caption, panels),
        tables.score_tables(groups),
    )


def _learning(groups: Sequence[Group], palette: Mapping[str, str]) -> Section:
    plots = []
    for x, name in (("env_steps", "env steps"), ("time_s", "wall time")):
        panels = curve_panels(groups, palette, x, "evaluation_return")
        title = f"Return against {name}"
        plots += _plots(f"return_by_{x}", title, _CURVES, panels)
    return Section("Learning curves", "Return of deterministic evaluations.", plots)


def _actor_study(
    groups: Sequence[Group], palette: Mapping[str, str]
) -> Iterator[Section]:
    panels = actors.throughput_panels(groups, palette)
    if panels:
        caption = "Mean and seeds; the percentage is the gain on fewer actors."
        title = "Throughput against actors"
        plots = _plots("throughput_by_actors", title, caption, panels)
        yield Section("Actors", "What more actors bring on this machine.", plots)


def _comparison(
    groups: Sequence[Group], palette: Mapping[str, str]
) -> Iterator[Section]:
    improvements = scoring.improvements(groups)
    if not improvements:
        return
    plots = _plots(
        "probability_of_improvement",
        "Probability of improvement",
        "P(X > Y): how likely a run of the one scores higher than a run of the other, "
        "ties counting half, with its 95 % interval. 0.5 is no difference.",
        dots.improvement_panels(improvements, palette),
    )
    shown = [tables.improvement_table(groups)]
    if aggregates := scoring.aggregates(groups):
        panel = dots.aggregate_panel(aggregates, palette)
        caption = "IQM over the runs of all environments, each normalised as below."
        plots += _plots("aggregate", "Normalised scores", caption, [panel])
        shown += [tables.aggregate_table(groups), tables.normalisation_table(groups)]
    text = (
        "A bar from 1.00 to 1.00 says that every run of the one beat every run of the "
        "other, which a few seeds may well do by chance."
    )
    yield Section("One against the other", text, plots, shown)


def _thresholds(groups: Sequence[Group]) -> Iterator[Section]:
    found = tables.threshold_tables(groups)
    if found:
        text = (
            "Up to the first evaluation at or above a return; medians over all seeds, "
            "in which a run that never got there counts as never."
        )
        yield Section("Time to a threshold", text, tables=found)


def _conduct(groups: Sequence[Group], palette: Mapping[str, str]) -> Section:
    plots = [
        *_plots(
            "throughput",
            "Throughput",
            "Env steps per second from the first result to the last.",
            dots.speed_panels(groups, palette),
        ),
        *_plots(
            "policy_lag",
            "Policy lag",
            "How many weight versions the samples were behind the learner.",
            dots.lag_panels(groups, palette),
        ),
        *_plots(
            "action_smoothness",
            "Action smoothness, with and without stacked states",
            "Mean of |a(t) - 2 a(t-1) + a(t-2)| over the last 10 % of evaluations: "
            "lower is smoother.",
            dots.smoothness_panels(groups, palette),
        ),
    ]
    text = "Means over seeds with 95 % bootstrap intervals; small dots are seeds."
    shown = tables.conduct_tables(groups)
    return Section("Throughput, lag and smoothness", text, plots, shown)


def _training(groups: Sequence[Group], palette: Mapping[str, str]) -> Iterator[Section]:
    panels = curve_panels(groups, palette, "env_steps", "training_return")
    if panels:
        plots = _plots("training_return", "Training return", _CURVES, panels)
        text = (
            "Return of the episodes that were trained on, exploration included. It is "
            "not what scores are made of."
        )
        yield Section("Training return", text, plots, is_folded=True)


def _plots(name: str, title: str, caption: str, panels: Sequence[Panel]) -> list[Plot]:
    return [Plot(name, title, caption, panels)] if panels else []
