"""What several learners must agree on; with one learner, everything is local.

Learners may hold different amounts of valid data, so every average is weighted by it.
"""

from collections.abc import Iterable

import torch
from torch import Tensor, distributed

from rllib_impass.ops.moments import Moments


def is_distributed() -> bool:
    """Whether more than one learner trains."""
    return distributed.is_initialized() and distributed.get_world_size() > 1


def rank() -> int:
    """This learner's number; 0 writes checkpoints and publishes weights."""
    return distributed.get_rank() if is_distributed() else 0


def broadcast_from_first(tensors: Iterable[Tensor]) -> None:
    """Overwrites the tensors with the first learner's."""
    if is_distributed():
        for tensor in tensors:
            distributed.broadcast(tensor, src=0)


def max_over_learners(value: int, device: torch.device) -> int:
    """The largest of the learners' values."""
    if not is_distributed():
        return value
    tensor = torch.tensor(value, device=device)
    distributed.all_reduce(tensor, op=distributed.ReduceOp.MAX)
    return int(tensor)


def moments_over_learners(moments: Moments) -> Moments:
    """Moments of what all learners saw."""
    if not is_distributed():
        return moments
    count, mean, var = moments
    sums = [count.expand_as(mean), mean * count, (var + mean.square()) * count]
    total = torch.stack(sums)
    distributed.all_reduce(total)
    count = total[0, 0]
    mean, mean_square = total[1:] / count.clamp(min=1.0)
    return Moments(count, mean, (mean_square - mean.square()).clamp(min=0.0))


def average_gradients(
    gradients: list[Tensor], loss: Tensor, num_valid: Tensor
) -> tuple[Tensor, Tensor]:
    """Averages gradients in place.

    Returns:
        The averaged loss and the number of valid steps of all learners. A non-finite
        number anywhere shows up everywhere, so that all skip the same steps.
    """
    if not is_distributed():
        return loss, num_valid
    flat = torch.cat([*(g.flatten() for g in gradients), loss.reshape(1)])
    flat = torch.cat([flat * num_valid, num_valid.reshape(1).to(flat)])
    distributed.all_reduce(flat)
    total = flat[-1]
    averages = flat[:-1] / total.clamp(min=1.0)
    sizes = [gradient.numel() for gradient in gradients]
    for gradient, average in zip(gradients, averages[:-1].split(sizes), strict=True):
        gradient.copy_(average.view_as(gradient))
    return averages[-1], total
