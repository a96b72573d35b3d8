"""Gradient steps that clip by norm and never let a non-finite number into weights."""

import math
from collections.abc import Mapping

import torch
from torch import Tensor
from torch.optim import Optimizer

from rllib_impass.algorithms.collectives import average_gradients


class GuardedUpdates:
    """Steps several optimizers at once, or skips the step and counts it.

    Args:
        grad_clip: largest gradient norm of each optimizer's parameters; None for any.
        max_skipped_in_a_row: skipped steps in a row that end training with an error.
    """

    def __init__(self, *, grad_clip: float | None, max_skipped_in_a_row: int) -> None:
        self._max_norm = math.inf if grad_clip is None else grad_clip
        self._max_skipped_in_a_row = max_skipped_in_a_row
        self._num_skipped_in_a_row = 0

    def step(
        self, optimizers: Mapping[str, Optimizer], loss: Tensor, num_valid: Tensor
    ) -> dict[str, float] | None:
        """Averages gradients over learners, clips them, and steps.

        Args:
            optimizers: by name; each has one group of parameters, with gradients.
            loss: what the gradients are of.
            num_valid: how many steps it is the mean of: the weight of this learner.

        Returns:
            The norm of each optimizer's gradient before it was clipped, by name; None
            if the step was skipped.
        """
        groups = [
            optimizer.param_groups[0]["params"] for optimizer in optimizers.values()
        ]
        loss, num_valid = average_gradients(
            [p.grad for group in groups for p in group if p.grad is not None],
            loss.detach(),
            num_valid,
        )
        clip = torch.nn.utils.clip_grad_norm_
        norms = [clip(group, self._max_norm) for group in groups]
        is_finite = all(map(math.isfinite, torch.stack([loss, *norms]).tolist()))
        if not is_finite or num_valid == 0:
            self._note_skipped(is_finite)
            return None
        for optimizer in optimizers.values():
            optimizer.step()
        self._num_skipped_in_a_row = 0
        return dict(zip(optimizers, map(float, norms), strict=True))

    def _note_skipped(self, is_finite: bool) -> None:
        self._num_skipped_in_a_row += 1
        limit = self._max_skipped_in_a_row
        if self._num_skipped_in_a_row >= limit:
            reason = (
                "no step was valid; the env returns NaN or infinity"
                if is_finite
                else "the loss or its gradient was not finite; lower lr, or look at "
                "the scale of observations and rewards"
            )
            raise RuntimeError(
                f"{limit} updates in a row were skipped "
                f"(max_consecutive_skipped_updates={limit}): {reason}. "
                "The weights are still finite."
            )
