"""Colours that can be told from the page, and from each other."""

import re

import pytest

from rllib_impass.reports.style import PAPER, colour_rules, colours, variable_of

LABELS = list("abcdef")


def luminance(colour):
    """Relative luminance, as WCAG defines it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [
        p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts
    ]
    return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("is_dark", [False, True])
@pytest.mark.parametrize("is_ordered", [False, True])
def test_every_line_is_seen_on_every_page(is_dark, is_ordered):
    rules = dict(re.findall(r"(--[\w-]+): (#\w+);", colour_rules(is_dark=is_dark)))

    def on_page(colour):
        return rules[variable_of(colour)[4:-1]]

    found = [on_page(c) for c in colours(LABELS, is_ordered=is_ordered).values()]
    assert len(set(found)) == len(LABELS)
    assert min(contrast(colour, on_page(PAPER)) for colour in found) >= 3


def test_few_ordered_labels_are_far_apart():
    two = colours(["few", "many"], is_ordered=True)
    all_of_them = list(colours(LABELS, is_ordered=True).values())
    assert list(two.values()) == [all_of_them[0], all_of_them[-1]]
