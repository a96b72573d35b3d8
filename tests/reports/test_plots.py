"""Figures are files that can be looked at."""

import pytest

from rllib_impass.reports.plots import plot_scaling


def row(axis, value, is_base):
    return {
        "axis": axis,
        "label": f"the {axis}",
        "value": value,
        "is_base": is_base,
        "trained_per_s": 12_345.0,
        "runners_us_per_step": 100.0,
        "learner_us_per_step": None,
    }


ROWS = [
    row("stack", 1, False),
    row("stack", 4, True),
    row("env", "Hopper-v5", True),
    row("env", "Ant-v5", False),
]


@pytest.mark.parametrize("rows", [ROWS, ROWS[:2], ROWS[2:]])
def test_every_point_is_in_the_figure(tmp_path, rows):
    file = tmp_path / "scaling.svg"
    plot_scaling(rows, file, title="a title")
    text = file.read_text()
    for words in ("a title", f"the {rows[0]['axis']}", "12,345", "learner"):
        assert words in text
    before = file.read_bytes()
    plot_scaling(rows, file, title="a title")
    assert file.read_bytes() == before


def test_a_png_is_one(tmp_path):
    plot_scaling(ROWS, tmp_path / "scaling.png")
    assert (tmp_path / "scaling.png").read_bytes().startswith(b"\x89PNG")
