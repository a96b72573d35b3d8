"""A report as one HTML page that needs no network, no script and no other file."""

import html
from collections.abc import Sequence

from rllib_impass.reports.page_style import STYLE
from rllib_impass.reports.panels import Plot, panel_svg
from rllib_impass.reports.sections import Report, Section
from rllib_impass.reports.style import colour_rules
from rllib_impass.reports.tables import Table

RULES = (
    "Deterministic evaluation is what counts: its episodes have seeds of their own and "
    "are not trained on. Training return is shown apart.",
    "Bands and intervals are 95 % percentile bootstrap intervals over seeds, drawn "
    "within each environment, with a fixed seed of their own.",
    "IQM is the mean without the lowest and the highest quarter of the runs, in whole "
    "runs: of up to three it is the mean.",
    "Curves are interpolated between a run's own points, never beyond them. They begin "
    "where all runs of a label have begun.",
    "Where a run was tried again or resumed from a checkpoint, what it wrote last "
    "counts, so that no step is counted twice.",
    "Crashed and unfinished runs are never left out: they count with the evaluations "
    "that they had.",
)


def to_html(report: Report) -> str:
    """The page."""
    sections = "\n".join(_section(section) for section in report.sections)
    rules = "".join(f"<li>{html.escape(rule)}</li>" for rule in RULES)
    facts = " · ".join(map(html.escape, report.facts))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="rllib report">
<meta name="color-scheme" content="light dark">
<title>{html.escape(report.title)}</title>
<style>
:root {{ {colour_rules(is_dark=False)} }}
@media (prefers-color-scheme: dark) {{ :root {{ {colour_rules(is_dark=True)} }} }}
{STYLE}
</style>
</head>
<body>
<main>
<header>
<h1>{html.escape(report.title)}</h1>
<p class="facts">{facts}</p>
{_notes(report)}
</header>
{sections}
<section id="rules">
<h2>How this was computed</h2>
<ul>{rules}</ul>
<p>Beside this page: <code>results.csv</code> (every result of every run),
<code>scores.csv</code> (a row for each run), <code>report.md</code>, and
<code>figures/</code> as PNG and SVG.</p>
</section>
</main>
</body>
</html>
"""


def _notes(report: Report) -> str:
    parts = [
        f'<p class="recommendation"><strong>Recommendation.</strong> '
        f"{html.escape(text)}</p>"
        for text in report.recommendations
    ]
    if report.notes:
        items = "".join(f"<li>{html.escape(note)}</li>" for note in report.notes)
        parts.append(
            '<aside class="notes" aria-label="Before you read on">'
            f"<p><strong>Before you read on</strong></p><ul>{items}</ul></aside>"
        )
    return "\n".join(parts)


def _section(section: Section) -> str:
    name = section.title.lower().replace(" ", "-").replace(",", "")
    text = f"<p>{html.escape(section.text)}</p>" if section.text else ""
    plots = "\n".join(_plot(plot, section.title) for plot in section.plots)
    plots = f'<div class="plots">{plots}</div>' if plots else ""
    tables = f'<div class="tables">{_tables(section)}</div>' if section.tables else ""
    body = f"{text}\n{plots}\n{tables}"
    heading = f'<h2 id="{name}">{html.escape(section.title)}</h2>'
    if section.is_folded:
        summary = f"<summary>{heading}</summary>"
        body, heading = f"<details>{summary}{body}</details>", ""
    return f'<section aria-labelledby="{name}">{heading}\n{body}\n</section>'


def _plot(plot: Plot, above: str) -> str:
    heading = "" if plot.title == above else f"<h3>{html.escape(plot.title)}</h3>"
    panels = "".join(
        f'<div class="panel">{panel_svg(panel, f"{plot.name}-{number}")}</div>'
        for number, panel in enumerate(plot.panels)
    )
    kind = "" if len(plot.panels) == 1 else ' class="wide"'
    return (
        f'<figure{kind}>{heading}<div class="panels">{panels}</div>'
        f"<figcaption>{html.escape(plot.caption)}</figcaption></figure>"
    )


def _tables(section: Section) -> str:
    return "\n".join(
        _table(table, has_caption=table.title != section.title)
        for table in section.tables
    )


def _table(table: Table, *, has_caption: bool) -> str:
    title = html.escape(table.title)
    caption = f"<caption>{title}</caption>" if has_caption else ""
    header = "".join(
        f'<th scope="col"{_kind(table, i)}>{html.escape(name)}</th>'
        for i, name in enumerate(table.columns)
    )
    rows = "".join(f"<tr>{_cells(table, row)}</tr>" for row in table.rows)
    # It can be scrolled by itself, with keys too, where it is wider than the page.
    return (
        f'<div class="table" role="region" tabindex="0" aria-label="{title}">'
        f"<table>{caption}<thead><tr>{header}</tr></thead><tbody>{rows}</tbody></table>"
        "</div>"
    )


def _cells(table: Table, row: Sequence[str]) -> str:
    return "".join(
        f'<th scope="row">{html.escape(cell)}</th>'
        if number == 0
        else f"<td{_kind(table, number)}>{html.escape(cell)}</td>"
        for number, cell in enumerate(row)
    )


def _kind(table: Table, number: int) -> str:
    return "" if number < table.num_names else ' class="number"'
