from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import PoissonRegressor, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    SplineTransformer,
    StandardScaler,
)

import condshap as cs
from condshap.approaches import Gaussian
from condshap.approaches.vaeac import VAEAC
from condshap.exceptions import ModelError
from condshap.numerics.additive import AffineFunction
from condshap.numerics.curves import CurvedFunction, read_curves
from condshap.seeding import row_keys

rng = np.random.default_rng(0)
Z = 0.7 * rng.normal(size=(300, 1)) + rng.normal(size=(300, 4))
NUMBERS = pd.DataFrame(Z, columns=list("abcd"))
MIXED = NUMBERS.assign(
    c=pd.Categorical(np.digitize(Z[:, 2], [-0.5, 0.5]).astype(str)), n=np.round(3 * Z[:, 3]).astype(int)
)
y = np.sin(2 * Z).sum(axis=1) + (Z[:, 0] > 0.3) + 0.1 * rng.normal(size=300)
BINS = KBinsDiscretizer(4, quantile_method="averaged_inverted_cdf")
STUMPS = GradientBoostingRegressor(max_depth=1, random_state=0)
HIST = HistGradientBoostingRegressor(interaction_cst="no_interactions", max_iter=20)
SPLINE = make_pipeline(SplineTransformer(), Ridge()).fit(NUMBERS, y)
GAM = make_pipeline(
    make_column_transformer(
        (OneHotEncoder(), ["c"]), (SplineTransformer(), ["a", "n"]), (BINS, ["b"]), (StandardScaler(), ["d"])
    ),
    Ridge(),
).fit(MIXED, y)
SMALL = VAEAC(epochs=6, width=16, latent=4, scales=["standard", "normal_scores"], progress=False)


def fitted(model, X=NUMBERS, approach="independence", **options):
    return cs.Explainer(model, approach=approach, **options).fit(X)


