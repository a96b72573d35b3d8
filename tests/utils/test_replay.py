import tracemalloc

import numpy as np
import pytest

from rllib_impass.utils.replay import Field, PrioritizedReplayBuffer, ReplayBuffer

FIELDS = {"obs": Field((2,)), "number": Field(dtype=np.int64)}
HOPPER = {
    "obs": Field((11,)),
    "actions": Field((3,)),
    "returns": Field(),
    "discounts": Field(),
    "next_obs": Field((11,)),
}
BOTH = pytest.mark.parametrize("cls", [ReplayBuffer, PrioritizedReplayBuffer])


def rows(first, count):
    """Rows that carry their own number, in every field."""
    number = np.arange(first, first + count)
    return {"obs": np.stack([number, -number], 1).astype(np.float32), "number": number}


def contents(buffer):
    """The numbers of the rows in it, by place."""
    return buffer.get_state()["rows"]["number"].tolist()


def chi_square(counts, probs):
    """Pearson's statistic in standard deviations above its mean, without scipy."""
    expected = counts.sum() * np.asarray(probs)
    statistic = ((counts - expected) ** 2 / expected).sum()
    freedom = len(counts) - 1
    return (statistic - freedom) / np.sqrt(2.0 * freedom)


@BOTH
def test_adding_batches_equals_adding_row_by_row(cls):
    rng = np.random.default_rng(0)
    for capacity in (1, 3, 7, 8):
        together, single = cls(capacity, FIELDS), cls(capacity, FIELDS)
        # Batches larger than what is left, than the buffer, and empty ones.
        for count in rng.integers(0, 2 * capacity + 2, 20):
            batch = rows(together.num_added, count)
            together.add(batch)
            for i in range(count):
                single.add({name: values[i : i + 1] for name, values in batch.items()})
            assert contents(together) == contents(single)
            assert len(together) == len(single) == min(capacity, together.num_added)


@BOTH
def test_a_full_buffer_holds_the_last_rows(cls):
    buffer = cls(5, FIELDS)
    for first in range(0, 12, 3):
        buffer.add(rows(first, 3))
    assert buffer.num_added == 12
    assert sorted(contents(buffer)) == [7, 8, 9, 10, 11]


@BOTH
def test_a_sample_is_made_of_whole_rows(cls):
    buffer = cls(5, FIELDS)
    buffer.add(rows(0, 13))
    batch, tickets, weights = buffer.sample(100, np.random.default_rng(0))
    assert batch["obs"].shape == (100, 2)
    assert (batch["obs"].dtype, batch["number"].dtype) == (np.float32, np.int64)
    np.testing.assert_array_equal(batch["obs"][:, 0], batch["number"])
    np.testing.assert_array_equal(batch["obs"][:, 1], -batch["number"])
    # Rows are numbered as they came in, and so are tickets.
    np.testing.assert_array_equal(tickets, batch["number"])
    assert set(tickets.tolist()) == {8, 9, 10, 11, 12}
    assert weights.dtype == np.float32
    assert (weights == 1.0).all()


@BOTH
def test_a_part_filled_buffer_never_gives_out_an_empty_row(cls):
    buffer = cls(100, FIELDS)
    buffer.add(rows(1, 3))
    batch = buffer.sample(1000, np.random.default_rng(0)).batch
    assert set(batch["number"].tolist()) == {1, 2, 3}


@BOTH
def test_a_sample_does_not_change_with_the_buffer(cls):
    buffer = cls(4, FIELDS)
    buffer.add(rows(0, 4))
    batch = buffer.sample(8, np.random.default_rng(0)).batch
    before = batch["number"].copy()
    buffer.add(rows(4, 4))
    np.testing.assert_array_equal(batch["number"], before)


@BOTH
def test_sampling_without_priorities_is_uniform(cls):
    buffer = cls(20, FIELDS)
    buffer.add(rows(0, 33))
    rng = np.random.default_rng(0)
    # In batches that do not divide evenly among the rows.
    tickets = np.concatenate([buffer.sample(37, rng).tickets for _ in range(1000)])
    counts = np.bincount(tickets - 13, minlength=20)
    assert chi_square(counts, np.full(20, 1 / 20)) < 4.0


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
def test_sampling_follows_the_priorities(alpha):
    rng = np.random.default_rng(0)
    priorities = rng.uniform(0.1, 5.0, 20)
    buffer = PrioritizedReplayBuffer(20, FIELDS, alpha=alpha, epsilon=0.01)
    buffer.add(rows(0, 20), priorities)
    tickets = np.concatenate([buffer.sample(37, rng).tickets for _ in range(1000)])
    scaled = (priorities + 0.01) ** alpha
    counts = np.bincount(tickets, minlength=20)
    assert chi_square(counts, scaled / scaled.sum()) < 4.0


