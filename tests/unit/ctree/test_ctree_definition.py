"""Trees against the definition, spelled out without any shortcut: full Kronecker covariances, SVD, sums over rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from condshap.ctree import TrainingTable, Tree, grow_tree

TOL = 1e-10


def dummies(column: np.ndarray, n_levels: int) -> np.ndarray:
    return column[:, None] if n_levels == 0 else (column[:, None] == np.arange(n_levels)).astype(float)


def standardised(columns: np.ndarray) -> np.ndarray:
    """Columns of mean 0 and variance 1; what is constant, up to the rounding of its mean, becomes 0."""
    centred = columns - columns.mean(axis=0)
    spread = centred.std(axis=0)
    varies = spread > 1e-14 * np.abs(columns).max(axis=0)
    return np.where(varies, centred, 0.0) / np.where(varies, spread, 1.0)


def independence_test(G: np.ndarray, H: np.ndarray) -> tuple[float, int, float]:
    """Statistic, degrees of freedom and p-value from the covariance of the linear statistic vec(G'H).

    Responses and numeric predictors have variance 1 before small singular values are left out, so that units have no say.
    """
    n = len(H)
    H, G = standardised(H), standardised(G) if G.shape[1] == 1 else G
    E = H.mean(axis=0)
    V = (H - E).T @ (H - E) / n
    s = G.sum(axis=0)
    excess = (G.T @ H - np.outer(s, E)).T.ravel()
    sigma = n / (n - 1) * np.kron(V, (G - s / n).T @ (G - s / n))
    keep = np.diag(sigma) > 0
    if not keep.any():
        return 0.0, 0, 1.0
    u, values, vt = np.linalg.svd(sigma[np.ix_(keep, keep)])
    rank = int((values > TOL * values[0]).sum())
    d = excess[keep]
    statistic = float(((vt[:rank] @ d) * (u[:, :rank].T @ d) / values[:rank]).sum())
    return statistic, rank, float(chi2.sf(statistic, rank)) if rank else 1.0


def cut_scores(keys: np.ndarray, H: np.ndarray, minbucket: int) -> dict[float, float]:
    """Score of every admissible cut "key <= c" by summing the rows on its left anew."""
    n = len(H)
    E, V = H.mean(axis=0), H.var(axis=0)
    scores = {}
    for c in np.unique(keys)[:-1]:
        left = keys <= c
        w = int(left.sum())
        if max(minbucket, 0.01 * n + 1) <= w <= min(n - minbucket, 0.99 * n - 1):
            variance = V * (n * w - w * w) / (n - 1)
            z = np.abs(H[left].sum(axis=0) - w * E) / np.sqrt(np.where(variance > TOL, variance, np.inf))
            scores[c] = float(z.max())
    return scores


def best_split(column: np.ndarray, n_levels: int, H: np.ndarray, minbucket: int) -> tuple[float, np.ndarray] | None:
    """Best score and the rows that it separates (True on one side), None if nothing is admissible."""
    orders = [column]
    if n_levels:
        n, G = len(H), dummies(column, n_levels)
        counts = G.sum(axis=0)[:, None]
        variance = H.var(axis=0) * (n * counts - counts**2) / (n - 1)
        z = (G.T @ H - counts * H.mean(axis=0)) / np.sqrt(np.where(variance > TOL, variance, np.inf))
        # equal statistics share a rank; rounding makes them differ in the last digits only
        orders = [(z[:, j][:, None] > z[:, j] + 1e-9).sum(axis=1)[column.astype(int)] for j in range(H.shape[1])]
    best = None
    for keys in orders:
        for c, score in cut_scores(keys, H, minbucket).items():
            if score > 0 and (best is None or score > best[0] * (1 + 1e-12)):
                best = score, keys <= c
    return best


def slow_partition(
    X: np.ndarray,
    n_levels: np.ndarray,
    predictors: list[int],
    responses: list[int],
    mincriterion: float = 0.95,
    minsplit: int = 20,
    minbucket: int = 7,
) -> tuple[set[tuple[int, ...]], dict[tuple[int, ...], list[tuple[float, int, float]]]]:
    """Leaves as a set of tuples of rows, and the tests of every tested node by its rows."""
    leaves: set[tuple[int, ...]] = set()
    tests: dict[tuple[int, ...], list[tuple[float, int, float]]] = {}
    waiting = [np.arange(len(X))]
    while waiting:
        rows = waiting.pop()
        split = None
        if len(rows) >= minsplit:
            H = np.hstack([dummies(X[rows, f], n_levels[f]) for f in responses])
            found = [independence_test(dummies(X[rows, f], n_levels[f]), H) for f in predictors]
            tests[tuple(rows.tolist())] = found
            ranking = sorted(range(len(found)), key=lambda m: (-((1 - found[m][2]) ** len(found)), -found[m][0], m))
            for m in ranking[:2]:
                if (1 - found[m][2]) ** len(found) > mincriterion and split is None:
                    split = best_split(X[rows, predictors[m]], n_levels[predictors[m]], H, minbucket)
        if split is None:
            leaves.add(tuple(rows.tolist()))
        else:
            waiting += [rows[split[1]], rows[~split[1]]]
    return leaves, tests


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


def node_rows(tree: Tree) -> list[tuple[int, ...]]:
    """Training rows of every node."""
    rows: list[tuple[int, ...]] = [()] * tree.n_nodes
    for node in reversed(range(tree.n_nodes)):
        if tree.leaf[node] >= 0:
            rows[node] = tuple(tree.rows_of(tree.leaf[node]).tolist())
        else:
            rows[node] = tuple(sorted(rows[tree.left[node]] + rows[tree.right[node]]))
    return rows


@pytest.mark.parametrize("seed", range(60))
def test_trees_equal_those_of_the_definition(seed: int) -> None:
    rng = np.random.default_rng(1000 + seed)
    M, n = int(rng.integers(2, 8)), int(rng.integers(25, 500))
    X, n_levels = draw(seed, n, M, rounding=seed % 3 == 0)
    features = rng.permutation(M)
    size = int(rng.integers(1, M))
    predictors, responses = sorted(features[:size].tolist()), sorted(features[size:].tolist())
    controls = [{}, {"mincriterion": 0.5, "minsplit": 10, "minbucket": 3}][seed % 2]
    tree = grow_tree(TrainingTable.build(X, n_levels), predictors, responses, **controls, keep_tests=True)
    leaves, tests = slow_partition(X, n_levels, predictors, responses, **controls)
    assert partition(tree) == leaves
    assert tree.tests is not None
    for node, rows in enumerate(node_rows(tree)):
        if rows in tests:
            statistics, dfs, p_values = map(np.array, zip(*tests[rows], strict=True))
            assert tree.tests.dfs[node].tolist() == dfs.tolist()
            np.testing.assert_allclose(tree.tests.statistics[node], statistics, rtol=1e-7, atol=1e-9)
            np.testing.assert_allclose(tree.tests.p_values[node], p_values, rtol=1e-6, atol=1e-300)


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1.5e-6, 3e-7, 1e-12, 1e12])
def test_small_responses_of_nominal_predictors_count_whatever_their_units(scale: float) -> None:
    rng = np.random.default_rng(5)
    levels = rng.choice(5, 200, p=[0.5, 0.3, 0.1, 0.05, 0.05]).astype(float)
    X = np.column_stack([levels, scale * (levels + rng.normal(size=200))])
    tree = grow_tree(TrainingTable.build(X, [5, 0]), [0], [1], keep_tests=True)
    _, tests = slow_partition(X, np.array([5, 0]), [0], [1])
    assert tree.tests.dfs[0, 0] == 4 == tests[tuple(range(200))][0][1]
