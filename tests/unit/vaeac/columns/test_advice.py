"""What a linear model tells the networks."""

from __future__ import annotations

import numpy as np
import pytest

from condshap.vaeac import Networks, VAEACConfig
from condshap.vaeac.columns.advice import LinearModel, coefficients, few_columns
from condshap.vaeac.columns.atoms import Atoms
from condshap.vaeac.columns.learned import Columns
from condshap.vaeac.training.steps import kl_weight

COVARIANCE = np.array([[1.0, 0.9, 0.3], [0.9, 2.0, 0.1], [0.3, 0.1, 1.0]])


def encoded(n=500, covariance=COVARIANCE, seed=0):
    rng = np.random.default_rng(seed)
    return rng.multivariate_normal(np.zeros(len(covariance)), covariance, size=n)[None].astype(np.float32)


def learned(x, missing=None):
    n, D = x.shape[1:]
    return LinearModel.learn(x, np.zeros((n, D), dtype=bool) if missing is None else missing, np.arange(D))


def test_coefficients_are_those_of_regression():
    known = np.array([[True, False, True]])
    expected = np.linalg.solve(COVARIANCE[np.ix_([0, 2], [0, 2])], COVARIANCE[[0, 2], 1])
    found = coefficients(COVARIANCE, known)[0]
    np.testing.assert_allclose(found[1, [0, 2]], expected)
    assert not found[[0, 2]].any()
    assert not found[:, 1].any()


def test_factors_and_coefficients_make_the_conditional_covariance():
    model, known = learned(encoded()), np.array([[False, True, False], [False, False, False]])
    tables = model.tables(known, 0)
    for table, factor, mask in zip(tables, model.factors(known, tables, 0, 3), known, strict=True):
        hidden = np.flatnonzero(~mask)
        expected = (model.covariances[0] - table @ model.covariances[0])[np.ix_(hidden, hidden)]
        np.testing.assert_allclose((factor @ factor.T)[np.ix_(hidden, hidden)], expected, atol=1e-6)
        assert not factor[mask].any()


def states(n=800, n_levels=60, spread=0.02, seed=7):
    """Rows (n, 4) of a state and of two numbers that hardly vary within it, and of one that has nothing to do with it."""
    rng = np.random.default_rng(seed)
    state, centre = rng.integers(0, n_levels, n), rng.normal(size=(n_levels, 2))
    return np.column_stack([state, centre[state] + spread * rng.normal(size=(n, 2)), rng.normal(size=n)])


def test_coefficients_of_many_columns_are_those_of_few(monkeypatch):
    rng = np.random.default_rng(0)
    root, known = rng.normal(size=(120, 150)), rng.random((5, 120)) < np.array([[0.0], [0.1], [0.5], [0.9], [1.0]])
    found = coefficients(root @ root.T, known)
    monkeypatch.setattr("condshap.vaeac.columns.advice.WIDE", 200)
    np.testing.assert_allclose(found, coefficients(root @ root.T, known), atol=1e-8)


def test_shares_of_many_levels_keep_the_covariance_a_covariance():
    X = states(400, spread=0.5)
    X[::7, 0], X[::5, 1] = np.nan, np.nan
    config = VAEACConfig(scales=("standard",)).resolve(len(X), X.shape[1], has_continuous=True)
    whole = Columns.learn(X, Atoms.none(np.array([60, 0, 0, 0])), config, None).linear
    assert whole.shares.shape[1] == 2
    assert (whole.shares[:, 0] <= whole.shares[:, 1]).all()
    assert np.linalg.eigvalsh(whole.covariances).min() > 0
    few = whole.without_many_levels()
    np.testing.assert_array_equal(few.covariances, whole.covariances[:, :3, :3])
    assert learned(encoded()).without_many_levels() is None


def test_sets_of_features_decide_how_many_columns_there_may_be():
    """Tables of 4096 sets for 300 columns would take 3 GB; made again and again, training would take hours."""
    features = np.repeat(np.arange(12), [1, 1, 1, 1, *[38] * 8])
    assert len(few_columns(features, 2**7)) == 4 + 8 * 38
    assert len(few_columns(features, 2**12)) == 4 + 3 * 38
    assert len(few_columns(features, 2**60)) == 4 + 3 * 38
    wide = np.repeat(np.arange(23), [*[1] * 20, 30, 100, 100])
    assert len(few_columns(wide, 1000)) == 20 + 30
    assert len(few_columns(wide[wide != 20], 1000)) == 20 + 100


