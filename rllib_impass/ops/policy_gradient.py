"""The policy's objective (equation 12), with or without a guard against lag."""

import torch
from torch import Tensor

# exp() of more overflows, and an infinite ratio times a masked zero is a NaN.
_MAX_LOG_RATIO = 20.0


def policy_objective(
    log_pi: Tensor, log_mu: Tensor, advantages: Tensor, ratio_clip: float | None
) -> Tensor:
    """What each step contributes to the objective that the policy maximises.

    Args:
        log_pi: of the actions, under the policy that is trained; carries the gradient.
        log_mu: of the actions, under the policy that acted.
        advantages: weighted by rho if there is no clip, unweighted if there is one.
        ratio_clip: None for ``log pi * A``, the paper's; otherwise PPO's
            ``min(r * A, clip(r, 1 - ratio_clip, 1 + ratio_clip) * A)`` with
            ``r = pi / mu`` (Schulman et al., https://arxiv.org/abs/1707.06347).

    Returns:
        The objective of each step, of the inputs' shape.
    """
    if not log_pi.shape == log_mu.shape == advantages.shape:
        raise ValueError(
            "shapes must be equal, got "
            f"{tuple(log_pi.shape)}, {tuple(log_mu.shape)}, {tuple(advantages.shape)}"
        )
    if ratio_clip is None:
        return log_pi * advantages
    ratio = (log_pi - log_mu).clamp(-_MAX_LOG_RATIO, _MAX_LOG_RATIO).exp()
    clipped = ratio.clamp(1.0 - ratio_clip, 1.0 + ratio_clip)
    return torch.minimum(ratio * advantages, clipped * advantages)


def masked_mean(values: Tensor, valid: Tensor) -> Tensor:
    """Mean over the valid entries; zero, with zero gradient, if there is none."""
    return (values * valid).sum() / valid.sum().clamp(min=1.0)