@pytest.mark.parametrize(
    "model",
    [
        SplineTransformer(),
        SplineTransformer(degree=2, extrapolation="linear"),
        make_pipeline(PowerTransformer(), SplineTransformer(5)),
        make_pipeline(SimpleImputer(), MinMaxScaler(clip=True), StandardScaler()),
        BINS,
        STUMPS,
        HIST,
        RandomForestRegressor(10, max_depth=1, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_additive_models_are_read_to_rounding(model):
    model = model if hasattr(model, "predict") else make_pipeline(model, Ridge())
    explainer = fitted(model.fit(NUMBERS, y))
    assert isinstance(explainer.function_, CurvedFunction)
    rows = np.random.default_rng(1).normal(size=(5000, 4)) * 2  # some of them beyond what was read
    expected = model.predict(pd.DataFrame(rows, columns=list("abcd")))
    np.testing.assert_allclose(explainer.function_(rows)[:, 0], expected, atol=2e-9)


@pytest.mark.parametrize("name", ["xgboost", "lightgbm"])
def test_boosted_stumps_of_others_are_read(name):
    others = pytest.importorskip(name)
    shape = {"max_depth": 1} if name == "xgboost" else {"num_leaves": 2, "verbose": -1}
    make = others.XGBRegressor if name == "xgboost" else others.LGBMRegressor
    model = make(n_estimators=50, **shape).fit(NUMBERS, y)
    explainer = fitted(model)
    assert isinstance(explainer.function_, CurvedFunction)
    rows = np.random.default_rng(1).normal(size=(5000, 4)) * 2
    expected = model.predict(pd.DataFrame(rows, columns=list("abcd")))
    allowed = explainer.function_.allowed.max()  # of every feature; XGBoost adds in float32
    assert allowed < 3e-6
    np.testing.assert_allclose(explainer.function_(rows)[:, 0], expected, atol=4 * allowed, rtol=1e-13)
    deeper = make(n_estimators=50, **{key: 3 * value for key, value in shape.items()}).fit(NUMBERS, y)
    assert fitted(deeper).function_ is None


def test_steps_are_found_to_the_last_float():
    explainer = fitted(STUMPS.fit(NUMBERS, y))
    thresholds = [tree.tree_.threshold[0] for tree in STUMPS.estimators_[:, 0]]
    features = [tree.tree_.feature[0] for tree in STUMPS.estimators_[:, 0]]
    for j, threshold in set(zip(features, thresholds, strict=True)):
        rows = np.repeat(Z[:1], 41, axis=0)
        rows[:, j] = float(np.float32(threshold)) + np.arange(-20, 21) * np.spacing(np.float32(threshold)) / 8
        table = pd.DataFrame(rows, columns=list("abcd"))
        np.testing.assert_allclose(explainer.function_(rows)[:, 0], STUMPS.predict(table), atol=1e-12)
    assert sum(len(curve.edges) - 2 for curve in explainer.function_.curves) <= len(set(thresholds))


@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(SplineTransformer(), PolynomialFeatures(2, interaction_only=True), Ridge()),
        make_pipeline(SplineTransformer(), PoissonRegressor()),
        make_pipeline(
            QuantileTransformer(n_quantiles=50), Ridge()
        ),  # additive, but of as many pieces as it has quantiles
        GradientBoostingRegressor(max_depth=2, n_estimators=5, random_state=0),
        HistGradientBoostingRegressor(max_iter=5),
        HistGradientBoostingRegressor(max_iter=5, interaction_cst="no_interactions", loss="poisson"),
    ],
    ids=lambda model: type(model).__name__,
)
def test_other_models_are_not_read(model):
    explainer = fitted(model.fit(NUMBERS, np.exp(y / 10)))
    assert explainer.function_ is None
    assert explainer.knots_ is None


def test_users_vouch_for_functions_that_are_not_defined_everywhere():
    X = np.exp(NUMBERS)

    def model(X):
        if (X["a"] <= 0).any():
            raise ValueError("a must be positive")
        return np.log(X["a"]) + (X["b"] > 1) * 2.0 - np.sqrt(X["c"])

    assert fitted(model, X).function_ is None
    exact = fitted(model, X, additive=False, n_samples=300).explain(X[:5])
    read = fitted(model, X, additive=True).explain(X[:5])
    np.testing.assert_allclose(read.value_table.values, exact.value_table.values, atol=1e-9)


def test_linear_functions_that_are_vouched_for_stay_linear():
    assert isinstance(fitted(lambda X: X["a"] - 2 * X["b"], additive=True).function_, AffineFunction)


STEPS = np.array([-0.4, 0.3])


def squares_and_steps(X):
    x = np.asarray(X)
    return 3.0 + x[:, 0] ** 2 - 2 * x[:, 1] ** 3 + (x[:, 2] > STEPS[0]) - 4.0 * (x[:, 3] > STEPS[1])


def test_gaussian_gives_the_closed_form_without_error():
    mean, covariance = np.array([1.0, 0.5, 0.0, -1.0]), np.full((4, 4), 0.6) + 0.4 * np.eye(4)
    rows = np.concatenate([Z[:4], [[30.0, -20.0, 0.1, 9.0]]])  # the last one far beyond what was read
    explanation = fitted(squares_and_steps, Z, Gaussian(mean, covariance), additive=True).explain(rows)
    table = explanation.value_table
    exact = np.empty((14, len(rows)))
    for c, mask in enumerate(table.coalitions[1:-1]):
        k, u = np.flatnonzero(mask), np.flatnonzero(~mask)
        across = np.linalg.solve(covariance[np.ix_(k, k)], covariance[np.ix_(k, u)])
        m = rows.copy()
        m[:, u] = mean[u] + (rows[:, k] - mean[k]) @ across
        s = np.zeros(4)
        s[u] = np.sqrt(np.diag(covariance[np.ix_(u, u)] - covariance[np.ix_(u, k)] @ across))
        cubes = m[:, 1] ** 3 + 3 * m[:, 1] * s[1] ** 2
        steps = [norm.cdf((m[:, 2 + i] - STEPS[i]) / max(s[2 + i], 1e-300)) for i in range(2)]
        exact[c] = 3.0 + m[:, 0] ** 2 + s[0] ** 2 - 2 * cubes + steps[0] - 4 * steps[1]
    np.testing.assert_allclose(table.values[1:-1], exact, rtol=1e-9, atol=1e-8)
    np.testing.assert_allclose(
        explanation.values.sum(axis=1) + explanation.base_values, squares_and_steps(rows), rtol=1e-9
    )
    assert (table.std_errors == 0).all()
    assert table.n_evaluations == 5


@pytest.mark.parametrize("sd", [1e-3, 0.05, 1.0])
def test_expectations_of_curves_in_narrow_and_wide_pieces(sd):
    def ask(feature, x):
        return np.stack([np.exp(x) + 2 * (x > 0.3), np.abs(x)], axis=1)

    allowed = np.full(2, 1e-12)
    curves = read_curves(ask, [np.linspace(-2, 2, 9)], allowed, most=10**6)
    function = CurvedFunction(np.zeros(2), tuple(curves), (None,), np.full((1, 2), np.nan), ask, allowed)
    for mean in (-0.1, 0.301, 1.9):
        found = np.zeros((1, 2))
        function.add_expected(0, np.array([mean]), sd, found)
        bends = np.unique(np.clip([-9, 0, 9, -mean / sd, (0.3 - mean) / sd], -9, 9))
        for o in range(2):
            parts = [
                quad(lambda z, o=o: ask(0, np.array([mean + sd * z]))[0, o] * norm.pdf(z), a, b, epsabs=1e-13)[0]
                for a, b in pairwise(bends)
            ]
            np.testing.assert_allclose(found[0, o], sum(parts), atol=1e-11)


@pytest.mark.parametrize(
    ("approach", "model", "X"),
    [
        ("independence", GAM, MIXED),
        ("ctree", GAM, MIXED),
        ("independence", STUMPS.fit(NUMBERS, y), NUMBERS),
        ("ctree", SPLINE, NUMBERS),
        ("empirical", SPLINE, NUMBERS),
    ],
)
def test_all_donors_give_what_the_model_gives(approach, model, X):
    called = fitted(model, X, approach, additive=False, n_samples=300).explain(X[:6])
    read = fitted(model, X, approach).explain(X[:6])
    np.testing.assert_allclose(read.value_table.values, called.value_table.values, atol=1e-9)
    assert (read.std_errors == 0).all()
    assert read.value_table.n_evaluations == 6 < called.value_table.n_evaluations


def test_copula_draws_margins_with_honest_errors():
    # 100 differences of phi in standard errors, of which the largest normal one exceeds 4.5 in 0.07 % of all seeds
    called, read = (fitted(SPLINE, NUMBERS, "copula", additive=a).explain(NUMBERS[:25]) for a in (False, "auto"))
    apart = np.abs(read.values - called.values) / np.hypot(read.std_errors, called.std_errors)
    assert apart.max() < 4.5
    assert (read.std_errors**2).mean() < 0.9 * (called.std_errors**2).mean()


def test_vaeac_expects_of_curves_what_it_draws():
    # 2 coalitions x 3 rows: differences of two independent means, of which the largest exceeds 4.5 in 0.004 % of all seeds
    explainer = fitted(GAM, MIXED, SMALL)
    approach, X, function = explainer.parts_[0].approach, explainer.schema_.encode(MIXED[:3]), explainer.function_
    approach.votes_ = np.array([0.3, *np.full(len(approach.companions_), 0.3 / len(approach.companions_)), 0.4])
    masks = np.array([[True, False, False, False, True], [False, True, True, False, False]])
    drawn = approach.sample(X, masks, 2048, keys=row_keys(X), seed=1)
    expected = approach.expect(X, masks, 2048, function=function, keys=row_keys(X), seed=2)
    f = (function(drawn.rows)[..., 0], expected.values[..., 0])
    w = drawn.weights / drawn.weights.sum(axis=2, keepdims=True)
    means, variances = [(w * one).sum(axis=2) for one in f], [one.var(axis=2) for one in f]
    assert (np.abs(means[0] - means[1]) < 4.5 * np.sqrt(sum(variances) / 2048)).all()
    assert variances[1].sum() < 0.5 * variances[0].sum()


def test_gaps_are_what_the_model_makes_of_them():
    gappy = NUMBERS.assign(a=NUMBERS["a"].where(Z[:, 1] < 1))
    model = HIST.fit(gappy, y + 3 * gappy["a"].isna())
    read, called = (fitted(model, gappy, additive=a, n_samples=300).explain(gappy[:20]) for a in ("auto", False))
    assert gappy[:20].isna().any(axis=None)
    assert read.value_table.n_evaluations == 20
    np.testing.assert_allclose(read.value_table.values, called.value_table.values, atol=1e-9)


def test_gaps_that_the_model_refuses_are_not_guessed():
    gappy = NUMBERS.assign(a=NUMBERS["a"].where(Z[:, 1] < 1))
    explainer = fitted(SPLINE, gappy, base_value=0.0)
    with pytest.raises(ModelError, match="needs complete rows, got missing"):
        explainer.explain(NUMBERS[:2])


def test_vaeac_keeps_or_fills_gaps_of_rows():
    row = NUMBERS[:1].assign(a=np.nan)
    for fill in (True, False):  # the model takes gaps, but the user may want them filled
        explainer = fitted(HIST.fit(NUMBERS, y), NUMBERS, VAEAC(**{**SMALL.get_params(), "fill_missing": fill}))
        approach, X = explainer.parts_[0].approach, explainer.schema_.encode(row)
        mask = np.array([[True, True, False, False]])
        drawn = explainer.function_(approach.sample(X, mask, 2048, keys=row_keys(X), seed=1).rows)
        found = approach.expect(X, mask, 2048, function=explainer.function_, keys=row_keys(X), seed=2).values
        # two independent means: 4.5 standard errors are exceeded in 0.0007 % of all seeds
        assert abs(found.mean() - drawn.mean()) < 4.5 * np.sqrt((found.var() + drawn.var()) / 2048)


def column_by_column(X):
    """A sum of splines that rounds every row by itself, which pipelines that end in a product of matrices do not."""
    total = np.zeros(len(X))
    for knot, column in zip((-0.5, 0.1, 0.4, 1.1), X.to_numpy().T, strict=True):
        bend = np.maximum(column - knot, 0.0)
        total += (0.3 - knot) * column + 0.2 * column * column - 0.4 * bend * bend * bend
    return total


@pytest.mark.parametrize(
    "approach", ["gaussian", "copula", "ctree", SMALL], ids=["gaussian", "copula", "ctree", "vaeac"]
)
def test_blocks_and_other_rows_do_not_matter(approach):
    explainer = fitted(column_by_column, NUMBERS, approach, n_samples=16, additive=True)
    assert isinstance(explainer.function_, CurvedFunction)
    rows = NUMBERS[:9].copy()
    rows.iloc[3] *= 20
    whole, alone = explainer.explain(rows), explainer.explain(rows[7:8])
    explainer.memory_budget = 2**14
    pieces = explainer.explain(rows)
    assert np.array_equal(whole.value_table.values, pieces.value_table.values)
    assert np.array_equal(whole.value_table.values[:, 7:8], alone.value_table.values)
    for name in ("values", "std_errors"):
        assert np.array_equal(getattr(whole, name), getattr(pieces, name))
        assert np.array_equal(getattr(whole, name)[7:8], getattr(alone, name))


def test_of_a_model_that_rounds_by_its_batch_only_its_own_predictions_differ():
    explainer = fitted(SPLINE, NUMBERS, "gaussian")
    whole, alone = explainer.explain(NUMBERS[:9]), explainer.explain(NUMBERS[7:8])
    assert np.array_equal(whole.value_table.values[:-1, 7:8], alone.value_table.values[:-1])
    np.testing.assert_allclose(whole.predictions[7:8], alone.predictions, rtol=8 * np.finfo(float).eps)
    np.testing.assert_allclose(whole.values[7:8], alone.values, rtol=0, atol=8 * np.finfo(float).eps)


@pytest.mark.parametrize("approach", ["gaussian", "copula", "ctree"])
def test_a_saved_explainer_reads_the_model_again(approach, tmp_path):
    explainer = fitted(STUMPS.fit(NUMBERS, y), NUMBERS, approach)
    explainer.save(tmp_path / "explainer")
    loaded = cs.load_explainer(tmp_path / "explainer", STUMPS)
    assert np.array_equal(loaded.explain(NUMBERS[:3]).values, explainer.explain(NUMBERS[:3]).values)
    assert loaded.explain(NUMBERS[:3]).value_table.n_evaluations == 3


@pytest.mark.parametrize(
    "options", [{"target_error": 0.02}, {"n_coalitions": "auto"}, {"groups": {"ab": ["a", "b"], "cd": ["c", "d"]}}]
)
def test_other_options_work_on_curves(options):
    explainer = fitted(SPLINE, NUMBERS, "copula", **options)
    explanation = explainer.explain(NUMBERS[:4])
    total = explanation.values.sum(axis=1) + explanation.base_values
    np.testing.assert_allclose(total, SPLINE.predict(NUMBERS[:4]), atol=1e-9)
    assert explanation.value_table.n_evaluations == 4
    if "target_error" in options:
        assert explanation.std_errors.max() <= 0.02
    if "n_coalitions" in options:
        finer = explainer.refine(explanation, tolerance=0.01)
        assert finer.values.shape == (4, 4)
