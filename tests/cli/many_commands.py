"""Runs `rllib` commands, read as JSON from stdin, one after the other."""

import contextlib
import io
import json
import sys

import ray

from rllib_impass.cli.app import app


def run(words):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            app(words)
        except SystemExit as end:
            code = end.code
    assert not ray.is_initialized(), f"{words} left Ray behind"
    return {
        "args": words,
        "returncode": code,
        "stdout": out.getvalue(),
        "stderr": err.getvalue(),
    }


json.dump([run(words) for words in json.load(sys.stdin)], sys.stdout)
