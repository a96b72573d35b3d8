"""The deterministic policy gradient (Silver et al., 2014; D4PG, Algorithm 1)."""

from torch import Tensor


def clip_action_gradients(gradients: Tensor, max_norm: float | None) -> Tensor:
    """Shortens each row of ``dQ/da``, ``[B, A]``, to a norm of at most ``max_norm``.

    A critic that is steep somewhere would otherwise tear the policy into saturation.
    """
    if max_norm is None:
        return gradients
    norms = gradients.norm(dim=-1, keepdim=True)
    return gradients * (max_norm / norms.clamp(min=max_norm))


def policy_loss(actions: Tensor, action_gradients: Tensor) -> Tensor:
    """``-mean_b a_b . dQ/da_b``: its gradient is that of ``-mean_b Q(s_b, pi(s_b))``.

    Args:
        actions: ``pi(s)``, ``[B, A]``; carries the gradient.
        action_gradients: ``dQ/da`` at these actions, taken as constants.
    """
    if actions.shape != action_gradients.shape:
        raise ValueError(
            "actions and action_gradients must have equal shapes, got "
            f"{tuple(actions.shape)} and {tuple(action_gradients.shape)}"
        )
    return -(actions * action_gradients.detach()).sum(-1).mean()
