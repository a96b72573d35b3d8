"""The `rllib` command: parse, call, print."""

from rllib_impass.cli.app import main

__all__ = ["main"]
