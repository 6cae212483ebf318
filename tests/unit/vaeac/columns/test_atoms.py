"""Numbers that take few values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import condshap as cs
from condshap.seeding import row_keys
from condshap.vaeac import Networks, VAEACConfig
from condshap.vaeac.columns.atoms import Atoms

RNG = np.random.default_rng(0)
N = 600
CYLINDERS = np.where(RNG.random(N) < 0.02, 5.0, RNG.choice([4.0, 6.0, 8.0], N, p=[0.4, 0.4, 0.2]))
YEAR = RNG.choice([1999.0, 2008.0], N)
SIZE = 0.6 * CYLINDERS + 0.5 * RNG.normal(size=N)
X = np.column_stack([SIZE, YEAR, CYLINDERS])


@pytest.fixture(scope="module")
def networks():
    return Networks(VAEACConfig(epochs=60)).fit(X, [0, 0, 0], seed=0)


def test_only_seen_values_are_drawn_and_as_often_as_they_occur(networks):
    drawn = networks.sample(X[:100], np.zeros((1, 3), dtype=bool), 64)[0].reshape(-1, 3)
    for j in (1, 2):
        values, counts = np.unique(X[:, j], return_counts=True)
        found, times = np.unique(drawn[:, j], return_counts=True)
        assert np.isin(found, values).all()
        shares = dict(zip(found, times / len(drawn), strict=True))
        np.testing.assert_allclose([shares.get(v, 0.0) for v in values], counts / N, atol=0.08)
    assert len(np.unique(drawn[:, 0])) > 1000


def test_a_value_that_no_training_row_had_counts_as_the_nearest_and_stays(networks):
    rows = X[:2].copy()
    rows[:, 2] = [4.0, 4.3]
    rows[:, 1] = 1999.0
    mask = np.array([[False, True, True]])
    drawn = networks.sample(rows, mask, 16, keys=np.zeros(2, dtype=np.uint64))
    assert (drawn[0, 1, :, 2] == 4.3).all()
    assert np.array_equal(drawn[0, 0, :, 0], drawn[0, 1, :, 0])


def test_gaps_are_filled_with_seen_values(networks):
    rows = X[:3].copy()
    rows[1, 2] = np.nan
    filled = networks.sample(rows, np.ones((1, 3), dtype=bool), 32, fill_missing=True)
    assert np.isin(filled[0, 1, :, 2], [4, 5, 6, 8]).all()
    assert np.isnan(networks.sample(rows, np.ones((1, 3), dtype=bool), 4)[0, 1, :, 2]).all()


def test_many_values_or_a_declared_support_leave_a_column_as_it_is():
    counts = np.zeros(3, dtype=np.intp)
    assert Atoms.learn(X, counts, None).columns == [1, 2]
    assert Atoms.learn(X[:30], counts, None).columns == []  # too few rows to tell
    support = np.full((2, 3), np.nan)
    support[:, 1] = 1990, 2030
    assert Atoms.learn(X, counts, support).columns == [2]
    assert Atoms.learn(np.column_stack([X, np.arange(N) % 15]), np.zeros(4, dtype=np.intp), None).columns == [1, 2]


def test_they_are_stored(networks):
    again = Networks.from_state(*networks.to_state())
    mask = np.array([[True, False, False]])
    assert np.array_equal(again.sample(X[:4], mask, 16), networks.sample(X[:4], mask, 16))


def test_expectations_of_a_linear_model_agree_with_draws():
    """Both are means over the same votes; seeds are fixed, so that a difference of 0.15 is a fault and no chance."""
    table = pd.DataFrame(X, columns=["size", "year", "cylinders"])
    model = LinearRegression().fit(table, 2 * SIZE + CYLINDERS + 0.1 * YEAR)
    explainer = cs.Explainer(model, approach=cs.approaches.VAEAC(epochs=10), n_samples=4096).fit(table)
    approach, rows = explainer.parts_[0].approach, X[:5]
    mask = np.array([[True, False, False], [False, True, False]])
    asked = {"keys": row_keys(rows), "seed": 0}
    drawn = approach.sample(rows, mask, 4096, **asked)
    expected = approach.expect(rows, mask, 4096, function=explainer.function_, **asked)
    means = [
        np.average(part, axis=2, weights=None if some.weights is None else some.weights)
        for part, some in ((explainer.function_(drawn.rows)[..., 0], drawn), (expected.values[..., 0], expected))
    ]
    np.testing.assert_allclose(means[0], means[1], atol=0.15)
