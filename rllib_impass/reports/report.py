"""Writes a report: a page, figures, tables."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rllib_impass.reports.errors import ReportError
from rllib_impass.reports.html import RULES, to_html
from rllib_impass.reports.panels import save_plot
from rllib_impass.reports.results import read_runs
from rllib_impass.reports.scores import THRESHOLDS, score_rows
from rllib_impass.reports.sections import Report, make_report
from rllib_impass.reports.style import FORMATS
from rllib_impass.reports.tables import to_markdown
from rllib_impass.reports.tidy_csv import tidy_rows, write_csv

PAGE = "index.html"
# What tells a report from a folder with anything else in it.
MARK = ".rllib_report"

OnProgress = Callable[[str], None]


def write_report(
    places: Sequence[Path],
    out: Path,
    thresholds: Mapping[str, float] | None = None,
    on_progress: OnProgress = lambda text: None,
) -> Report:
    """Reads runs and writes what they came to.

    Args:
        places: trials, experiments, folders of experiments, or the `results.csv` of
            other reports.
        out: where to write; missing, empty, or an older report.
        thresholds: by environment, the return to be reached; wins over the defaults.
        on_progress: told what is being done.

    Raises:
        ReportError: if a place holds no run, or if `out` holds something else.
    """
    refuse_foreign(out)
    results = read_runs(
        places, lambda done, all_: on_progress(f"reading run {done + 1} of {all_}")
    )
    report = make_report(results, THRESHOLDS | dict(thresholds or {}))
    figures = _prepare(out)
    for number, plot in enumerate(report.plots, start=1):
        on_progress(f"drawing figure {number} of {len(report.plots)}")
        save_plot(plot, figures)
    on_progress("writing the page")
    write_csv(tidy_rows(results.runs), out / "results.csv")
    write_csv(score_rows(report.scores), out / "scores.csv")
    (out / "report.md").write_text(to_page_markdown(report))
    (out / PAGE).write_text(to_html(report))
    return report


def refuse_foreign(out: Path) -> None:
    """Raises ReportError if a folder holds what is not an older report."""
    if not out.exists():
        return
    if not out.is_dir():
        raise ReportError(f"--out {out} is a file; give a folder")
    if any(out.iterdir()) and not (out / MARK).exists():
        raise ReportError(
            f"--out {out} holds something else than a report; give a new folder"
        )


def to_page_markdown(report: Report) -> str:
    """The report without its figures' drawings, which it links to."""
    parts = [f"# {report.title}", f"{', '.join(report.facts)}."]
    parts += [f"**Recommendation.** {text}" for text in report.recommendations]
    parts += ["\n".join(f"- {note}" for note in report.notes)] if report.notes else []
    for section in report.sections:
        parts += [f"## {section.title}", *([section.text] if section.text else [])]
        for plot in section.plots:
            image = f"![{plot.title}](figures/{plot.name}.png)"
            parts += [f"### {plot.title}", image, plot.caption]
        for table in section.tables:
            is_repeated = table.title == section.title
            parts += [] if is_repeated else [f"**{table.title}**"]
            parts.append(to_markdown(table))
    parts += ["## How this was computed", "\n".join(f"- {rule}" for rule in RULES)]
    return "\n\n".join(parts) + "\n"


def _prepare(out: Path) -> Path:
    """Makes the folders, without the figures of an older report."""
    figures = out / "figures"
    try:
        figures.mkdir(parents=True, exist_ok=True)
        (out / MARK).touch()
    except OSError as error:
        raise ReportError(f"--out {out}: {error.strerror}; give a folder") from None
    for ending in FORMATS:
        for file in figures.glob(f"*{ending}"):
            file.unlink()
    return figures
