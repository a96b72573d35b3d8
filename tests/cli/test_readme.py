"""The README's Python examples run as they are printed, only shorter."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).parents[2] / "README.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
SHORTER = {"range(20)": "range(1)", "500_000": "1_000"}


def test_there_are_two_examples():
    assert len(EXAMPLES) == 2
    assert len([line for line in EXAMPLES[0].splitlines() if line]) <= 12


@pytest.mark.parametrize("example", EXAMPLES, ids=["algorithm", "tuner"])
def test_an_example_runs(example, tmp_path):
    for long, short in SHORTER.items():
        example = example.replace(long, short)
    done = subprocess.run(
        [sys.executable, "-c", example],
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip()
