"""What a critic's outputs mean: a distribution over atoms, or one number."""

import torch
from torch import Tensor, nn

from rllib_impass.ops import categorical


class CategoricalHead(nn.Module):
    """D4PG: probabilities of evenly spaced returns (Barth-Maron et al., appendix A).

    Args:
        num_atoms: how many.
        v_min: the smallest return.
        v_max: the largest return.
    """

    def __init__(self, num_atoms: int, v_min: float, v_max: float) -> None:
        super().__init__()
        self.num_outputs = num_atoms
        atoms = torch.linspace(v_min, v_max, num_atoms)
        # Of the config, not of the weights.
        self.register_buffer("atoms", atoms, persistent=False)

    def mean(self, outputs: Tensor) -> Tensor:
        """``Q = E[Z]``, ``[B, N]`` to ``[B]``."""
        return categorical.mean_value(outputs.softmax(-1), self.atoms)

    @torch.no_grad()
    def target(self, outputs: Tensor, rewards: Tensor, discounts: Tensor) -> Tensor:
        """What the outputs at the bootstrap state say of the state n steps before."""
        probs = outputs.softmax(-1)
        return categorical.project_distribution(probs, rewards, discounts, self.atoms)

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        """Cross-entropy of each row, ``[B]``."""
        return categorical.cross_entropy(target, outputs)

    @torch.no_grad()
    def priorities(self, outputs: Tensor, target: Tensor) -> Tensor:
        """KL to the target: what of the cross-entropy can still be learnt."""
        entropy = -torch.special.xlogy(target, target).sum(-1)
        return (self.loss(outputs, target) - entropy).clamp(min=0.0)

    def clipped_mass(self, target: Tensor) -> dict[str, float]:
        """Mean target mass on either end of the support."""
        low, high = categorical.end_atom_mass(target)
        return {"low": low.mean().item(), "high": high.mean().item()}


class ScalarHead(nn.Module):
    """Ape-X DPG: the expected return itself."""

    num_outputs = 1

    def mean(self, outputs: Tensor) -> Tensor:
        """``Q``, ``[B, 1]`` to ``[B]``."""
        return outputs.squeeze(-1)

    @torch.no_grad()
    def target(self, outputs: Tensor, rewards: Tensor, discounts: Tensor) -> Tensor:
        """The n-step return, bootstrapped."""
        return rewards + discounts * self.mean(outputs)

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        """Half the squared error of each row, ``[B]``."""
        return 0.5 * (self.mean(outputs) - target).square()

    @torch.no_grad()
    def priorities(self, outputs: Tensor, target: Tensor) -> Tensor:
        """The absolute error."""
        return (self.mean(outputs) - target).abs()

    def clipped_mass(self, target: Tensor) -> dict[str, float]:
        """A number has no support to leave."""
        return {}
