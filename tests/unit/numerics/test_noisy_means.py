"""Functions of noisy means lose the bias that noise brings, and their variances are those that simulations show."""

from __future__ import annotations

import numpy as np
import pytest

from condshap.numerics.noisy_means import absolute, log_odds, logit, logit_slope, minus_log, square

N = 400_000
FUNCTIONS = {
    "square": (square, lambda x: x**2, (0.7, 0.3)),
    "square at the target": (square, lambda x: x**2, (0.0, 0.3)),
    "absolute": (absolute, np.abs, (1.5, 0.3)),
    "log": (minus_log, lambda p: -np.log(p), (0.4, 0.05)),
    "logit": (logit, log_odds, (0.1, 0.02)),
    "logit above": (logit, log_odds, (0.85, 0.025)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_bias_of_noise_is_taken_off(name):
    # a mean over N draws is known to a five-hundredth of one deviation: false alarms at four of these are 1 in 16,000
    corrected, plain, (mean, deviation) = FUNCTIONS[name]
    noisy = np.random.default_rng(0).normal(mean, deviation, size=N)
    found, variances = corrected(noisy, np.full(N, deviation**2))
    left, before = found.mean() - plain(mean), plain(noisy).mean() - plain(mean)
    error = found.std() / np.sqrt(N)
    assert abs(left) < 4 * error + 0.1 * abs(before)
    assert 0.85 * found.var() < variances.mean() < 3.2 * found.var()  # never much too small; too large near the target


def test_absolute_distances_are_right_on_average_over_distances_that_straddle_the_kink():
    rng = np.random.default_rng(1)
    distance = rng.uniform(-2, 2, size=N)
    noisy = distance + rng.normal(0, 0.3, size=N)
    found, _ = absolute(noisy, np.full(N, 0.09))
    before = (np.abs(noisy) - np.abs(distance)).mean()
    assert before > 0.02
    assert abs((found - np.abs(distance)).mean()) < 4 * 0.3 / np.sqrt(N)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_without_noise_nothing_changes(name):
    corrected, plain, _ = FUNCTIONS[name]
    p = np.linspace(0.05, 0.95, 7)
    found, variances = corrected(p, np.zeros(7))
    np.testing.assert_allclose(found, plain(p), rtol=1e-14)
    assert not variances.any()


def test_slope_of_log_odds_is_their_derivative():
    p = np.array([0.01, 0.3, 0.8])
    np.testing.assert_allclose(logit_slope(p), (log_odds(p + 1e-7) - log_odds(p - 1e-7)) / 2e-7, rtol=1e-5)
    assert np.isfinite(logit_slope(np.array([0.0, 1.0]))).all()
