import numpy as np
import pytest

from condshap.numerics.nearest import pick_nearest, pick_weighted

RNG = np.random.default_rng(0)
POINTS, QUERIES = RNG.normal(size=(300, 3)), RNG.normal(size=(40, 3))
SQUARES = ((QUERIES[:, None] - POINTS[None]) ** 2).sum(axis=2)
SHARES = (np.arange(2000) + 0.5) / 2000


def frequencies(pick, query):
    found = pick(np.repeat(query[None], len(SHARES), axis=0), SHARES)
    return np.bincount(found, minlength=len(POINTS)) / len(SHARES)


@pytest.mark.parametrize("k", [1, 5, 25, 300])
def test_each_of_the_nearest_is_picked_as_often(k):
    for query, squares in zip(QUERIES[:5], SQUARES, strict=False):
        found = frequencies(lambda rows, shares: pick_nearest(POINTS.T.copy(), rows, k, shares), query)
        near = np.argsort(squares)[:k]
        assert set(np.flatnonzero(found)) == set(near)
        np.testing.assert_allclose(found[near], 1 / k, atol=1 / 2000)


def test_points_that_are_as_near_as_the_last_one_count_too():
    points = np.array([[0.0, 1.0, -1.0, 5.0]])
    found = pick_nearest(points, np.zeros((300, 1)), 2, (np.arange(300) + 0.5) / 300)
    assert np.bincount(found).tolist() == [100, 100, 100]


def test_a_gap_is_near_to_all():
    points = np.array([[0.0, 10.0], [3.0, 0.0]])
    found = pick_nearest(points, np.array([[np.nan, 0.1], [0.1, np.nan]]), 1, np.zeros(2))
    assert found.tolist() == [1, 0]
    assert pick_nearest(points, np.full((2, 2), np.nan), 1, np.array([0.1, 0.9])).tolist() == [0, 1]


@pytest.mark.parametrize("eta", [0.5, 0.95, 1.0])
@pytest.mark.parametrize("rate", [0.05, 2.0, 50.0, 5000.0])
@pytest.mark.parametrize("most", [3, 60, 300])
def test_points_are_picked_by_weight_up_to_the_share(eta, rate, most):
    for query, squares in zip(QUERIES[:5], SQUARES, strict=False):
        weights = np.exp((squares.min() - squares) * rate)
        order = np.argsort(squares)
        before = np.cumsum(weights[order]) - weights[order]
        kept = order[(before < eta * weights.sum()) & (np.arange(300) < most)]
        wanted = np.zeros(300)
        wanted[kept] = weights[kept] / weights[kept].sum()
        found = frequencies(lambda rows, shares: pick_weighted(POINTS.T.copy(), rows, rate, eta, most, shares), query)
        np.testing.assert_allclose(found, wanted, atol=1.1 / 2000)


@pytest.mark.parametrize(
    "pick",
    [
        lambda rows, shares: pick_nearest(POINTS.T.copy(), rows, 5, shares),
        lambda rows, shares: pick_weighted(POINTS.T.copy(), rows, 2.0, 0.95, 60, shares),
    ],
)
def test_equal_queries_get_what_each_of_them_gets_alone(pick):
    queries = np.repeat(QUERIES, 5, axis=0)[RNG.permutation(5 * len(QUERIES))]
    queries[::7, 1] = np.nan
    shares = RNG.random(len(queries))
    alone = [pick(queries[i : i + 1], shares[i : i + 1])[0] for i in range(len(queries))]
    assert pick(queries, shares).tolist() == alone
    assert pick(queries[:0], shares[:0]).tolist() == []


def test_nothing_known_leaves_all_points_alike():
    points, queries = np.zeros((0, 50)), np.zeros((200, 0))
    shares = (np.arange(200) + 0.5) / 200
    assert np.bincount(pick_nearest(points, queries, 5, shares)).tolist() == [4] * 50
    assert np.bincount(pick_weighted(points, queries, 1.0, 1.0, 50, shares)).tolist() == [4] * 50
