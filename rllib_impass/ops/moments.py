"""Running mean and variance, merged batch by batch (Chan et al., 1979)."""

from typing import NamedTuple

import torch
from torch import Tensor


class Moments(NamedTuple):
    """Count, mean and (biased) variance of the samples seen so far."""

    count: Tensor
    mean: Tensor
    var: Tensor


def batch_moments(samples: Tensor, valid: Tensor) -> Moments:
    """Moments of the rows of ``samples`` ``[N, d]`` that ``valid`` ``[N]`` selects.

    Double precision: a sum of a million single-precision squares has few digits left.
    """
    if samples.dim() != 2 or valid.shape != samples.shape[:1]:
        raise ValueError(
            f"samples must be [N, d] and valid [N], got {tuple(samples.shape)} and "
            f"{tuple(valid.shape)}"
        )
    rows = samples[valid].double()
    count = torch.tensor(float(len(rows)), dtype=torch.double, device=samples.device)
    if len(rows) == 0:
        zeros = samples.new_zeros(samples.shape[1], dtype=torch.double)
        return Moments(count, zeros, zeros)
    var, mean = torch.var_mean(rows, dim=0, correction=0)
    return Moments(count, mean, var)


def merge_moments(a: Moments, b: Moments) -> Moments:
    """Moments of the union of two samples."""
    count = a.count + b.count
    weight_b = b.count / count.clamp(min=1.0)
    delta = b.mean - a.mean
    mean = a.mean + delta * weight_b
    var = (
        a.var * (1.0 - weight_b)
        + b.var * weight_b
        + delta.square() * weight_b * (1.0 - weight_b)
    )
    return Moments(count, mean, var)
