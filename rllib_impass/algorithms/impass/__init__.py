"""IMPASS and its ablation IMPALA-noSS."""

from rllib_impass.algorithms.impass.impass import (
    IMPASS,
    IMPALANoSS,
    IMPALANoSSConfig,
    IMPASSConfig,
)

__all__ = ["IMPASS", "IMPALANoSS", "IMPALANoSSConfig", "IMPASSConfig"]