@pytest.mark.parametrize("beta", [0.0, 0.4, 1.0])
def test_importance_weights_are_the_formula(beta):
    rng = np.random.default_rng(0)
    priorities = rng.uniform(0.1, 5.0, 50)
    buffer = PrioritizedReplayBuffer(64, FIELDS, alpha=0.7, epsilon=0.01)
    buffer.add(rows(0, 50), priorities)
    # As a schedule would.
    buffer.beta = beta
    sample = buffer.sample(32, rng)
    scaled = (priorities + 0.01) ** 0.7
    probs = scaled / scaled.sum()
    expected = (50 * probs[sample.tickets]) ** -beta
    np.testing.assert_allclose(sample.weights, expected / expected.max(), rtol=1e-6)
    assert sample.weights.max() == 1.0


def test_a_row_without_a_priority_gets_the_largest_one_seen():
    buffer = PrioritizedReplayBuffer(8, FIELDS, alpha=1.0, epsilon=0.5)
    buffer.add(rows(0, 1))
    buffer.add(rows(1, 1), [7.0])
    buffer.add(rows(2, 1))
    buffer.update_priorities([1], [9.0])
    buffer.update_priorities([1], [0.0])
    buffer.add(rows(3, 1))
    weights = buffer.get_state()["tree_weights"]
    assert weights.tolist() == [1.5, 0.5, 7.5, 9.5]


def test_a_row_of_priority_zero_is_still_sampled():
    buffer = PrioritizedReplayBuffer(2, FIELDS, alpha=1.0, epsilon=0.1)
    buffer.add(rows(0, 2), [0.0, 1.0])
    tickets = buffer.sample(100, np.random.default_rng(0)).tickets
    assert set(tickets.tolist()) == {0, 1}


def test_updates_hit_the_sampled_rows_of_a_wrapped_buffer():
    buffer = PrioritizedReplayBuffer(5, FIELDS, alpha=1.0, epsilon=0.5)
    buffer.add(rows(0, 13))
    assert buffer.update_priorities([12, 9], [20.0, 30.0]) == 2
    weights = dict(
        zip(contents(buffer), buffer.get_state()["tree_weights"], strict=True)
    )
    assert weights == {8: 1.5, 9: 30.5, 10: 1.5, 11: 1.5, 12: 20.5}


def test_rows_that_were_overwritten_since_are_not_touched():
    rng = np.random.default_rng(0)
    buffer = PrioritizedReplayBuffer(10, FIELDS, alpha=1.0, epsilon=0.5)
    buffer.add(rows(0, 10))
    tickets = buffer.sample(50, rng).tickets
    buffer.add(rows(10, 6))
    num_updated = buffer.update_priorities(tickets, np.full(50, 99.0))
    assert num_updated == (tickets >= 6).sum()
    weights = dict(
        zip(contents(buffer), buffer.get_state()["tree_weights"], strict=True)
    )
    for number, weight in weights.items():
        assert weight == (99.5 if number in tickets else 1.5)


def test_updates_a_whole_round_late_change_nothing():
    buffer = PrioritizedReplayBuffer(4, FIELDS)
    buffer.add(rows(0, 4))
    tickets = buffer.sample(8, np.random.default_rng(0)).tickets
    buffer.add(rows(4, 9))
    before = buffer.get_state()["tree_weights"]
    assert buffer.update_priorities(tickets, np.full(8, 99.0)) == 0
    np.testing.assert_array_equal(buffer.get_state()["tree_weights"], before)


def test_of_equal_tickets_the_last_one_counts():
    buffer = PrioritizedReplayBuffer(4, FIELDS, alpha=1.0, epsilon=0.5)
    buffer.add(rows(0, 2))
    buffer.update_priorities([1, 1], [5.0, 3.0])
    assert buffer.get_state()["tree_weights"].tolist() == [1.5, 3.5]


@BOTH
@pytest.mark.parametrize("num_rows", [0, 5, 23])
def test_a_restored_buffer_goes_on_identically(cls, num_rows):
    original, restored = cls(10, FIELDS), cls(10, FIELDS)
    original.add(rows(0, num_rows), np.linspace(0.0, 3.0, num_rows))
    # What it held before must not show through.
    restored.add(rows(100, 17))
    restored.set_state(original.get_state())

    rngs = np.random.default_rng(0), np.random.default_rng(0)
    for step in range(5):
        samples = []
        for buffer, rng in zip((original, restored), rngs, strict=True):
            buffer.add(rows(num_rows + 3 * step, 3))
            samples.append(buffer.sample(20, rng))
            if cls is PrioritizedReplayBuffer:
                tickets = samples[-1].tickets
                buffer.update_priorities(tickets, tickets % 5 + 2.0 * step)
        for name in FIELDS:
            np.testing.assert_array_equal(
                samples[0].batch[name], samples[1].batch[name]
            )
        np.testing.assert_array_equal(samples[0].tickets, samples[1].tickets)
        np.testing.assert_array_equal(samples[0].weights, samples[1].weights)
    assert original.num_added == restored.num_added
    assert len(original) == len(restored)