def test_numbers_of_a_state_are_known_with_it():
    """Slope of drawn means over those of 60 states: 0.2 and 0.4 when 60 levels had no advice."""
    X = states(700)
    networks = Networks(VAEACConfig(scales=("standard", "normal_scores"), epochs=40)).fit(X, [60, 0, 0, 0], seed=0)
    assert networks.fitted_.shape.n_advice == 63
    rows = X[np.unique(X[:, 0], return_index=True)[1]]
    drawn = networks.sample(rows, np.array([[True, False, False, False]]), 64)[0].mean(axis=1)
    for j in (1, 2):
        means = np.array([X[X[:, 0] == state, j].mean() for state in rows[:, 0]])
        assert np.polyfit(means, drawn[:, j], 1)[0] > 0.85


def test_noise_is_shrunk_and_strong_dependence_is_not():
    noise = np.random.default_rng(1).normal(size=(1, 60, 8)).astype(np.float32)
    assert learned(noise).shares[0] >= 0.4
    duplicates = np.full((4, 4), 0.998) + 0.002 * np.eye(4)
    assert learned(encoded(1000, duplicates)).shares[0] <= 0.003


@pytest.mark.parametrize(("correlation", "is_much"), [(0.998, True), (0.0, False)])
def test_shared_information_tells_duplicates_from_independent_columns(correlation, is_much):
    covariance = np.full((4, 4), correlation) + (1 - correlation) * np.eye(4)
    assert (learned(encoded(800, covariance)).shared_information() > 0.04) is is_much


def test_shared_information_of_two_normals_is_their_mutual_information():
    covariance = np.array([[1.0, 0.8], [0.8, 1.0]])
    model = LinearModel(np.zeros((1, 2)), covariance[None], np.arange(2), np.arange(2), np.zeros(1))
    # only one of the four sets hides both, and there are four hidden numbers in them
    assert model.shared_information() == pytest.approx(-np.log(1 - 0.8**2) / 2 / 4)


def test_shared_information_sees_levels_that_go_with_a_number_and_not_the_columns_of_one_feature():
    rng = np.random.default_rng(3)
    level = rng.integers(0, 3, 900)
    features = np.array([0, 1, 1, 1])

    def inform(number):
        columns = np.column_stack([number, np.eye(3)[level]]).astype(np.float32)
        return LinearModel.learn(columns[None], np.zeros((900, 2), dtype=bool), features).shared_information()

    assert inform(rng.normal(size=900)) < 0.005
    number = level + 0.3 * rng.normal(size=900)
    R2 = np.var([0, 1, 2]) / (np.var([0, 1, 2]) + 0.09)
    assert inform(number) == pytest.approx(-np.log(1 - R2) / 2 / 4, rel=0.1)


def columns_of(X):
    config = VAEACConfig().resolve(len(X), X.shape[1], has_continuous=True)
    found = Columns.learn(X, Atoms.learn(X, np.zeros(X.shape[1], dtype=int), None), config, None)
    return found, config


def test_many_features_of_one_factor_share_much_though_known_ones_soon_tell_it():
    X = encoded(1000, np.full((12, 12), 0.8) + 0.2 * np.eye(12))[0].astype(float)
    found, config = columns_of(X)
    assert found.linear.shared_information() < 0.04
    assert found.linear.shared_information(known=False) > 0.2
    assert found.share_much(X, config)


def test_grades_that_go_with_each_other_share_much_as_numbers_if_not_as_levels():
    hidden = encoded(600, np.full((9, 9), 0.5) + 0.5 * np.eye(9))[0].astype(float)
    ill = hidden.mean(axis=1, keepdims=True) > 0.3
    noise = 2 * np.random.default_rng(1).normal(size=hidden.shape)
    X = np.clip(np.rint(np.where(ill, 5 + 5 * hidden + noise, 1.2 + 0.6 * np.abs(hidden))), 1, 10)
    found, config = columns_of(X)
    assert len(found.atoms.columns) == 9
    assert found.linear.shared_information() < 0.04
    assert found.linear.shared_information(known=False) < 0.2
    assert found.share_much(X, config)
    apart = np.random.default_rng(0).permuted(X, axis=0)
    assert not columns_of(apart)[0].share_much(apart, config)


