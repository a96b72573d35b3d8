"""The Gaussian encoder and its critic (IMPASS paper, § 4.1 and Fig. 3)."""

import math
from typing import Any

import torch
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.apis import InferenceOnlyAPI, ValueFunctionAPI
from ray.rllib.core.rl_module.rl_module import RLModule
from ray.rllib.core.rl_module.torch.torch_rl_module import TorchRLModule
from ray.rllib.utils.annotations import override
from torch import Tensor, nn
from torch.nn import functional
from typing_extensions import Self

from rllib_impass.algorithms.networks import (
    ACTIVATIONS,
    ObservationNormalizer,
    linear,
    mlp,
)
from rllib_impass.ops import gaussian


class GaussianEncoderRLModule(TorchRLModule, ValueFunctionAPI, InferenceOnlyAPI):
    """Encodes a stacked state into the mean and sigma of the action; separate critic.

    Reads from ``model_config`` (defaults: ``IMPASSConfig``): RLlib's ``fcnet_hiddens``
    and ``fcnet_activation``, and ``num_stacked_states``, ``normalize_observations``,
    ``observation_clip``, ``initial_sigma``, ``sigma_floor``, ``sigma_ceiling``.
    """

    @override(RLModule)
    def setup(self) -> None:
        config = self.model_config
        (state_size,) = self.observation_space.shape
        (action_size,) = self.action_space.shape
        hiddens = list(config["fcnet_hiddens"])
        activation = ACTIVATIONS[config["fcnet_activation"]]

        self.normalizer: ObservationNormalizer | None = None
        if config["normalize_observations"]:
            self.normalizer = ObservationNormalizer(
                state_size // config["num_stacked_states"], config["observation_clip"]
            )
        self.encoder = mlp([state_size, *hiddens], activation)
        self.mean_head = linear(hiddens[-1], action_size, gain=0.01)
        self.sigma_head = linear(hiddens[-1], action_size, gain=0.01)
        self.critic = nn.Sequential(
            mlp([state_size, *hiddens], activation), linear(hiddens[-1], 1, gain=1.0)
        )
        self.sigma_floor = config["sigma_floor"]
        self.sigma_ceiling = config["sigma_ceiling"]
        with torch.no_grad():
            initial = config["initial_sigma"] - self.sigma_floor
            self.sigma_head.bias.fill_(math.log(math.expm1(initial)))

    @override(nn.Module)
    def train(self, mode: bool = True) -> Self:
        # RLlib asks before every forward pass, and torch visits every submodule.
        return self if self.training == mode else super().train(mode)

    @override(InferenceOnlyAPI)
    def get_non_inference_attributes(self) -> list[str]:
        return ["critic"]

    @override(TorchRLModule)
    def _forward_train(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        states = self._normalize(batch[Columns.OBS])
        mean, sigma = self._encode_normalized(states)
        return {
            Columns.ACTION_DIST_INPUTS: torch.cat([mean, sigma.log()], dim=-1),
            # For `compute_values`, which then need not normalise again.
            Columns.EMBEDDINGS: states,
        }

    @override(TorchRLModule)
    def _forward_exploration(
        self, batch: dict[str, Any], **kwargs: Any
    ) -> dict[str, Any]:
        with torch.no_grad():
            mean, sigma = self.encode(batch[Columns.OBS])
            return {
                Columns.ACTIONS: gaussian.sample(mean, sigma),
                # RLlib's diagonal Gaussian is parameterised by the log of sigma.
                Columns.ACTION_DIST_INPUTS: torch.cat([mean, sigma.log()], dim=-1),
            }

    @override(TorchRLModule)
    def _forward_inference(
        self, batch: dict[str, Any], **kwargs: Any
    ) -> dict[str, Any]:
        with torch.no_grad():
            mean, _ = self.encode(batch[Columns.OBS])
            return {Columns.ACTIONS: mean}

    @override(ValueFunctionAPI)
    def compute_values(
        self, batch: dict[str, Any], embeddings: Any | None = None
    ) -> Tensor:
        """The critic's values.

        Args:
            batch: has the states.
            embeddings: the same states, normalised, if ``forward_train`` has run.
        """
        if embeddings is None:
            embeddings = self._normalize(batch[Columns.OBS])
        return self.critic(embeddings).squeeze(-1)

    def encode(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and sigma of the action distribution, equation 8."""
        return self._encode_normalized(self._normalize(states))

    def _encode_normalized(self, states: Tensor) -> tuple[Tensor, Tensor]:
        features = self.encoder(states)
        sigma = functional.softplus(self.sigma_head(features)) + self.sigma_floor
        return self.mean_head(features), sigma.clamp(max=self.sigma_ceiling)

    def _normalize(self, states: Tensor) -> Tensor:
        return states if self.normalizer is None else self.normalizer(states)
