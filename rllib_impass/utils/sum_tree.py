"""A sum tree: draws from a discrete distribution whose weights keep changing."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


class SumTree:
    """Non-negative weights of ``capacity`` leaves, all zero at first, and their sums.

    Setting or finding a whole batch takes one pass over the tree's depth, not over the
    batch. A node is always the sum of its two children as they are, never corrected by
    a difference, so that rounding does not add up over millions of updates.

    Args:
        capacity: the number of leaves.
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"capacity must be at least 1, got {capacity}")
        self.capacity = capacity
        self._depth = max(1, (capacity - 1).bit_length())
        self._first_leaf = 1 << self._depth
        # Row i holds the children of node i, which are nodes 2i and 2i + 1: one memory
        # access brings both. Node 1 is the root; node 0 is not used.
        self._children = np.zeros((self._first_leaf, 2), np.float64)
        self._nodes = self._children.reshape(-1)

    @property
    def total(self) -> float:
        """The sum of all weights."""
        return float(self._nodes[1])

    @property
    def nbytes(self) -> int:
        """Memory that the tree holds."""
        return self._nodes.nbytes

    def get(self, indices: ArrayLike) -> NDArray[np.float64]:
        """The weights of some leaves."""
        return self._nodes[self._first_leaf + self._checked(indices)]

    def set(self, indices: ArrayLike, values: ArrayLike) -> None:
        """Sets the weights of some leaves; of equal indices the last one wins."""
        leaves = self._checked(indices)
        weights = np.asarray(values, np.float64)
        if weights.shape != leaves.shape:
            raise ValueError(
                f"values must have indices' shape {leaves.shape}, got {weights.shape}"
            )
        if leaves.size == 0:
            return
        # Written so that a NaN fails, too.
        if not (weights.min() >= 0.0 and weights.max() < np.inf):
            raise ValueError(f"values must be finite and at least 0, got {weights}")
        # numpy does not promise which of several assignments to one element wins.
        leaves, last = np.unique(leaves[::-1], return_index=True)
        node = leaves + self._first_leaf
        self._nodes[node] = weights[::-1][last]
        for _ in range(self._depth):
            node >>= 1
            children = self._children.take(node, axis=0)
            self._nodes[node] = children[:, 0] + children[:, 1]

    def find(self, prefix_sums: ArrayLike) -> NDArray[np.intp]:
        """The leaf on which each prefix sum falls, when the weights lie side by side.

        Leaf i is found for sums in ``[w_0 + ... + w_{i-1}, w_0 + ... + w_i)``; the
        total itself belongs to the last leaf that has a weight. A leaf without weight
        is never found.

        Args:
            prefix_sums: ``[N]``, each between 0 and ``total``.

        Returns:
            ``[N]`` indices of leaves.
        """
        rest = np.array(prefix_sums, np.float64)
        if rest.size == 0:
            return np.empty(rest.shape, np.intp)
        total = self.total
        if not (total > 0.0 and rest.min() >= 0.0 and rest.max() <= total):
            raise ValueError(
                f"prefix sums must be between 0 and a positive total, got {rest} of "
                f"{total}"
            )
        node = np.ones(rest.shape, np.intp)
        for _ in range(self._depth):
            children = self._children.take(node, axis=0)
            left, right = children[..., 0], children[..., 1]
            # Rounding may leave a rest beyond the last weight: it must not lead into a
            # branch that has none.
            goes_right = (rest >= left) & (right > 0.0)
            rest -= np.where(goes_right, left, 0.0)
            node += node
            node += goes_right
        return node - self._first_leaf

    def _checked(self, indices: ArrayLike) -> NDArray[np.intp]:
        checked = np.asarray(indices, np.intp)
        if checked.ndim != 1:
            raise ValueError(f"indices must be [N], got shape {checked.shape}")
        if checked.size and not (checked.min() >= 0 and checked.max() < self.capacity):
            raise ValueError(
                f"indices must be between 0 and {self.capacity - 1}, got {checked}"
            )
        return checked
