"""Intervals from held-out rows hold as often as they say, and widths of networks do not change bits."""

from __future__ import annotations

import numpy as np
import pytest

from condshap.amortised.calibration import LEVEL, NORMAL, Answered, Calibration, relative_error, signs_of_error
from condshap.amortised.network import TILE, Members


def answered(n, seed):
    """Errors that grow with the value, of two players and one output."""
    rng = np.random.default_rng(seed)
    found = rng.normal(size=(n, 2, 1)) * [[1.0], [5.0]]
    exact = found + rng.standard_t(4, size=found.shape) * (0.05 + 0.2 * np.abs(found))
    signs = signs_of_error(found, rng.random(found.shape), rng.random(n))
    return Answered(exact, found, signs, np.ones((n, 2), dtype=bool))


def test_intervals_hold_as_often_as_they_say_whatever_the_distribution():
    # quantiles from 2000 rows, judged on 20,000: standard error of the coverage 0.7 %, bounds at 4 of them
    calibration, new = Calibration.learn(answered(1000, 0), answered(2000, 1)), answered(20_000, 2)
    inside = np.abs(new.found - new.exact) <= NORMAL * calibration.std_errors(new.signs)
    assert np.abs(inside.mean(axis=0) - LEVEL).max() < 0.028


def test_intervals_hold_for_small_and_large_values_alike():
    calibration, new = Calibration.learn(answered(1000, 0), answered(2000, 1)), answered(20_000, 2)
    inside = (np.abs(new.found - new.exact) <= NORMAL * calibration.std_errors(new.signs))[:, 1, 0]
    large = np.abs(new.found[:, 1, 0]) > 5
    assert abs(inside[large].mean() - inside[~large].mean()) < 0.05


def test_too_few_rows_give_no_interval():
    few = answered(8, 0)
    assert np.isnan(Calibration.learn(answered(50, 1), few).quantiles).all()


def test_relative_error_is_a_ratio_of_means_with_an_interval():
    exact = np.array([[[1.0], [-3.0]], [[2.0], [2.0]]])
    error = relative_error(exact + 0.2, exact)
    assert float(error) == pytest.approx(0.1)
    low, high = error.interval()
    assert low <= float(error) <= high
    assert "0.1" in repr(error)


def test_relative_error_of_nothing_is_none():
    zeros = np.zeros((5, 2, 1))
    assert float(relative_error(zeros, zeros)) == 0.0
    assert float(relative_error(zeros + 1, zeros)) == np.inf


@pytest.mark.parametrize(("n_inputs", "n_outputs"), [(3, 1), (7, 5), (16, 10), (25, 7), (40, 33)])
def test_a_row_has_the_same_bits_in_every_place_of_a_tile(n_inputs, n_outputs):
    members = Members.new(n_inputs, n_outputs, seed=0)
    members.weights[-1].uniform_(-1, 1)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(TILE + 100, n_inputs)).astype(np.float32)
    order = rng.permutation(len(x))
    for whole, moved in zip(members.answer(x), members.answer(x[order]), strict=True):
        np.testing.assert_array_equal(moved, whole[order])
    np.testing.assert_array_equal(members.answer(x[77:78])[0], members.answer(x)[0][77:78])
