"""What others print that nobody needs."""

import logging
import warnings


def silence() -> None:
    """For everything but ``--verbose``."""
    # It doubts observations in float64, which every MuJoCo env returns.
    warnings.filterwarnings("ignore", module="gymnasium")
    # It announces the new API stack, the only one that we know, over and over.
    logging.getLogger("ray.rllib.algorithms.sac").setLevel(logging.ERROR)
