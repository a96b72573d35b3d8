"""Statistics equal what the formulas give by hand, by brute force and in rliable."""

import itertools

import numpy as np
import pytest
from scipy.stats import trim_mean

from rllib_impass.reports import statistics as st

X = np.array([[3.0, 0.1], [1.0, 0.7], [2.0, 0.4], [9.0, 0.2]])
Y = np.array([[2.0, 0.3], [0.5, 0.4], [2.5, 0.9]])


def all_resamples(values):
    return np.array(list(itertools.product(values, repeat=len(values))))


def quantile_range(drawn, tail=2.5, slack=1.0):
    """Between which values a percentile of draws lies, up to their randomness."""
    return [np.percentile(drawn, (q - slack, q + slack)) for q in (tail, 100 - tail)]


def assert_is_interval_of(estimate, drawn):
    for end, (low, high) in zip(
        (estimate.low, estimate.high), quantile_range(drawn), strict=True
    ):
        assert low <= end <= high


@pytest.mark.parametrize("number", range(1, 14))
def test_iqm_is_scipys_trimmed_mean(number):
    values = np.random.default_rng(number).normal(size=number)
    assert st.interquartile_mean(values) == pytest.approx(trim_mean(values, 0.25))


def test_iqm_by_hand():
    assert st.interquartile_mean([1, 2, 30]) == 11
    assert st.interquartile_mean([100, 2, 4, -50]) == 3
    assert st.interquartile_mean([[5, 1, 3, 2, 4], [0, 0, 0, 0, 9]]).tolist() == [3, 0]


@pytest.mark.parametrize(
    ("number", "scored"), [(0, 0), (1, 1), (9, 1), (10, 1), (11, 2), (20, 2), (200, 20)]
)
def test_a_tenth_of_the_evaluations_is_scored_but_at_least_one(number, scored):
    assert st.num_scored(number) == scored
    values = np.arange(number, dtype=float)
    expected = values[number - scored :].mean() if number else np.nan
    assert st.mean_of_last(values) == pytest.approx(expected, nan_ok=True)


def test_a_score_is_not_the_best():
    assert st.mean_of_last([1_000.0] * 19 + [10.0]) == 505.0


@pytest.mark.parametrize("statistic", [st.mean, st.median, st.interquartile_mean])
def test_an_interval_is_that_of_all_resamples(statistic):
    values = np.array([3.0, 1.0, 2.0, 9.0, 4.0])
    found = st.estimate([values], statistic)
    assert found.value == statistic(values)
    assert_is_interval_of(found, statistic(all_resamples(values)))


def test_resamples_stay_within_their_environment():
    strata = [np.array([0.0, 0.1]), np.array([10.0, 10.4, 10.8])]
    found = st.estimate(strata, st.mean)
    drawn = [
        np.concatenate(pair).mean()
        for pair in itertools.product(*map(all_resamples, strata))
    ]
    assert found.value == pytest.approx(np.concatenate(strata).mean())
    assert_is_interval_of(found, drawn)
    # Mixed, some would hold next to none of one environment.
    assert found.low > 5.9


def test_the_probability_of_improvement_counts_ties_half():
    assert st.probability_of_improvement([1, 2], [1, 0]) == (0.5 + 1 + 1 + 1) / 4
    assert st.probability_of_improvement([5], [5]) == 0.5
    assert st.probability_of_improvement([1], [2, 3]) == 0.0


def test_improvement_is_averaged_over_environments():
    found = st.estimate_improvement(list(X.T), list(Y.T))
    by_env = [
        np.mean([(a > b) + 0.5 * (a == b) for a in x for b in y])
        for x, y in zip(X.T, Y.T, strict=True)
    ]
    assert found.value == pytest.approx(np.mean(by_env))


def test_the_interval_of_improvement_is_that_of_all_resamples():
    x, y = X[:3, 0], Y[:, 0]
    found = st.estimate_improvement([x], [y])
    drawn = [
        st.probability_of_improvement(a, b)
        for a, b in itertools.product(all_resamples(x), all_resamples(y))
    ]
    assert_is_interval_of(found, drawn)


def test_one_run_has_no_interval():
    assert st.estimate([[4.0]], st.mean) == st.Estimate(4.0)
    assert st.estimate_improvement([[4.0]], [[3.0]]) == st.Estimate(1.0)


def test_the_same_runs_give_the_same_interval():
    assert st.estimate(X.T, st.mean) == st.estimate(X.T, st.mean)


def test_a_band_is_the_interval_of_the_mean_at_each_point():
    low, high = st.bootstrap_band(X)
    for point in range(2):
        drawn = all_resamples(X[:, point]).mean(axis=1)
        ends = zip((low[point], high[point]), quantile_range(drawn), strict=True)
        assert all(below <= end <= above for end, (below, above) in ends)


def test_the_first_evaluation_at_or_above_a_threshold():
    assert st.first_at_or_above([1, 5, 3, 7], 5) == 1
    assert st.first_at_or_above([1, 5, 3, 7], 5.1) == 3
    assert st.first_at_or_above([1, 5], 8) is None
    assert st.first_at_or_above([], 8) is None


def test_never_counts_in_a_median():
    assert st.median_until([10.0, None, 30.0]) == 30.0
    assert st.median_until([10.0, 20.0]) == 15.0
    assert st.median_until([10.0, None]) is None
    assert st.median_until([None, None, 30.0]) is None


def test_normalised_scores():
    assert st.normalise([-100.0, 0.0, 200.0], -100.0, 100.0).tolist() == [0.0, 0.5, 1.5]
    assert st.normalise([7.0], 7.0, 7.0).tolist() == [0.5]


@pytest.fixture(scope="module")
def rliable():
    try:
        from rliable import library, metrics
    except Exception as error:
        # Version 1.2 does not even import beside pandas 3.
        pytest.skip(f"rliable cannot be imported here: {error!r}")
    return library, metrics


def test_rliable_agrees(rliable):
    library, metrics = rliable
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(7, 3)), rng.normal(0.5, size=(5, 3))
    x[0, 0] = y[0, 0]

    def ours_and_theirs(ours, scores, metric):
        values, intervals = library.get_interval_estimates(
            {"it": scores}, lambda *runs: np.array([metric(*runs)]), reps=5_000
        )
        assert ours.value == pytest.approx(values["it"][0])
        ends = [ours.low, ours.high]
        assert ends == pytest.approx(intervals["it"][:, 0].tolist(), abs=0.03)

    iqm = st.estimate(list(x.T), st.interquartile_mean)
    ours_and_theirs(iqm, x, metrics.aggregate_iqm)
    ours_and_theirs(st.estimate(list(x.T), st.mean), x, metrics.aggregate_mean)
    chance = st.estimate_improvement(list(x.T), list(y.T))
    ours_and_theirs(chance, (x, y), metrics.probability_of_improvement)
