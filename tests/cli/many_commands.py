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
    return {
        "args": words,
        "returncode": code,
        "stdout": out.getvalue(),
        "stderr": err.getvalue(),
    }


results = [run(words) for words in json.load(sys.stdin)]
json.dump({"results": results, "has_started_ray": ray.is_initialized()}, sys.stdout)
