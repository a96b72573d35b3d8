"""IMPASS for Ray RLlib: V-trace actor-learners for continuous control."""

from importlib.metadata import version

from ray import tune

from rllib_impass.algorithms.impass import (
    IMPASS,
    IMPALANoSS,
    IMPALANoSSConfig,
    IMPASSConfig,
)
from rllib_impass.env.registration import register_envs
from rllib_impass.utils.logs import configure_logging

__version__ = version("rllib_impass")

__all__ = ["IMPASS", "IMPALANoSS", "IMPALANoSSConfig", "IMPASSConfig"]

configure_logging()

# One name from class to plot: the class name is the name that Tune knows.
for _algorithm in (IMPASS, IMPALANoSS):
    tune.register_trainable(_algorithm.__name__, _algorithm)

register_envs()
