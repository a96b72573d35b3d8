"""V-trace targets and advantages (IMPASS paper, equations 1, 3, 4 and 12).

Every tensor is time-major ``[T, B]``. The paper's symbols: ``rho`` and ``c`` are the
truncated importance weights, ``V`` the value estimate, ``v`` the V-trace target and
``delta`` the temporal-difference error.

The upper limits ``s+n+1`` in the paper's equations 1 and 3 are read as ``s+n-1``, and
``rho_s``, which equation 12 drops, is part of the policy-gradient advantage: both as in
Espeholt et al., "IMPALA", https://arxiv.org/abs/1802.01561.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class VTraceReturns(NamedTuple):
    """What :func:`vtrace` returns; both ``[T, B]``, without gradients."""

    vs: Tensor
    pg_advantages: Tensor


@torch.no_grad()
def vtrace(
    log_rhos: Tensor,
    discounts: Tensor,
    rewards: Tensor,
    values: Tensor,
    bootstrap_value: Tensor,
    *,
    clip_rho: float = 1.0,
    clip_c: float = 1.0,
    clip_pg_rho: float = 1.0,
    lambda_: float = 1.0,
) -> VTraceReturns:
    """Computes V-trace targets by the recursion of equation 4.

    On a step whose state starts no transition (an auto-reset step) pass
    ``log_rhos = -inf`` and ``discounts = 0``: its target is then its own value, and
    nothing flows over it from one episode into another.

    Args:
        log_rhos: ``log(pi(a|x) / mu(a|x))``, ``[T, B]``.
        discounts: ``gamma`` where the episode goes on, 0 after a terminal step.
        rewards: ``r_t``, ``[T, B]``.
        values: ``V(x_t)``, ``[T, B]``.
        bootstrap_value: ``V(x_T)``, ``[B]``.
        clip_rho: rho-bar; it decides which value function the targets converge to.
        clip_c: c-bar; it decides how fast they do.
        clip_pg_rho: rho-bar of the policy-gradient advantage.
        lambda_: scales ``c``; on-policy the advantage is then GAE(lambda).

    Returns:
        Targets ``v_s`` and advantages
        ``min(clip_pg_rho, rho_s) * (r_s + discount * q_{s+1} - V(x_s))``.
    """
    inputs = (discounts, rewards, values, bootstrap_value)
    vs = vtrace_targets(
        log_rhos, *inputs, clip_rho=clip_rho, clip_c=clip_c, lambda_=lambda_
    )
    advantages = lambda_advantages(vs, *inputs, lambda_=lambda_)
    return VTraceReturns(vs, log_rhos.exp().clamp(max=clip_pg_rho) * advantages)


@torch.no_grad()
def vtrace_targets(
    log_rhos: Tensor,
    discounts: Tensor,
    rewards: Tensor,
    values: Tensor,
    bootstrap_value: Tensor,
    *,
    clip_rho: float = 1.0,
    clip_c: float = 1.0,
    lambda_: float = 1.0,
) -> Tensor:
    """``v_s`` of :func:`vtrace` alone."""
    _check_shapes(log_rhos, discounts, rewards, values, bootstrap_value)
    ratios = torch.exp(log_rhos)
    rhos = ratios.clamp(max=clip_rho)
    cs = lambda_ * ratios.clamp(max=clip_c)

    next_values = torch.cat([values[1:], bootstrap_value.unsqueeze(0)])
    deltas = rhos * (rewards + discounts * next_values - values)
    return values + _discounted_suffix_sums(deltas, discounts * cs)


@torch.no_grad()
def lambda_advantages(
    vs: Tensor,
    discounts: Tensor,
    rewards: Tensor,
    values: Tensor,
    bootstrap_value: Tensor,
    *,
    lambda_: float = 1.0,
) -> Tensor:
    """The bracket of equation 12, before any importance weight.

    ``r_s + discount * (lambda * v_{s+1} + (1 - lambda) * V(x_{s+1})) - V(x_s)``: the
    mixture makes it GAE(lambda) on-policy, where ``v_{s+1}`` alone would not.
    """
    next_vs = torch.cat([vs[1:], bootstrap_value.unsqueeze(0)])
    next_values = torch.cat([values[1:], bootstrap_value.unsqueeze(0)])
    next_targets = lambda_ * next_vs + (1.0 - lambda_) * next_values
    return rewards + discounts * next_targets - values


def _discounted_suffix_sums(deltas: Tensor, decays: Tensor) -> Tensor:
    """``x_t = delta_t + decay_t * x_{t+1}``, for all steps at once.

    By doubling: after the pass with stride s, each sum reaches 2 s steps ahead. That is
    log2(T) passes over the batch instead of T small operations.
    """
    sums, reach, stride = deltas, decays, 1
    while stride < deltas.shape[0]:
        ahead = torch.addcmul(sums[:-stride], reach[:-stride], sums[stride:])
        sums = torch.cat([ahead, sums[-stride:]])
        further = reach[:-stride] * reach[stride:]
        reach = torch.cat([further, torch.zeros_like(reach[-stride:])])
        stride *= 2
    return sums


def _check_shapes(
    log_rhos: Tensor,
    discounts: Tensor,
    rewards: Tensor,
    values: Tensor,
    bootstrap_value: Tensor,
) -> None:
    if log_rhos.dim() != 2:
        raise ValueError(f"log_rhos must be [T, B], got shape {tuple(log_rhos.shape)}")
    named = {"discounts": discounts, "rewards": rewards, "values": values}
    for name, tensor in named.items():
        if tensor.shape != log_rhos.shape:
            raise ValueError(
                f"{name} must have log_rhos' shape {tuple(log_rhos.shape)}, "
                f"got {tuple(tensor.shape)}"
            )
    if bootstrap_value.shape != log_rhos.shape[1:]:
        raise ValueError(
            f"bootstrap_value must be [B] = {tuple(log_rhos.shape[1:])}, "
            f"got {tuple(bootstrap_value.shape)}"
        )
