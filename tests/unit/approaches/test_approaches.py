import warnings

import numpy as np
import pytest

import condshap as cs
from condshap.approaches import Copula, Gaussian, Independence, available_approaches, find_approach
from condshap.coalitions import all_coalitions
from condshap.exceptions import ApproachError, CondShapWarning
from condshap.schema import FeatureSchema
from condshap.seeding import row_keys
from condshap.testing import GaussianTruth

RNG = np.random.default_rng(0)
COVARIANCE = np.full((4, 4), 0.6) + 0.4 * np.eye(4)
X = RNG.multivariate_normal(np.arange(4.0), COVARIANCE, size=500)
B = np.array([1.0, -2.0, 3.0, 0.5])


def linear(rows):
    return np.asarray(rows) @ B


def fitted(approach, train):
    return approach.fit(train, FeatureSchema.learn(train), plan=all_coalitions(train.shape[1]), seed=0)


def test_names_find_classes_and_misspelt_names_find_a_hint():
    assert {"copula", "gaussian", "independence"} <= set(available_approaches())
    assert find_approach("gaussian") is Gaussian
    with pytest.raises(ApproachError, match=r"got 'guassian'. Did you mean 'gaussian'\?"):
        find_approach("guassian")


def test_known_truth_and_linear_model_give_the_closed_form_answer():
    # 4 rows x 4 features at 4 standard errors: false alarm 1e-3 over seeds, this seed is fixed
    truth = GaussianTruth(np.arange(4.0), COVARIANCE)
    plan = all_coalitions(4)
    v = truth.exact_values(B, X[:4], plan.masks)
    v[0] = np.arange(4.0) @ B
    explanation = cs.explain(linear, X, X[:4], approach=truth, n_samples=1024, base_value=v[0, 0])
    from condshap.solvers import solve_shapley

    exact = solve_shapley(v[..., None], np.zeros((*v.shape, 1)), plan).values[..., 0]
    assert (np.abs(explanation.values - exact) < 4 * explanation.std_errors + 1e-9).all()
    assert (np.abs(explanation.values - exact) < 0.02).all()


def test_gaussian_is_equivariant_to_units():
    scale = np.array([1e3, 1e-3, 1.0, 1e6])
    masks = all_coalitions(4).masks[1:-1]
    keys = row_keys(X[:3])
    one = fitted(Gaussian(), X).sample(X[:3], masks, 32, keys=keys, seed=0).rows
    other = fitted(Gaussian(), X * scale).sample(X[:3] * scale, masks, 32, keys=keys, seed=0).rows
    np.testing.assert_allclose(other / scale, one, rtol=1e-9, atol=1e-9)


def test_copula_follows_monotone_transforms():
    masks = all_coalitions(4).masks[1:-1]
    keys = row_keys(X[:3])
    one = fitted(Copula(), X).sample(X[:3], masks, 32, keys=keys, seed=0).rows
    stretched = np.exp(X / 2)
    other = fitted(Copula(), stretched).sample(np.exp(X[:3] / 2), masks, 32, keys=keys, seed=0).rows
    # exact up to the interpolation between neighbouring order statistics
    np.testing.assert_allclose(np.log(other) * 2, one, atol=0.2)
    assert np.abs(np.log(other) * 2 - one).mean() < 1e-3


def test_copula_draws_stay_in_the_training_range_and_keep_the_margins():
    skewed = np.exp(X)
    draws = (
        fitted(Copula(), skewed).sample(skewed[:40], np.zeros((1, 4), bool), 256, keys=row_keys(X[:40]), seed=0).rows
    )
    assert (draws >= skewed.min(axis=0)).all()
    assert (draws <= skewed.max(axis=0)).all()
    quantiles = np.quantile(draws[..., 0].ravel(), [0.1, 0.5, 0.9])
    np.testing.assert_allclose(quantiles, np.quantile(skewed[:, 0], [0.1, 0.5, 0.9]), rtol=0.03)


