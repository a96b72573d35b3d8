"""The diagonal Gaussian policy (IMPASS paper, equations 7 and 8).

The last axis is the action; every function reduces over it where it returns one number
per state.
"""

import math

import torch
from torch import Tensor

_LOG_2PI = math.log(2.0 * math.pi)


def means_and_sigmas(dist_inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Takes RLlib's ``[..., mean | log sigma]`` apart, contiguous.

    The one place that does it: two ways of computing ``exp`` differ in the last bit.
    """
    mean, log_sigma = dist_inputs.chunk(2, dim=-1)
    return mean.contiguous(), log_sigma.contiguous().exp()


def sample(mean: Tensor, sigma: Tensor) -> Tensor:
    """``a = mu + eps * sigma`` with ``eps ~ N(0, 1)`` (paper, end of § 4.1)."""
    _check_same_shape(mean=mean, sigma=sigma)
    return mean + torch.randn_like(mean) * sigma


def log_prob(actions: Tensor, mean: Tensor, sigma: Tensor) -> Tensor:
    """``log pi(a|s)``, equation 8, summed over the action's dimensions."""
    _check_same_shape(actions=actions, mean=mean, sigma=sigma)
    z = (actions - mean) / sigma
    return -0.5 * (z.square() + _LOG_2PI).sum(-1) - sigma.log().sum(-1)


def entropy(sigma: Tensor) -> Tensor:
    """Differential entropy, the continuous form of the sum in equation 13."""
    return (sigma.log() + 0.5 * (1.0 + _LOG_2PI)).sum(-1)


def kl_divergence(
    mean_p: Tensor, sigma_p: Tensor, mean_q: Tensor, sigma_q: Tensor
) -> Tensor:
    """``KL(p || q)``; with the behaviour as p and the target as q it measures lag."""
    _check_same_shape(mean_p=mean_p, sigma_p=sigma_p, mean_q=mean_q, sigma_q=sigma_q)
    var_ratio = (sigma_p / sigma_q).square()
    mean_term = ((mean_p - mean_q) / sigma_q).square()
    return 0.5 * (var_ratio + mean_term - 1.0 - var_ratio.log()).sum(-1)


def _check_same_shape(**tensors: Tensor) -> None:
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    if len(set(shapes.values())) != 1:
        raise ValueError(f"shapes must be equal, got {shapes}")
