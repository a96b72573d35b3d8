"""Numbers as people write them."""

import pytest

from rllib_impass.reports.number_format import compact, tick


@pytest.mark.parametrize(
    ("value", "short", "at_an_axis"),
    [
        (156_500.0, "156k", "156.5k"),
        (-200_000.0, "-200k", "-200k"),
        (1_500_000.0, "1.5M", "1.5M"),
        (3_150.0, "3,150", "3,150"),
        (0.25, "0.25", "0.25"),
        (-0.0, "0", "0"),
    ],
)
def test_neighbouring_ticks_are_told_apart(value, short, at_an_axis):
    assert compact(value) == short
    assert tick(value, 0) == at_an_axis
