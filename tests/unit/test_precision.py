import numpy as np
import pytest

import condshap as cs
from condshap import precision
from condshap.approaches.base import ALL_KINDS, DrawnRows
from condshap.coalitions import all_coalitions, make_plan
from condshap.numerics.shapley import wls_operator
from condshap.precision import allocate_samples, sensitivities
from condshap.seeding import stream_words


def test_influence_with_all_coalitions_is_that_of_the_regression():
    plan = all_coalitions(5)
    A, _ = wls_operator(plan.masks, plan.weights)
    np.testing.assert_allclose(sensitivities(plan), (A**2).sum(axis=0), atol=1e-12)


def test_small_coalitions_get_most_samples():
    plan = all_coalitions(10)
    K = allocate_samples(plan)
    by_size = [int(K[plan.sizes == s][0]) for s in range(1, 10)]
    assert by_size[0] == 256
    assert min(by_size) == 16
    assert K[plan.interior].mean() < 25
    assert all(k & (k - 1) == 0 for k in by_size)


def test_samples_depend_on_size_only_and_are_bounded_on_average():
    plan = make_plan(25, 1000, seed=0)
    K = allocate_samples(plan)
    for size in np.unique(plan.sizes[plan.interior]):
        assert len(np.unique(K[plan.sizes == size])) == 1
    assert K[plan.interior].mean() <= 64


def test_one_unknown_player_gets_half_among_many_coalitions_only():
    by_players = {P: all_coalitions(P) for P in (5, 10)}
    K = {P: allocate_samples(plan)[plan.sizes == P - 1] for P, plan in by_players.items()}
    assert set(K[10]) == {32}
    assert set(K[5]) == {128}


def test_at_ten_players_a_hundred_rows_take_at_most_two_million_model_rows():
    X = np.random.default_rng(0).normal(size=(200, 10))
    asked = 0

    def model(x):
        nonlocal asked
        asked += len(x)
        return np.sin(x.sum(axis=1))

    cs.Explainer(model, approach="gaussian", progress=False).fit(X).explain(X[:100])
    assert 1_900_000 < asked <= 2_000_000


def test_one_player_needs_no_samples():
    assert len(allocate_samples(all_coalitions(1))) == 2


class PlainDraws:
    """Independent standard normals, each drawn once or twice, that leave their error to be measured."""

    name, supports, handles_missing, needs_model = "plain", ALL_KINDS, False, False

    def __init__(self, times=1):
        self.times = times

    def fit(self, X, schema, *, plan, seed):
        return self

    def sample(self, X, masks, n_samples, *, keys, seed):
        words = stream_words(seed, self.name, masks, keys)
        rows = np.empty((len(masks), len(X), n_samples, X.shape[1]))
        for c, r in np.ndindex(words.shape):
            rng = np.random.default_rng(int(words[c, r]))
            drawn = rng.normal(size=(n_samples // self.times, X.shape[1])).repeat(self.times, axis=0)
            rows[c, r] = np.where(masks[c], X[r], drawn)
        return DrawnRows(rows, error_factor=None)


@pytest.mark.parametrize("times", [1, 2])
def test_the_pilot_measures_the_variance_of_independent_and_of_repeated_draws(times):
    # 4 cells of 64 pairs: the mean factor has a standard error of about 0.09 times itself; 4 of these, fixed seed
    X = np.random.default_rng(0).normal(size=(200, 5))
    explainer = cs.Explainer(lambda x: x @ np.arange(1.0, 6.0), approach=PlainDraws(times), n_samples=32).fit(X)
    factors = explainer.error_factors_[1:-1]
    assert factors.mean() == pytest.approx(times, rel=0.36)


def test_the_pilot_finds_that_nets_are_better_than_independent_draws():
    X = np.random.default_rng(0).normal(size=(200, 5))
    explainer = cs.Explainer(lambda x: x @ np.arange(1.0, 6.0), approach="gaussian", n_samples=64).fit(X)
    assert (explainer.error_factors_[1:-1] < 0.2).all()
    assert (explainer.error_factors_[1:-1] > 0).all()


def test_samples_of_a_size_half_way_between_powers_of_two_do_not_hang_on_rounding(monkeypatch):
    # P = 9: pairs have equal influence, so sizes 3 and 6 differ by a factor of exactly sqrt(2)
    plan = make_plan(9, 60, seed=0)
    usual, exact = allocate_samples(plan), precision.sensitivities
    assert usual[plan.sizes == 6][0] == 128
    for seed in range(20):
        noise = 1 + 1e-14 * np.random.default_rng(seed).normal(size=len(plan.masks))
        monkeypatch.setattr(precision, "sensitivities", lambda plan, noise=noise: exact(plan) * noise)
        assert np.array_equal(allocate_samples(plan), usual)
