"""What docs/metrics.md promises."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "metrics.md"


def documented_metrics(algorithm):
    """Paths of the metrics that an algorithm is said to report.

    A section about learning names its algorithms in its title; all others hold for all.
    """
    found = []
    for section in re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]:
        title, _, text = section.partition("\n")
        if not title.startswith("Learning") or algorithm in title:
            found += re.findall(r"^\| `([^`]+)` \|", text, flags=re.MULTILINE)
    return found


def assert_reported(paths, result):
    """Every path leads to a finite number in a training result."""
    for path in paths:
        node = result
        for key in path.split("/"):
            assert key in node, f"{path} is documented but not reported"
            node = node[key]
        assert abs(float(node)) < float("inf"), path
