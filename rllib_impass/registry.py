"""Every algorithm and environment of the package, made known to Tune."""

from ray import tune

from rllib_impass.algorithms.impass import (
    IMPASS,
    IMPALANoSS,
    IMPALANoSSConfig,
    IMPASSConfig,
)
from rllib_impass.env.registration import register_envs
from rllib_impass.utils.logs import configure_logging

__all__ = ["IMPASS", "IMPALANoSS", "IMPALANoSSConfig", "IMPASSConfig"]

configure_logging()

# One name from class to plot: the class name is the name that Tune knows.
for _algorithm in (IMPASS, IMPALANoSS):
    tune.register_trainable(_algorithm.__name__, _algorithm)

register_envs()
