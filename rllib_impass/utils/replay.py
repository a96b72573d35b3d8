"""Rings of transitions in preallocated arrays: uniform and prioritised replay."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from rllib_impass.utils.sum_tree import SumTree


class Field(NamedTuple):
    """Shape and type of one entry of one row."""

    shape: tuple[int, ...] = ()
    dtype: DTypeLike = np.float32


class ReplaySample(NamedTuple):
    """What ``sample`` returns.

    Attributes:
        batch: one array ``[N, ...]`` for each field.
        tickets: ``[N]``: the insertion numbers of the rows, to update priorities with.
        weights: ``[N]``: importance weights; all 1 where sampling is uniform.
    """

    batch: dict[str, NDArray]
    tickets: NDArray[np.int64]
    weights: NDArray[np.float32]


class ReplayBuffer:
    """The last ``capacity`` rows that were added, sampled uniformly with replacement.

    The m-th row ever added has ticket m and lies at ``m % capacity``: a ticket says
    which row was meant even after the ring has overwritten it.

    Not thread-safe: whoever shares a buffer brings the lock.

    Args:
        capacity: how many rows it holds.
        fields: what a row is made of.
    """

    def __init__(self, capacity: int, fields: Mapping[str, Field]) -> None:
        if capacity < 1:
            raise ValueError(f"capacity must be at least 1, got {capacity}")
        if not fields:
            raise ValueError("fields must name at least one field, got none")
        self.capacity = capacity
        self._num_added = 0
        self._arrays: dict[str, NDArray] = {}
        for name, field in fields.items():
            if any(size < 1 for size in field.shape):
                raise ValueError(f"{name}: shape {field.shape} holds nothing")
            self._arrays[name] = np.zeros((capacity, *field.shape), field.dtype)

    def __len__(self) -> int:
        return min(self._num_added, self.capacity)

    @property
    def num_added(self) -> int:
        """Rows ever added, those overwritten since included."""
        return self._num_added

    @property
    def nbytes(self) -> int:
        """Memory that the full buffer holds; the system hands it out as it fills."""
        return sum(array.nbytes for array in self._arrays.values())

    def add(
        self, batch: Mapping[str, ArrayLike], priorities: ArrayLike | None = None
    ) -> None:
        """Adds N rows, over the oldest ones where it is full.

        The outcome is that of adding them one by one: of more than ``capacity`` rows
        the last ones stay. No rows at all are fine, too.

        Args:
            batch: one array ``[N, ...]`` for each field.
            priorities: ``[N]``; uniform sampling has no use for them.
        """
        rows = self._checked(batch)
        num_rows = len(next(iter(rows.values())))
        if priorities is not None:
            priorities = _checked_priorities(priorities, num_rows)
        kept = slice(max(0, num_rows - self.capacity), None)
        tickets = np.arange(self._num_added, self._num_added + num_rows)[kept]
        places = tickets % self.capacity
        for name, values in rows.items():
            self._arrays[name][places] = values[kept]
        self._num_added += num_rows
        self._note_added(places, None if priorities is None else priorities[kept])

    def sample(self, batch_size: int, rng: np.random.Generator) -> ReplaySample:
        """Draws ``batch_size`` rows with replacement."""
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}")
        if self._num_added == 0:
            raise ValueError("an empty buffer has nothing to sample")
        places, weights = self._draw(batch_size, rng)
        newest = self._num_added - 1
        return ReplaySample(
            batch={n: a.take(places, axis=0) for n, a in self._arrays.items()},
            tickets=newest - (newest - places) % self.capacity,
            weights=weights,
        )

    def get_state(self) -> dict[str, Any]:
        """A copy of everything that :meth:`set_state` needs, unused room left out."""
        filled = len(self)
        return {
            "capacity": self.capacity,
            "num_added": self._num_added,
            "rows": {n: array[:filled].copy() for n, array in self._arrays.items()},
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Takes over what :meth:`get_state` of an equally built buffer returned."""
        if state["capacity"] != self.capacity:
            raise ValueError(
                f"capacity is {self.capacity}, but the state's is {state['capacity']}"
            )
        rows = self._checked(state["rows"])
        num_rows = len(next(iter(rows.values())))
        filled = min(state["num_added"], self.capacity)
        if num_rows != filled:
            raise ValueError(f"rows must be {filled}, but the state has {num_rows}")
        for name, values in rows.items():
            self._arrays[name][:filled] = values
        self._num_added = state["num_added"]

    def _draw(
        self, batch_size: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Places of the rows to sample, and their importance weights."""
        places = rng.integers(0, len(self), batch_size)
        return places, np.ones(batch_size, np.float32)

    def _note_added(
        self, places: NDArray[np.int64], priorities: NDArray[np.float64] | None
    ) -> None:
        """Called when rows have been written to ``places``."""

    def _checked(self, batch: Mapping[str, ArrayLike]) -> dict[str, NDArray]:
        """The batch as arrays that fit the fields; raises before anything changes."""
        if batch.keys() != self._arrays.keys():
            missing = sorted(self._arrays.keys() - batch.keys())
            unknown = sorted(batch.keys() - self._arrays.keys())
            raise ValueError(f"fields missing: {missing}, fields unknown: {unknown}")
        rows = {name: np.asarray(batch[name]) for name in self._arrays}
        first, num_rows = next((n, v.shape[:1]) for n, v in rows.items())
        for name, values in rows.items():
            array = self._arrays[name]
            if values.ndim == 0 or values.shape[1:] != array.shape[1:]:
                expected = ", ".join(["N", *map(str, array.shape[1:])])
                raise ValueError(
                    f"{name} must be [{expected}], got shape {values.shape}"
                )
            if values.shape[:1] != num_rows:
                raise ValueError(
                    f"{name} has {len(values)} rows, but {first} has {num_rows[0]}"
                )
            if not np.can_cast(values.dtype, array.dtype, "same_kind"):
                raise ValueError(
                    f"{name} must fit into {array.dtype}, got {values.dtype}"
                )
        return rows


class PrioritizedReplayBuffer(ReplayBuffer):
    """Samples row i with ``P(i) = p_i^alpha / sum_j p_j^alpha``.

    Schaul et al., "Prioritized Experience Replay", https://arxiv.org/abs/1511.05952,
    equation 1, proportional variant: ``p_i`` is the row's priority plus ``epsilon``. A
    row that comes without a priority gets the largest one seen so far, at first 1.

    Draws are stratified, as in the paper's appendix B.2.1: one from each of N equal
    parts of the total, which spreads a batch at no cost. They come in the order of
    their places, so a batch is not to be split as if it were shuffled.

    Args:
        capacity: how many rows it holds.
        fields: what a row is made of.
        alpha: 0 is uniform, 1 is proportional.
        beta: how far importance weights correct for it, 1 is fully; may be set anew at
            any time, by a schedule for example.
        epsilon: keeps a row of priority 0 in the game.
    """

    def __init__(
        self,
        capacity: int,
        fields: Mapping[str, Field],
        *,
        alpha: float = 0.6,
        beta: float = 0.4,
        epsilon: float = 1e-6,
    ) -> None:
        for name, value in {"alpha": alpha, "beta": beta}.items():
            if not 0.0 <= value < np.inf:
                raise ValueError(f"{name} must be at least 0, got {value}")
        if not 0.0 < epsilon < np.inf:
            raise ValueError(f"epsilon must be more than 0, got {epsilon}")
        super().__init__(capacity, fields)
        self.alpha = alpha
        self.beta = beta
        self.epsilon = epsilon
        self._max_priority = 1.0
        self._tree = SumTree(capacity)

    @property
    def nbytes(self) -> int:
        """Memory that the full buffer and its tree hold."""
        return super().nbytes + self._tree.nbytes

    def update_priorities(self, tickets: ArrayLike, priorities: ArrayLike) -> int:
        """Sets the priorities of sampled rows, except those overwritten since.

        Args:
            tickets: ``[N]``, from a sample; of equal ones the last one counts.
            priorities: ``[N]``, at least 0.

        Returns:
            How many of the N were still there.
        """
        numbers = np.asarray(tickets, np.int64)
        if numbers.ndim != 1:
            raise ValueError(f"tickets must be [N], got shape {numbers.shape}")
        if numbers.size and not (numbers.min() >= 0 and numbers.max() < self.num_added):
            raise ValueError(
                f"tickets must be below num_added = {self.num_added}, got {numbers}"
            )
        checked = _checked_priorities(priorities, len(numbers))
        is_there = numbers >= self.num_added - self.capacity
        self._set_priorities(numbers[is_there] % self.capacity, checked[is_there])
        return int(is_there.sum())

    def get_state(self) -> dict[str, Any]:
        """A copy of everything that :meth:`set_state` needs, unused room left out."""
        return super().get_state() | {
            "tree_weights": self._tree.get(np.arange(len(self))),
            "max_priority": self._max_priority,
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Takes over what :meth:`get_state` of an equally built buffer returned."""
        super().set_state(state)
        # A new one: this buffer may hold more rows than the state does.
        self._tree = SumTree(self.capacity)
        self._tree.set(np.arange(len(self)), state["tree_weights"])
        self._max_priority = state["max_priority"]

    def _draw(
        self, batch_size: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        total = self._tree.total
        parts = (np.arange(batch_size) + rng.random(batch_size)) / batch_size
        places = self._tree.find(parts * total)
        # (N P(i))^-beta over its maximum in the batch: N and the total cancel out. Of
        # the batch, not of the buffer: one row of tiny priority, perhaps never sampled,
        # would otherwise shrink every update.
        likelihoods = self._tree.get(places)
        weights = (likelihoods / likelihoods.min()) ** -self.beta
        return places, weights.astype(np.float32)

    def _note_added(
        self, places: NDArray[np.int64], priorities: NDArray[np.float64] | None
    ) -> None:
        if priorities is None:
            priorities = np.full(len(places), self._max_priority)
        self._set_priorities(places, priorities)

    def _set_priorities(
        self, places: NDArray[np.int64], priorities: NDArray[np.float64]
    ) -> None:
        self._max_priority = max(self._max_priority, priorities.max(initial=0.0))
        self._tree.set(places, (priorities + self.epsilon) ** self.alpha)


def _checked_priorities(priorities: ArrayLike, num_rows: int) -> NDArray[np.float64]:
    checked = np.asarray(priorities, np.float64)
    if checked.shape != (num_rows,):
        raise ValueError(f"priorities must be [{num_rows}], got shape {checked.shape}")
    # Written so that a NaN fails, too.
    if num_rows and not (checked.min() >= 0.0 and checked.max() < np.inf):
        raise ValueError(f"priorities must be finite and at least 0, got {checked}")
    return checked
