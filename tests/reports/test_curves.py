"""A curve never shows what no run measured."""

import numpy as np
import pytest

from rllib_impass.reports.curves import _spread, mean_curve


def line(start, stop, slope=1.0, number=11):
    x = np.linspace(start, stop, number)
    return x, slope * x


def test_runs_that_measured_at_different_places_are_averaged():
    curve = mean_curve([line(1, 10), line(2, 10, slope=3.0, number=5)])
    np.testing.assert_allclose(curve.mean, 2.0 * curve.x)
    assert (curve.x[0], curve.x[-1]) == (2.0, 10.0)
    assert curve.is_whole.all()
    # Of two, the interval is from the one to the other.
    np.testing.assert_allclose(curve.low, curve.x)
    np.testing.assert_allclose(curve.high, 3.0 * curve.x)


def test_where_a_run_has_ended_those_that_remain_are_averaged_and_marked():
    runs = [line(0, 5, slope=9.0), line(0, 10), line(0, 10, slope=3.0)]
    curve = mean_curve(runs)
    early = curve.x <= 5
    np.testing.assert_array_equal(curve.is_whole, early)
    assert 5.0 in curve.x
    np.testing.assert_allclose(curve.mean[early], 13 / 3 * curve.x[early])
    np.testing.assert_allclose(curve.mean[~early], 2.0 * curve.x[~early])
    assert curve.x[-1] == 10


def test_a_single_run_that_remains_has_no_band():
    curve = mean_curve([line(0, 5), line(0, 10)])
    assert np.isnan(curve.low[curve.x > 5]).all()
    assert np.isfinite(curve.low[curve.x <= 5]).all()


def test_runs_that_end_about_together_end_with_the_first():
    curve = mean_curve([line(0, 97), line(0, 99, slope=5.0), line(0, 100)])
    assert curve.x[-1] == 97
    assert curve.is_whole.all()


def test_one_run_is_shown_as_it_is():
    x, y = np.array([1.0, 5.0, 6.0]), np.array([3.0, 1.0, 2.0])
    curve = mean_curve([(x, y), (np.array([]), np.array([]))])
    assert (curve.x.tolist(), curve.mean.tolist()) == (x.tolist(), y.tolist())
    assert np.isnan(curve.low).all()


def test_a_run_with_one_point_does_not_stop_the_others():
    curve = mean_curve([line(1, 10), (np.array([2.0]), np.array([100.0]))])
    assert curve.mean[0] == (2 + 100) / 2
    np.testing.assert_allclose(curve.mean[1:], curve.x[1:])
    assert not curve.is_whole[1:].any()


def test_of_nothing_there_is_no_curve():
    assert mean_curve([(np.array([]), np.array([]))]) is None


@pytest.mark.parametrize(
    "places", [[0.1, 0.11, 0.12, 0.9], [0.97, 0.98, 0.99, 1.0], [0.0, 0.0, 0.0, 0.0]]
)
def test_names_at_the_end_do_not_overlap(places):
    spread = _spread(places, 0.2)
    assert (np.diff(spread) >= 0.2 - 1e-9).all()
    assert min(spread) >= 0
    assert max(spread) <= 1