@BOTH
def test_a_state_holds_copies_of_the_filled_part_only(cls):
    buffer = cls(1000, FIELDS)
    buffer.add(rows(0, 3))
    state = buffer.get_state()
    buffer.add(rows(3, 1000))
    assert state["rows"]["number"].tolist() == [0, 1, 2]
    arrays = [*state["rows"].values(), state.get("tree_weights", np.zeros(3))]
    assert all(len(array) == 3 and array.base is None for array in arrays)


@BOTH
def test_a_state_that_does_not_fit_is_refused(cls):
    buffer = cls(4, FIELDS)
    buffer.add(rows(0, 3))
    state = buffer.get_state()
    with pytest.raises(ValueError, match="capacity is 5, but the state's is 4"):
        cls(5, FIELDS).set_state(state)
    with pytest.raises(ValueError, match="number"):
        cls(4, {"obs": Field((2,))}).set_state(state)
    with pytest.raises(ValueError, match="rows must be 2"):
        buffer.set_state(state | {"num_added": 2})


@BOTH
def test_a_million_hopper_steps_stay_within_the_stated_memory(cls):
    tree = 2 * 2**20 * 8 if cls is PrioritizedReplayBuffer else 0
    batch = {name: np.ones((50_000, *f.shape), f.dtype) for name, f in HOPPER.items()}
    rng = np.random.default_rng(0)
    tracemalloc.start()
    try:
        buffer = cls(1_000_000, HOPPER)
        for _ in range(21):
            buffer.add(batch)
            buffer.sample(256, rng)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert buffer.nbytes == 108_000_000 + tree
    assert held == pytest.approx(buffer.nbytes, rel=1e-3)


@BOTH
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"number": None}, r"missing: \['number'\]"),
        ({"reward": np.zeros(3)}, r"unknown: \['reward'\]"),
        ({"obs": np.zeros((3, 4))}, r"obs must be \[N, 2\], got shape \(3, 4\)"),
        ({"obs": np.zeros(3)}, r"obs must be \[N, 2\], got shape \(3,\)"),
        ({"number": 7}, r"number must be \[N\], got shape \(\)"),
        ({"number": np.arange(4)}, "number has 4 rows, but obs has 3"),
        ({"number": np.ones(3)}, "number must fit into int64, got float64"),
    ],
)
def test_batches_that_do_not_fit_are_refused_and_change_nothing(cls, changes, message):
    buffer = cls(10, FIELDS)
    batch = rows(0, 3) | changes
    batch = {name: values for name, values in batch.items() if values is not None}
    with pytest.raises(ValueError, match=message):
        buffer.add(batch)
    assert buffer.num_added == 0


@BOTH
@pytest.mark.parametrize(
    ("priorities", "message"),
    [
        (np.ones(2), r"priorities must be \[3\], got shape \(2,\)"),
        ([1.0, -1.0, 1.0], "at least 0"),
        ([1.0, np.nan, 1.0], "finite"),
        ([1.0, np.inf, 1.0], "finite"),
    ],
)
def test_wrong_priorities_are_refused_and_change_nothing(cls, priorities, message):
    buffer = cls(10, FIELDS)
    with pytest.raises(ValueError, match=message):
        buffer.add(rows(0, 3), priorities)
    assert buffer.num_added == 0


@pytest.mark.parametrize(
    ("tickets", "priorities", "message"),
    [
        ([0, 3], [1.0, 1.0], "tickets must be below num_added = 3"),
        ([-1], [1.0], "tickets"),
        ([[0]], [[1.0]], "tickets must be"),
        ([0, 1], [1.0], "priorities"),
        ([0], [np.nan], "priorities"),
    ],
)
def test_wrong_updates_are_refused(tickets, priorities, message):
    buffer = PrioritizedReplayBuffer(10, FIELDS)
    buffer.add(rows(0, 3))
    with pytest.raises(ValueError, match=message):
        buffer.update_priorities(tickets, priorities)


@BOTH
def test_an_empty_buffer_or_batch_cannot_be_sampled(cls):
    buffer = cls(10, FIELDS)
    with pytest.raises(ValueError, match="empty"):
        buffer.sample(1, np.random.default_rng(0))
    buffer.add(rows(0, 1))
    with pytest.raises(ValueError, match="batch_size must be at least 1, got 0"):
        buffer.sample(0, np.random.default_rng(0))


@BOTH
@pytest.mark.parametrize(
    ("capacity", "fields", "message"),
    [
        (0, FIELDS, "capacity must be at least 1, got 0"),
        (3, {}, "at least one field"),
        (3, {"obs": Field((0,))}, "obs"),
    ],
)
def test_buffers_that_hold_nothing_are_refused(cls, capacity, fields, message):
    with pytest.raises(ValueError, match=message):
        cls(capacity, fields)


@pytest.mark.parametrize(
    ("setting", "value"),
    [("alpha", -0.1), ("beta", -0.1), ("epsilon", 0.0), ("alpha", np.nan)],
)
def test_wrong_settings_are_named(setting, value):
    with pytest.raises(ValueError, match=setting):
        PrioritizedReplayBuffer(3, FIELDS, **{setting: value})
