"""The policy's objective (equation 12), with or without a guard against lag."""

import torch
from torch import Tensor

# exp() of more overflows, and an infinite ratio times a masked zero is a NaN.
_MAX_LOG_RATIO = 20.0


def policy_objective(
    log_pi: Tensor,
    log_mu: Tensor,
    advantages: Tensor,
    *,
    ratio_clip: float | None,
    clip_pg_rho: float = 1.0,
) -> Tensor:
    """What each step contributes to the objective that the policy maximises.

    Both forms weigh a step by ``pi / mu`` of the policy as it is now, not as it was
    when the batch arrived: an action that the minibatches before have made unlikely
    loses its pull instead of pushing the policy ever further away.

    Args:
        log_pi: of the actions, under the policy that is trained; carries the gradient.
        log_mu: of the actions, under the policy that acted.
        advantages: the bracket of equation 12, without an importance weight.
        ratio_clip: None for the paper's ``rho * log pi * A``; otherwise PPO's
            ``min(r * A, clip(r, 1 - ratio_clip, 1 + ratio_clip) * A)`` with
            ``r = pi / mu`` (Schulman et al., https://arxiv.org/abs/1707.06347).
        clip_pg_rho: ``rho = min(clip_pg_rho, r)``, a weight without gradient.

    Returns:
        The objective of each step, of the inputs' shape.
    """
    if not log_pi.shape == log_mu.shape == advantages.shape:
        raise ValueError(
            "shapes must be equal, got "
            f"{tuple(log_pi.shape)}, {tuple(log_mu.shape)}, {tuple(advantages.shape)}"
        )
    ratio = (log_pi - log_mu).clamp(max=_MAX_LOG_RATIO).exp()
    if ratio_clip is None:
        return ratio.detach().clamp(max=clip_pg_rho) * log_pi * advantages
    clipped = ratio.clamp(1.0 - ratio_clip, 1.0 + ratio_clip)
    return torch.minimum(ratio * advantages, clipped * advantages)


def masked_mean(values: Tensor, valid: Tensor) -> Tensor:
    """Mean over the valid entries; zero, with zero gradient, if there is none."""
    return (values * valid).sum() / valid.sum().clamp(min=1.0)
