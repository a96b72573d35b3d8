"""Learners that do one thing wrong; importable by Ray's workers."""

import os
import time

import torch
from ray.rllib.core import DEFAULT_MODULE_ID

from rllib_impass.algorithms.collectives import rank
from rllib_impass.algorithms.impass.impass_learner import IMPASSLearner


class RaisingLearner(IMPASSLearner):
    """Its third loss raises."""

    num_losses = 0

    def compute_loss_for_module(self, **kwargs):
        self.num_losses += 1
        if self.num_losses == 3:
            raise ArithmeticError("the loss went wrong")
        return super().compute_loss_for_module(**kwargs)


class RaisingSecondLearner(IMPASSLearner):
    """Of two learners, the second one raises in its third loss."""

    num_losses = 0

    def compute_loss_for_module(self, **kwargs):
        self.num_losses += 1
        if self.num_losses == 3 and rank() == 1:
            raise ArithmeticError("the second loss went wrong")
        return super().compute_loss_for_module(**kwargs)


class SlowLearner(IMPASSLearner):
    """Falls behind: its queue is never empty while actors sample."""

    def compute_loss_for_module(self, **kwargs):
        time.sleep(0.03)
        return super().compute_loss_for_module(**kwargs)


class NaNLearner(IMPASSLearner):
    """Losses number 5 to 8 are NaN, or all of them if ``forever``."""

    num_losses = 0
    forever = False

    def compute_loss_for_module(self, **kwargs):
        loss = super().compute_loss_for_module(**kwargs)
        self.num_losses += 1
        is_bad = self.forever or 5 <= self.num_losses <= 8
        return loss * torch.nan if is_bad else loss


class AlwaysNaNLearner(NaNLearner):
    """Every loss is NaN."""

    forever = True


class InfiniteGradientLearner(IMPASSLearner):
    """A finite loss with an infinite gradient: sqrt at zero."""

    def compute_loss_for_module(self, **kwargs):
        loss = super().compute_loss_for_module(**kwargs)
        parameter = self.module[DEFAULT_MODULE_ID].mean_head.weight
        return loss + ((parameter - parameter.detach()).abs()).sqrt().sum()


def fail_at_the_next_loss(learner):
    """Gives a RaisingLearner one empty batch, whose loss raises."""
    learner.num_losses = 2
    learner._queue.put(([], {}))


def process_id(actor):
    """Where an actor runs."""
    return os.getpid()


def weights_version(runner):
    """Of the weights an actor samples with."""
    return runner._weights_seq_no


def idle_queue_stats(learner):
    """The counters of a learner's queue, once it is empty."""
    learner.wait_until_idle()
    return learner._queue.stats()
