"""What a batch is trained towards: one V-trace computation (equations 1 and 12)."""

import math
from typing import NamedTuple

import torch
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.torch.torch_rl_module import TorchRLModule
from torch import Tensor

from rllib_impass.algorithms.collectives import moments_over_learners
from rllib_impass.algorithms.impass.train_batch import TrainBatch
from rllib_impass.ops import gaussian
from rllib_impass.ops.moments import batch_moments
from rllib_impass.ops.vtrace import lambda_advantages, vtrace_targets


class Targets(NamedTuple):
    """What the loss needs; all ``[T, B]``."""

    log_mu: Tensor
    vs: Tensor
    advantages: Tensor


class OffPolicyness(NamedTuple):
    """How far the learner is from the policy that acted, on valid steps."""

    rhos: Tensor
    kl: Tensor


@torch.no_grad()
def compute_targets(
    module: TorchRLModule,
    batch: TrainBatch,
    config: AlgorithmConfig,
    *,
    reward_scale: float,
) -> tuple[Targets, OffPolicyness]:
    """Runs the whole batch through the module once and V-trace over the result."""
    values = module.compute_values({Columns.OBS: batch.states})
    out = module.forward_train({Columns.OBS: batch.states[:-1]})
    mean, sigma = gaussian.means_and_sigmas(out[Columns.ACTION_DIST_INPUTS])
    log_mu = gaussian.log_prob(batch.actions, batch.means, batch.sigmas)
    log_rhos = gaussian.log_prob(batch.actions, mean, sigma) - log_mu
    # Ratio and discount both: with the discount alone, a masked step's delta would
    # cancel the bootstrap of a truncated episode.
    log_rhos = log_rhos.masked_fill(~batch.valid, -math.inf)
    discounts = config.gamma * (batch.valid & ~batch.terminated)

    inputs = (discounts, batch.rewards * reward_scale, values[:-1], values[-1])
    vs = vtrace_targets(
        log_rhos,
        *inputs,
        clip_rho=config.vtrace_clip_rho_threshold,
        clip_c=config.vtrace_clip_c_threshold,
        lambda_=config.vtrace_lambda,
    )
    # Without rho: the objective weighs by the ratio of its own moment. Normalised with
    # it, an action of ratio zero would get minus the mean, and the steepest gradient.
    advantages = lambda_advantages(vs, *inputs, lambda_=config.vtrace_lambda)
    if config.normalize_advantages:
        advantages = _normalized(advantages, batch.valid)
    kl = gaussian.kl_divergence(batch.means, batch.sigmas, mean, sigma)
    return (
        Targets(log_mu, vs, advantages),
        OffPolicyness(log_rhos[batch.valid].exp(), kl[batch.valid]),
    )


def _normalized(advantages: Tensor, valid: Tensor) -> Tensor:
    flat = advantages.reshape(-1, 1)
    moments = moments_over_learners(batch_moments(flat, valid.flatten()))
    mean, std = moments.mean.float(), moments.var.float().sqrt()
    return (advantages - mean) / (std + 1e-8)
