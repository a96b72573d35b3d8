"""What the modules of all algorithms are built from."""

import itertools
import math

import torch
from torch import Tensor, nn

from rllib_impass.ops.moments import Moments, merge_moments

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "tanh": nn.Tanh,
    "relu": nn.ReLU,
    "elu": nn.ELU,
    "silu": nn.SiLU,
}


class ObservationNormalizer(nn.Module):
    """Shifts and scales single states by running statistics, then clips.

    The statistics are buffers: the learner updates them, and they travel to the actors
    and into checkpoints with the weights. Stacked states share those of one state.

    Args:
        frame_size: length of a single state.
        clip: largest magnitude of a normalised number.
    """

    def __init__(self, frame_size: int, clip: float) -> None:
        super().__init__()
        self.clip = clip
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("mean", torch.zeros(frame_size))
        self.register_buffer("var", torch.ones(frame_size))

    def forward(self, states: Tensor) -> Tensor:
        """Normalises ``[..., k * d]`` frame by frame."""
        frames = states.view(*states.shape[:-1], -1, len(self.mean))
        frames = (frames - self.mean) * torch.rsqrt(self.var + 1e-8)
        return frames.clamp(-self.clip, self.clip).view(states.shape)

    @torch.no_grad()
    def update(self, batch: Moments) -> None:
        """Merges the moments of newly seen single states."""
        seen = Moments(self.count.double(), self.mean.double(), self.var.double())
        merged = merge_moments(seen, batch)
        self.count.copy_(merged.count)
        self.mean.copy_(merged.mean)
        self.var.copy_(merged.var)


def mlp(sizes: list[int], activation: type[nn.Module]) -> nn.Sequential:
    """Linear layers, each followed by the activation, orthogonally initialised."""
    layers: list[nn.Module] = []
    for size_in, size_out in itertools.pairwise(sizes):
        layers += [linear(size_in, size_out, gain=math.sqrt(2.0)), activation()]
    return nn.Sequential(*layers)


def linear(size_in: int, size_out: int, gain: float) -> nn.Linear:
    """An orthogonally initialised layer without bias at first."""
    layer = nn.Linear(size_in, size_out)
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


def layer_norm_mlp(sizes: list[int]) -> nn.Sequential:
    """D4PG's networks: layer norm and tanh after the first layer, then ELU.

    The norm keeps the scale of raw observations out of the features.
    """
    first, *others = itertools.pairwise(sizes)
    layers: list[nn.Module] = [nn.Linear(*first), nn.LayerNorm(first[1]), nn.Tanh()]
    for size_in, size_out in others:
        layers += [nn.Linear(size_in, size_out), nn.ELU()]
    return nn.Sequential(*layers)