def test_copula_handles_ties_and_rows_outside_the_range():
    train = np.column_stack([np.repeat([0.0, 1.0, 2.0], 40), RNG.normal(size=120), np.tile([0.0, 1.0], 60)])
    rows = np.array([[1.0, 0.0, 0.0], [-99.0, 99.0, 5.0]])
    explanation = cs.explain(lambda t: np.asarray(t).sum(axis=1), train, rows, approach="copula")
    assert np.isfinite(explanation.values).all()
    np.testing.assert_allclose(
        explanation.base_values + explanation.values.sum(axis=1), explanation.predictions, atol=1e-9
    )


@pytest.mark.parametrize("approach", ["gaussian", "copula"])
def test_collinear_features_are_shrunk_aloud_and_share_their_value(approach):
    base = RNG.normal(size=(300, 2))
    train = np.column_stack([base[:, 0], base[:, 0], base[:, 1]])
    with pytest.warns(CondShapWarning, match="singular because some features are linear combinations"):
        explanation = cs.explain(lambda t: np.asarray(t)[:, 0], train, train[:5], approach=approach, n_samples=256)
    # either copy tells everything: both get half; the third nothing
    half = (explanation.predictions - explanation.base_values) / 2
    np.testing.assert_allclose(explanation.values[:, 0], half, atol=0.05)
    np.testing.assert_allclose(explanation.values[:, 1], half, atol=0.05)
    np.testing.assert_allclose(explanation.values[:, 2], 0, atol=0.05)
    assert any("singular" in text for text in explanation.provenance.warnings)


@pytest.mark.parametrize("approach", ["gaussian", "copula", "independence"])
def test_a_constant_feature_gets_nothing(approach):
    train = np.column_stack([X[:, :2], np.full(500, 7.0)])
    with pytest.warns(CondShapWarning, match="feature 'x2' is constant"):
        explanation = cs.explain(lambda t: np.asarray(t).sum(axis=1), train, train[:4], approach=approach)
    assert (np.abs(explanation.values[:, 2]) <= 4 * explanation.std_errors[:, 2] + 1e-9).all()


def test_independence_with_all_rows_is_the_plain_average():
    explanation = cs.explain(
        lambda t: np.asarray(t)[:, 0] * np.asarray(t)[:, 1], X, X[:3], approach="independence", n_samples=500
    )
    coalitions, v = explanation.value_table.coalitions, explanation.value_table.values
    only_first = np.flatnonzero((coalitions == [True, False, False, False]).all(axis=1))[0]
    np.testing.assert_allclose(v[only_first], X[:3, 0] * X[:, 1].mean())
    assert (explanation.std_errors == 0).all()


def test_independence_takes_more_samples_than_rows_as_all_rows():
    all_rows, more = (cs.explain(linear, X, X[:2], approach="independence", n_samples=k) for k in (500, 9999))
    np.testing.assert_array_equal(all_rows.values, more.values)


def test_independence_passes_missing_values_to_models_that_take_them():
    from sklearn.ensemble import HistGradientBoostingRegressor

    gaps = np.where(RNG.random(X.shape) < 0.2, np.nan, X)
    model = HistGradientBoostingRegressor(max_iter=20).fit(gaps, linear(X))
    explanation = cs.explain(model, gaps, gaps[:5], approach="independence")
    assert np.isfinite(explanation.values).all()


def test_independence_uses_at_most_128_donors_by_default():
    assert cs.explain(linear, X, X[:1], approach="independence").provenance.n_samples == (128,)
    assert cs.explain(linear, X[:50], X[:1], approach="independence").provenance.n_samples == (50,)


def test_an_approach_object_is_copied_not_fitted():
    mine = Independence()
    cs.explain(linear, X, X[:1], approach=mine)
    assert not hasattr(mine, "rows_")


def test_something_that_is_no_approach_is_refused():
    with pytest.raises(ApproachError, match="object with fit and sample"):
        cs.explain(linear, X, X[:1], approach=42)


