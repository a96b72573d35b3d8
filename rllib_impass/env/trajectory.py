"""The wire format between actors and learner."""

import dataclasses

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]


@dataclasses.dataclass(frozen=True, slots=True)
class Trajectory:
    """T steps of B environments, time-major; what the actor knew, nothing derived.

    Single states travel, not stacks: the object is k times smaller, and the learner
    rebuilds every S_t with the same function the actor used.

    A plain object on purpose: RLlib's ``tree.flatten`` would take a dict or a tuple
    apart.

    Attributes:
        frames: ``[k - 1 + T + 1, B, d]``: single states, the k-1 before the first step
            included.
        ages: ``[T + 1, B]``: steps since the first state of the episode.
        actions: ``[T, B, A]``: as sampled, before they were fitted to the action space.
        means: ``[T, B, A]``: of the behaviour policy.
        sigmas: ``[T, B, A]``: of the behaviour policy.
        rewards: ``[T, B]``: raw.
        returns: ``[T, B]``: the discounted sum of the episode's rewards so far.
        terminated: ``[T, B]``: the step ended the episode for good (not by time limit).
        valid: ``[T, B]``: False where a vector env spends the step on its auto-reset,
            and in whole columns that held a non-finite number.
        weights_version: version of the weights that acted.
        num_repeated: how many steps at the start the fragment before had already, for
            targets that look ahead over a fragment's end; counted in T.
    """

    frames: Array
    ages: NDArray[np.int32]
    actions: Array
    means: Array
    sigmas: Array
    rewards: Array
    returns: Array
    terminated: NDArray[np.bool_]
    valid: NDArray[np.bool_]
    weights_version: int
    num_repeated: int = 0

    @property
    def num_valid_steps(self) -> int:
        """How many steps are new and can be trained on."""
        return int(self.valid[self.num_repeated :].sum())

    def without_nonfinite_columns(self) -> tuple["Trajectory", int]:
        """Invalidates columns that hold a NaN or an infinity anywhere.

        A whole column goes, not one step: stacks, returns and targets of its other
        steps reach into the bad one.

        Returns:
            The clean trajectory and the number of columns that were invalidated.
        """
        floats = ("frames", "actions", "means", "sigmas", "rewards", "returns")
        bad = np.zeros(self.valid.shape[1], bool)
        for name in floats:
            finite = np.isfinite(getattr(self, name))
            bad |= ~finite.all(axis=tuple(i for i in range(finite.ndim) if i != 1))
        if not bad.any():
            return self, 0
        clean = {name: getattr(self, name).copy() for name in floats}
        for array in clean.values():
            array[:, bad] = 0.0
        # A sigma of zero would turn the masked log-probability into a NaN.
        clean["sigmas"][:, bad] = 1.0
        valid = self.valid & ~bad
        return dataclasses.replace(self, **clean, valid=valid), int(bad.sum())
