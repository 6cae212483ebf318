"""Units have no say: tables whose numbers are multiplied by any positive factors give the same trees and the same values."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from condshap.ctree import TrainingTable, grow_tree

N_LEVELS = [0, 0, 0, 4, 0]


def tree_table(seed):
    """Dependent columns: numbers, one of them skewed and one a copy of another in other units, and levels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(160, 5)) + 1.2 * rng.normal(size=(160, 1))
    X[:, 1] = np.exp(2 * X[:, 1])
    X[:, 3] = np.clip(np.round(X[:, 3]) + 2, 0, 3)
    X[:, 4] = 0.37 * X[:, 0]
    return X


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 40), st.lists(st.floats(-12, 12), min_size=5, max_size=5), st.integers(1, 3))
def test_trees_do_not_change_with_the_units(seed, powers, n_known):
    factors = np.where(np.array(N_LEVELS) > 0, 1.0, 10.0 ** np.array(powers))
    X, features = tree_table(seed), np.random.default_rng(seed).permutation(5)
    grown = [
        grow_tree(TrainingTable.build(rows, N_LEVELS), np.sort(features[:n_known]), np.sort(features[n_known:]))
        for rows in (X, X * factors)
    ]
    plain, moved = grown
    for name in ("feature", "left", "right", "leaf_rows", "first_row"):
        assert np.array_equal(getattr(plain, name), getattr(moved, name)), name
    numeric = np.isfinite(plain.threshold)
    moved_thresholds = plain.threshold[numeric] * factors[plain.feature[numeric]]
    assert np.array_equal(moved.threshold[numeric], moved_thresholds)  # observed values, so the very product
