"""Python code in a process of its own."""

import os
import subprocess
import sys
import textwrap


def run_python(script, timeout, **environment):
    """Runs a script with further environment variables; what became of it."""
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env={**os.environ, **environment},
    )
