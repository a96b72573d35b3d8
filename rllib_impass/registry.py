"""Every algorithm and environment of the package, made known to Tune."""

from ray import tune

from rllib_impass.algorithms.d4pg import D4PG, ApexDPG, ApexDPGConfig, D4PGConfig
from rllib_impass.algorithms.impass import (
    IMPASS,
    IMPALANoSS,
    IMPALANoSSConfig,
    IMPASSConfig,
)
from rllib_impass.env.registration import register_envs
from rllib_impass.utils.logs import configure_logging

__all__ = [
    "D4PG",
    "IMPASS",
    "ApexDPG",
    "ApexDPGConfig",
    "D4PGConfig",
    "IMPALANoSS",
    "IMPALANoSSConfig",
    "IMPASSConfig",
]

configure_logging()


def register_all() -> None:
    """Again and again, if need be: Tune forgets when a process leaves Ray."""
    # One name from class to plot: the class name is the name that Tune knows.
    for algorithm in (IMPASS, IMPALANoSS, D4PG, ApexDPG):
        tune.register_trainable(algorithm.__name__, algorithm)
    register_envs()
