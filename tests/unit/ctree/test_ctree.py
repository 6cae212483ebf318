"""What must hold for any conditional inference tree: partition, invariances, level, determinism, errors."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations

import numba
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from condshap.ctree import TrainingTable, Tree, association, eigen, grow_tree
from condshap.ctree import table as table_module

chi2_tail_kernel, diagonalise_kernel = association.chi2_tail, eigen.diagonalise


@numba.njit
def call_chi2_tail(x: float, df: int) -> float:
    return chi2_tail_kernel(x, df)


@numba.njit
def call_diagonalise(matrix: np.ndarray, values: np.ndarray, vectors: np.ndarray) -> None:
    diagonalise_kernel(matrix, values, vectors)


def draw(seed: int, n: int, M: int, rounding: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Dependent features, about half of them nominal with 2 to 6 levels (not all need occur), some rounded to ties."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, M)) + rng.normal(size=(n, 1)) * rng.uniform(0.3, 1.2, M)
    n_levels = np.where(rng.uniform(size=M) < 0.5, rng.integers(2, 7, M), 0)
    for f, levels in enumerate(n_levels):
        if levels:
            X[:, f] = rng.permutation(levels)[np.clip(np.round(X[:, f]) + levels // 2, 0, levels - 1).astype(int)]
        elif rounding:
            X[:, f] = np.round(X[:, f], 1)
        else:
            X[:, f] = np.exp(X[:, f]) * 10.0 ** rng.integers(-1, 2)
    return X, n_levels


def partition(tree: Tree) -> set[tuple[int, ...]]:
    return {tuple(tree.rows_of(leaf).tolist()) for leaf in range(tree.n_leaves)}


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 300),
    M=st.integers(2, 6),
    minsplit=st.integers(1, 40),
    minbucket=st.integers(1, 20),
    mincriterion=st.sampled_from([0.0, 0.5, 0.95]),
)
def test_leaves_partition_the_rows(
    seed: int, n: int, M: int, minsplit: int, minbucket: int, mincriterion: float
) -> None:
    X, n_levels = draw(seed, n, M, rounding=seed % 2 == 0)
    table = TrainingTable.build(X, n_levels)
    controls = {"minsplit": minsplit, "minbucket": minbucket, "mincriterion": mincriterion}
    tree = grow_tree(table, range(1, M), [0], **controls)
    assert sorted(tree.leaf_rows.tolist()) == list(range(n))
    assert tree.n_nodes == 2 * tree.n_leaves - 1
    assert tree.leaf_sizes.sum() == n
    if tree.n_leaves > 1:
        assert tree.leaf_sizes.min() >= minbucket
    for leaf in range(tree.n_leaves):
        rows = tree.rows_of(leaf)
        assert np.all(np.diff(rows) > 0)
        assert np.all(tree.leaf_of(X[rows]) == leaf)


@pytest.mark.parametrize("seed", range(8))
def test_the_order_of_the_rows_does_not_matter_without_ties(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 4)) + rng.normal(size=(300, 1))
    X[:, 3] = rng.integers(0, 3, 300) + (X[:, 3] > 1)
    shuffle = rng.permutation(300)
    levels = [0, 0, 0, 4]
    tree = grow_tree(TrainingTable.build(X, levels), [0, 3], [1, 2])
    shuffled = grow_tree(TrainingTable.build(X[shuffle], levels), [0, 3], [1, 2])
    assert partition(tree) == {tuple(sorted(shuffle[list(rows)].tolist())) for rows in partition(shuffled)}


def test_affine_maps_of_numbers_do_not_change_the_leaves() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4)) + rng.normal(size=(400, 1))
    tree = grow_tree(TrainingTable.build(X, [0] * 4), [0, 1], [2, 3])
    moved = grow_tree(TrainingTable.build(X * [3.0, 0.7, 5.0, 0.2] + [1.0, -2.0, 3.0, 4.0], [0] * 4), [0, 1], [2, 3])
    assert tree.n_leaves > 2
    assert partition(tree) == partition(moved)


@pytest.mark.parametrize("transform", [np.exp, np.arctan, lambda x: x**3])
def test_the_cut_of_a_chosen_predictor_is_invariant_to_increasing_maps_although_its_statistic_is_not(transform) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 2))
    X[:, 1] += np.abs(X[:, 0])
    moved = np.column_stack([transform(X[:, 0]), X[:, 1]])
    grown = [
        grow_tree(TrainingTable.build(rows, [0, 0]), [0], [1], mincriterion=0.0, minsplit=200, keep_tests=True)
        for rows in (X, moved)
    ]
    assert grown[0].n_leaves == 2
    assert partition(grown[0]) == partition(grown[1])
    assert grown[1].threshold[0] == transform(grown[0].threshold[:1])[0]
    assert grown[0].tests.statistics[0, 0] != pytest.approx(grown[1].tests.statistics[0, 0], rel=1e-3)


def test_names_of_levels_do_not_matter() -> None:
    X, n_levels = draw(11, 400, 5)
    n_levels[:] = [0, 5, 0, 3, 0]
    rng = np.random.default_rng(1)
    X[:, 1], X[:, 3] = np.digitize(X[:, 0], np.quantile(X[:, 0], [0.2, 0.5, 0.7, 0.9])), rng.integers(0, 3, 400)
    renamed = X.copy()
    renamed[:, 1], renamed[:, 3] = np.array([3, 0, 4, 1, 2])[X[:, 1].astype(int)], 2 - X[:, 3]
    trees = [grow_tree(TrainingTable.build(rows, n_levels), [1, 2], [0, 3]) for rows in (X, renamed)]
    assert trees[0].n_leaves > 2
    assert partition(trees[0]) == partition(trees[1])


def test_independent_data_are_split_in_about_five_percent_of_all_trees() -> None:
    """The family-wise error is 1 - mincriterion: 0.05, here over 2000 trees (standard error 0.005)."""
    rng = np.random.default_rng(7)
    n_split = 0
    for _ in range(2000):
        X = rng.normal(size=(150, 5))
        X[:, 4] = rng.integers(0, 3, 150)
        n_split += grow_tree(TrainingTable.build(X, [0, 0, 0, 0, 3]), [0, 1, 4], [2, 3]).n_leaves > 1
    assert 0.035 < n_split / 2000 < 0.065


def test_no_rows_to_test_gives_a_single_leaf() -> None:
    for n in (1, 2, 19):
        X = np.arange(2.0 * n).reshape(n, 2)
        tree = grow_tree(TrainingTable.build(X, [0, 0]), [0], [1])
        assert (tree.n_nodes, tree.n_leaves) == (1, 1)
        assert tree.rows_of(0).tolist() == list(range(n))
        assert tree.leaf_of(X).tolist() == [0] * n


def test_twenty_rows_are_tested_and_nineteen_are_not() -> None:
    for n, n_leaves in ((19, 1), (20, 2)):
        x = np.arange(float(n))
        assert grow_tree(TrainingTable.build(np.column_stack([x, x > 9]), [0, 0]), [0], [1]).n_leaves == n_leaves


@pytest.mark.parametrize("constant", [0.0, 0.1, 1234.567, 1e9 / 3.0])
def test_constant_columns_say_nothing(constant: float) -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=200)
    X = np.column_stack([x, np.full(200, constant), x + rng.normal(size=200), np.full(200, constant), np.zeros(200)])
    table = TrainingTable.build(X, [0, 0, 0, 0, 4])
    plain = grow_tree(table, [0], [2])
    with_constants = grow_tree(table, [0, 1, 4], [2, 3], mincriterion=0.95**3, keep_tests=True)
    assert plain.n_leaves > 1
    assert partition(plain) == partition(with_constants)
    assert with_constants.tests.dfs[0].tolist() == [1, 0, 0]
    assert grow_tree(table, [0, 2], [1, 4]).n_leaves == 1
    assert grow_tree(table, [1, 4], [0]).n_leaves == 1


def test_copies_and_sums_of_responses_change_neither_rank_nor_statistic() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(300, 3)) + rng.normal(size=(300, 1))
    more = np.column_stack([X, X[:, 1], X[:, 1] + X[:, 2], 2.0 * X[:, 2] - X[:, 1]])
    table = TrainingTable.build(more, [0] * 6)
    few, many = (grow_tree(table, [0], r, keep_tests=True, minsplit=300) for r in ([1, 2], [1, 2, 3, 4, 5]))
    assert few.tests.dfs[0, 0] == many.tests.dfs[0, 0] == 2
    np.testing.assert_allclose(many.tests.statistics[0], few.tests.statistics[0], rtol=1e-9)


def test_thirty_levels_are_no_problem() -> None:
    rng = np.random.default_rng(6)
    levels = rng.integers(0, 40, 2000)
    X = np.column_stack([levels, (levels % 3) + 0.5 * rng.normal(size=2000)])
    tree = grow_tree(TrainingTable.build(X, [40, 0]), [0], [1])
    leaf = tree.leaf_of(np.column_stack([np.arange(40.0), np.zeros(40)]))
    assert all(len(set(leaf[k::3])) >= 1 for k in range(3))
    assert not set(leaf[0::3]) & set(leaf[2::3])


def test_levels_absent_in_training_still_find_a_leaf() -> None:
    rng = np.random.default_rng(8)
    levels = rng.choice([0, 2, 3], 200)
    X = np.column_stack([levels, levels + rng.normal(size=200)])
    tree = grow_tree(TrainingTable.build(X, [6, 0]), [0], [1])
    assert tree.n_leaves > 1
    assert np.all(tree.leaf_of(np.column_stack([np.arange(6.0), np.zeros(6)])) >= 0)


def test_roots_computed_by_the_tree_itself_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    X, n_levels = draw(21, 300, 5)
    shared = TrainingTable.build(X, n_levels)
    monkeypatch.setattr(table_module, "MAX_SHARED_COLUMNS", 0)
    alone = TrainingTable.build(X, n_levels)
    assert alone.scatter.size == 0
    for known in combinations(range(5), 2):
        others = [f for f in range(5) if f not in known]
        trees = [grow_tree(table, known, others, keep_tests=True) for table in (shared, alone)]
        assert partition(trees[0]) == partition(trees[1])
        np.testing.assert_allclose(trees[0].tests.statistics[0], trees[1].tests.statistics[0], rtol=1e-10, atol=1e-10)


def test_threads_give_the_same_trees() -> None:
    X, n_levels = draw(31, 500, 6)
    table = TrainingTable.build(X, n_levels)
    coalitions = [c for size in range(1, 6) for c in combinations(range(6), size)]

    def grow(known: tuple[int, ...]) -> Tree:
        return grow_tree(table, known, [f for f in range(6) if f not in known])

    with ThreadPoolExecutor(4) as pool:
        threaded = list(pool.map(grow, coalitions))
    for tree, known in zip(threaded, coalitions, strict=True):
        again = grow(known)
        assert np.array_equal(tree.leaf_rows, again.leaf_rows)
        assert np.array_equal(tree.threshold, again.threshold, equal_nan=True)


def test_a_hundred_features_are_fine() -> None:
    rng = np.random.default_rng(9)
    X = rng.normal(size=(400, 100)) + rng.normal(size=(400, 1))
    tree = grow_tree(TrainingTable.build(X, [0] * 100), range(50), range(50, 100))
    assert tree.n_leaves > 1


def test_trees_and_tables_pickle() -> None:
    X, n_levels = draw(41, 200, 4)
    table = pickle.loads(pickle.dumps(TrainingTable.build(X, n_levels)))
    tree = pickle.loads(pickle.dumps(grow_tree(table, [0, 1], [2, 3])))
    assert np.array_equal(tree.leaf_of(X), grow_tree(table, [0, 1], [2, 3]).leaf_of(X))


@pytest.mark.parametrize("df", [1, 2, 3, 4, 5, 10, 31, 180, 1001])
def test_tails_of_chi_square_agree_with_scipy(df: int) -> None:
    x = np.concatenate([[1e-12, 1e-3, 0.5], np.linspace(0.01, 8.0, 60) * df, [1400.0]])
    ours = np.array([call_chi2_tail(value, df) for value in x])
    expected = scipy.stats.chi2.sf(x, df)
    np.testing.assert_allclose(ours, expected, rtol=1e-10, atol=1e-305)
    assert call_chi2_tail(0.0, df) == 1.0
    assert call_chi2_tail(5.0, 0) == 1.0
    assert call_chi2_tail(1e300, df) == 0.0


@pytest.mark.parametrize("q", [1, 2, 5, 20])
def test_eigenvalues_agree_with_numpy(q: int) -> None:
    rng = np.random.default_rng(q)
    root = rng.normal(size=(q, max(q - 1, 1)))
    matrix = root @ root.T
    values, vectors = np.empty(q), np.empty((q, q))
    call_diagonalise(matrix.copy(), values, vectors)
    np.testing.assert_allclose(np.sort(values), np.linalg.eigvalsh(matrix), atol=1e-12 * np.trace(matrix))
    np.testing.assert_allclose(vectors @ np.diag(values) @ vectors.T, matrix, atol=1e-12 * np.trace(matrix))


@pytest.mark.parametrize(
    ("X", "n_levels", "message"),
    [
        ([[1.0, 2.0]], [0], "one entry of n_levels per column"),
        ([[1.0, np.nan]], [0, 0], "row 0, column 1"),
        ([[1.0, 3.0]], [0, 3], "codes 0..2, got 3.0 in row 0, column 1"),
        ([[1.0, 0.5]], [0, 3], "codes 0..2, got 0.5"),
        (np.empty((0, 2)), [0, 0], "rows and columns"),
    ],
)
def test_tables_refuse_bad_rows(X, n_levels, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TrainingTable.build(X, n_levels)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"minbucket": 0}, "minbucket"),
        ({"minsplit": 0}, "minsplit"),
        ({"mincriterion": 1.0}, "mincriterion"),
        ({"predictors": []}, "at least one feature"),
        ({"predictors": [0, 3]}, "from 0 to 2"),
        ({"predictors": [0, 0]}, "different features"),
        ({"predictors": [0, 1]}, "must not overlap"),
    ],
)
def test_bad_arguments_are_refused(arguments, message: str) -> None:
    table = TrainingTable.build(np.random.default_rng(0).normal(size=(30, 3)), [0, 0, 0])
    with pytest.raises(ValueError, match=message):
        grow_tree(table, **{"predictors": [0], "responses": [1, 2], **arguments})


def test_new_rows_with_missing_numbers_or_unknown_levels_are_refused() -> None:
    x = np.repeat([0.0, 1.0, 2.0], 30)
    table = TrainingTable.build(np.column_stack([x, x == 1, np.zeros(90)]), [3, 0, 0])
    tree = grow_tree(table, [0], [1])
    for bad in (np.nan, 3.0, -1.0):
        with pytest.raises(ValueError, match="row 1 does not"):
            tree.leaf_of([[0.0, 0.0, 0.0], [bad, 0.0, 0.0]])
    with pytest.raises(ValueError, match="columns of the training table"):
        tree.leaf_of([0.0])
    with pytest.raises(IndexError, match="leaf must be"):
        tree.rows_of(tree.n_leaves)