def test_a_level_of_many_does_not_dilute_what_numbers_share():
    """Correlation of two numbers given the level, 0.5 in rows: it was 0.03 in draws."""
    rng = np.random.default_rng(0)
    numbers = rng.multivariate_normal(np.zeros(3), np.full((3, 3), 0.5) + 0.5 * np.eye(3), size=1000)
    X = np.column_stack([rng.integers(0, 48, 1000), numbers])
    networks = Networks(VAEACConfig(scales=("standard", "normal_scores"))).fit(X, [48, 0, 0, 0], seed=0)
    linear = networks.fitted_.columns.linear
    assert linear.shares[0].tolist() == [0.003, 1.0]  # numbers as if there were no level, which says nothing
    assert linear.shared_information() < 0.04 < linear.without_many_levels().shared_information()
    assert networks.fitted_.config.kl_warmup > 0
    drawn = networks.sample(X[:50], np.array([[True, False, False, False]]), 64)[0].reshape(-1, 4)
    assert np.corrcoef(drawn[:, 2], drawn[:, 3])[0, 1] > 0.35


def test_the_weight_of_the_divergence_grows_to_one():
    assert [kl_weight(epoch, 0) for epoch in (1, 5)] == [1.0, 1.0]
    assert [kl_weight(epoch, 2) for epoch in (1, 2, 3, 9)] == [0.0, 0.5, 1.0, 1.0]


def test_columns_that_repeat_each_other_are_drawn_together():
    """Correlation of two duplicates drawn with nothing known; 0.14 without masks that hide everything."""
    rng = np.random.default_rng(2)
    common = rng.normal(size=(600, 1))
    X = np.concatenate([common + 0.03 * rng.normal(size=(600, 3)), rng.normal(size=(600, 1))], axis=1)
    networks = Networks(VAEACConfig(scales=("standard", "normal_scores"), epochs=100)).fit(X, [0] * 4, seed=0)
    assert networks.fitted_.config.kl_warmup == 30  # few steps an epoch, so 30 % of the epochs
    drawn = networks.sample(X[:50], np.zeros((1, 4), dtype=bool), 64)[0].reshape(-1, 4)
    assert np.corrcoef(drawn[:, 0], drawn[:, 1])[0, 1] > 0.9


def test_columns_that_share_little_need_no_warm_up():
    X = np.random.default_rng(3).normal(size=(500, 4))
    assert Networks(VAEACConfig(epochs=5)).fit(X, [0] * 4).fitted_.config.kl_warmup == 0
    assert (
        Networks(VAEACConfig(epochs=5)).fit(X[:200], [0] * 4).fitted_.config.kl_warmup == 2
    )  # few rows get one anyway


def test_the_papers_networks_take_no_advice():
    config = VAEACConfig.paper()
    assert (config.advice, config.companions, config.kl_warmup) == (False, False, 0)
    X = np.random.default_rng(3).normal(size=(60, 3))
    networks = Networks.paper(epochs=6, n_restarts=2, restart_epochs=1).fit(X, [0] * 3)
    assert networks.fitted_.columns.linear is None
    assert networks.fitted_.shape.n_advice == 0


def test_a_feature_with_thousands_of_levels_goes_without_advice():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=3000), rng.integers(0, 1500, 3000), rng.integers(0, 3, 3000)])
    networks = Networks(VAEACConfig(epochs=1, scales=("standard",))).fit(X, [0, 1500, 3])
    assert networks.fitted_.shape.n_advice == 4
    assert networks.linear_names == ()
    drawn = networks.sample(X[:2], np.array([[False, True, False]]), 4)
    assert drawn.shape == (1, 2, 4, 3)
    again = Networks.from_state(*networks.to_state())
    assert np.array_equal(again.sample(X[:2], np.array([[False, True, False]]), 4), drawn)