class MeanRegressor:
    """v(S) = mean training prediction, whatever is known: the simplest approach without samples."""

    name = "mean"
    supports = Independence.supports
    handles_missing = True

    def fit(self, X, predictions, schema, *, plan, seed):
        self.mean_ = predictions.mean(axis=0)
        return self

    def estimate(self, X, masks):
        return np.broadcast_to(self.mean_, (len(masks), len(X), len(self.mean_))).copy()


def test_approaches_without_samples_work_and_refuse_a_number_of_samples():
    from condshap.testing import check_approach

    check_approach(MeanRegressor())
    explanation = cs.explain(linear, X, X[:2], approach=MeanRegressor())
    gap = explanation.predictions - explanation.base_values
    np.testing.assert_allclose(explanation.values, np.tile(gap[:, None] / 4, (1, 4)))
    assert (explanation.std_errors == 0).all()
    with pytest.raises(cs.CondShapError, match="'mean' uses no samples"):
        cs.explain(linear, X, X[:2], approach=MeanRegressor(), n_samples=10)


def test_groups_are_players_and_a_group_of_everything_but_one_works():
    groups = {"pair": ["x0", "x3"], "second": ["x1"], "third": ["x2"]}
    explanation = cs.explain(linear, X, X[:3], approach="gaussian", groups=groups)
    assert explanation.player_names == ("pair", "second", "third")
    assert explanation.values.shape == (3, 3)
    assert explanation.membership == ((0, 3), (1,), (2,))
    one = cs.explain(linear, X, X[:3], approach="gaussian", groups={"all": ["x0", "x1", "x2", "x3"]})
    np.testing.assert_allclose(one.values[:, 0], one.predictions - one.base_values)


def test_single_feature_models_are_explained_by_that_feature():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        explanation = cs.explain(lambda t: np.asarray(t)[:, 0] ** 2, X[:, :1], X[:3, :1], approach="gaussian")
    np.testing.assert_allclose(explanation.values[:, 0], explanation.predictions - explanation.base_values)
    assert float(explanation.msev) == 0


def test_given_mean_and_covariance_are_used():
    mine = Gaussian(mean=np.arange(4.0), covariance=COVARIANCE)
    truth = GaussianTruth(np.arange(4.0), COVARIANCE)
    masks, keys = all_coalitions(4).masks[1:-1], row_keys(X[:2])
    one = fitted(mine, X).sample(X[:2], masks, 512, keys=keys, seed=0).rows.mean(axis=2)
    exact = truth.exact_values(B, X[:2], masks)
    np.testing.assert_allclose(one @ B, exact, atol=0.05)


def test_ledoit_wolf_shrinks_correlations_and_keeps_scales():
    few = X[:25]
    plain, shrunk = fitted(Gaussian(), few).model_, fitted(Gaussian(covariance="ledoit_wolf"), few).model_
    np.testing.assert_allclose(plain.scale, shrunk.scale)
    off = ~np.eye(4, dtype=bool)
    assert (np.abs(shrunk.correlation[off]) < np.abs(plain.correlation[off])).all()


def test_kernel_margins_give_nearly_the_same_answer_as_empirical_ones():
    skewed = np.exp(X)
    f = lambda rows: np.log(np.maximum(np.asarray(rows), 1e-3)) @ B  # noqa: E731
    kde, empirical = (cs.explain(f, skewed, skewed[:5], approach=Copula(margins=m)) for m in ("kde", "empirical"))
    assert np.abs(kde.values - empirical.values).mean() < 0.2 * np.abs(empirical.values).mean()


@pytest.mark.parametrize(
    ("approach", "message"),
    [
        (Gaussian(mean=[1.0]), "mean must be 4 finite numbers"),
        (Gaussian(covariance="best"), "covariance must be one of"),
        (Gaussian(covariance=np.eye(3)), r"shape \(4, 4\), got shape \(3, 3\)"),
        (Gaussian(covariance=-np.eye(4)), "positive semi-definite"),
        (Copula(margins="vine"), "margins must be one of"),
    ],
)
def test_bad_options_of_gaussian_and_copula_are_refused(approach, message):
    with pytest.raises(cs.CondShapError, match=message):
        cs.explain(linear, X, X[:1], approach=approach)
