import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn.linear_model as lm
from scipy.stats import truncnorm
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder, PolynomialFeatures, StandardScaler
from sklearn.svm import LinearSVR

import condshap as cs
from condshap.approaches import Gaussian
from condshap.approaches.vaeac import VAEAC
from condshap.exceptions import ModelError, OptionError
from condshap.models.recognise import is_certainly_additive, is_certainly_linear
from condshap.numerics.additive import AffineFunction
from condshap.seeding import row_keys
from condshap.testing import GaussianTruth

rng = np.random.default_rng(0)
COMMON = rng.normal(size=(300, 1))
Z = 0.7 * COMMON + rng.normal(size=(300, 4))
NUMBERS = pd.DataFrame(Z, columns=list("abcd"))
MIXED = pd.DataFrame(
    {
        "a": Z[:, 0],
        "b": np.exp(Z[:, 1]),
        "c": pd.Categorical(np.digitize(Z[:, 2], [-0.5, 0.5]).astype(str)),
        "n": np.round(3 * Z[:, 3]).astype(int),
        "d": pd.Categorical(np.where(Z.sum(axis=1) > 0, "yes", "no")),
    }
)
y = Z @ [1.0, -2.0, 3.0, 0.5] + 7 + rng.normal(size=300)
ENCODED = make_column_transformer(
    (OneHotEncoder(drop="first"), ["c"]), (OrdinalEncoder(), ["d"]), (StandardScaler(), ["a"]), remainder="passthrough"
)
PIPELINE = make_pipeline(ENCODED, StandardScaler(with_mean=False), lm.Ridge()).fit(MIXED, y)


class Squared(lm.LinearRegression):
    def predict(self, X):
        return super().predict(X) ** 2


def fitted(model, X=NUMBERS, approach="independence", **options):
    return cs.Explainer(model, approach=approach, **options).fit(X)


@pytest.mark.parametrize(
    "model",
    [
        *(lm.LinearRegression(), lm.RidgeCV(), lm.LassoCV(), lm.ElasticNet(), lm.BayesianRidge(), lm.HuberRegressor()),
        *(lm.SGDRegressor(random_state=0), LinearSVR(random_state=0), lm.TheilSenRegressor(random_state=0)),
        make_pipeline(StandardScaler(), lm.Lasso(alpha=0.01)),
        make_pipeline(ColumnTransformer([("one", MinMaxScaler(), ["d", "a"]), ("no", "drop", ["b"])]), lm.Ridge()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_linear_regressors_are_read_to_rounding(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        explainer = fitted(model.fit(NUMBERS, y))
    far = NUMBERS * 10
    np.testing.assert_allclose(explainer.function_(far.to_numpy())[:, 0], model.predict(far), rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize(
    "model",
    [
        *(lm.PoissonRegressor(), Squared(), RandomForestRegressor(5, random_state=0)),
        make_pipeline(PolynomialFeatures(2), lm.Ridge()),
        make_pipeline(make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["a"])), lm.Ridge()),
        make_pipeline(ColumnTransformer([("one", PolynomialFeatures(2), ["a", "b"])]), lm.Ridge()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_other_models_are_not_read(model):
    assert fitted(model.fit(NUMBERS, np.exp(y / 10))).function_ is None


@pytest.mark.parametrize("step", [MinMaxScaler(clip=True), OneHotEncoder(handle_unknown="ignore")])
def test_steps_that_are_not_linear_are_known_by_name(step):
    explainer = fitted(
        make_pipeline(make_column_transformer((step, ["a"])), lm.Ridge()).fit(NUMBERS, y), additive=False
    )
    assert not is_certainly_linear(explainer.predictor_, explainer.schema_)
    assert is_certainly_additive(explainer.predictor_, explainer.schema_) == isinstance(step, MinMaxScaler)
    explainer.predictor_.model[0].transformers_[0][1].clip = False
    assert is_certainly_linear(explainer.predictor_, explainer.schema_) == isinstance(step, MinMaxScaler)


def test_columns_beside_those_of_a_pipeline_do_not_pass_for_its_levels():
    table = MIXED[["c", "n", "a"]]  # the pipeline counts n, which it encodes, as its first column
    steps = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["n"]), (StandardScaler(), ["a"]))
    explainer = fitted(make_pipeline(steps, lm.Ridge()).fit(table[["n", "a"]], y), table, additive=False)
    assert not is_certainly_additive(explainer.predictor_, explainer.schema_)


def test_a_method_put_on_a_model_is_respected():
    model = lm.LinearRegression().fit(NUMBERS, y)
    model.predict = lambda X: np.exp(X.to_numpy()).sum(axis=1)
    assert fitted(model).function_ is None


def test_levels_and_numbers_of_a_pipeline_are_read_in_any_order_of_columns():
    explainer = fitted(PIPELINE, MIXED[["d", "n", "c", "b", "a"]])
    rows = explainer.schema_.encode(MIXED[["d", "n", "c", "b", "a"]])
    np.testing.assert_allclose(explainer.function_(rows)[:, 0], PIPELINE.predict(MIXED), rtol=1e-10)


def test_an_encoder_for_which_a_gap_is_a_level_is_not_read():
    gappy = MIXED[["a", "c"]].assign(c=MIXED["c"].where(Z[:, 0] < 1).astype(object))
    encode = make_column_transformer((OneHotEncoder(), ["c"]), remainder="passthrough")
    model = make_pipeline(encode, lm.Ridge()).fit(gappy, y)
    assert fitted(model, gappy).function_ is None


def test_torch_layers_are_read_in_their_own_precision():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    layer = torch.nn.Linear(4, 2)
    found = fitted(layer, Z).function_(Z)
    np.testing.assert_allclose(found, layer(torch.tensor(Z).float()).detach().numpy(), atol=1e-5)


def test_what_the_user_vouches_for_is_tested():
    explainer = fitted(lambda X: X.to_numpy() @ [1.0, 0.0, -1.0, 2.0], additive=True)
    np.testing.assert_allclose(explainer.function_.slopes[:, 0], [1, 0, -1, 2], atol=1e-12)
    assert fitted(lambda X: X.to_numpy() @ [1.0, 0.0, -1.0, 2.0]).function_ is None
    for almost in (lambda X: X["a"] + 1e-3 * X["b"] * X["c"], lambda X: np.abs(X["a"] + 1e-2 * X["b"])):
        with pytest.raises(OptionError, match=r"additive=True needs a model that is a sum .* times what rounding"):
            fitted(almost, additive=True)
    with pytest.raises(OptionError, match=r"too many jumps or bends for 32,768 predictions per feature"):
        fitted(lambda X: np.sin(3e4 * X["a"]), additive=True)
    with pytest.raises(OptionError, match="additive must be one of"):
        fitted(PIPELINE, MIXED, additive="yes")


def test_gaussian_gives_the_closed_form_without_error_or_model():
    mean, covariance = np.array([1.0, 2.0, 0.0, -1.0]), np.full((4, 4), 0.6) + 0.4 * np.eye(4)
    model = lm.LinearRegression().fit(Z, y)
    explanation = fitted(model, Z, Gaussian(mean, covariance)).explain(Z[:7])
    table = explanation.value_table
    exact = GaussianTruth(mean, covariance).exact_values(model.coef_, Z[:7], table.coalitions) + model.intercept_
    np.testing.assert_allclose(table.values[1:-1], exact[1:-1], atol=1e-10)
    assert (table.std_errors == 0).all()
    assert table.n_evaluations == 7
    assert explanation.provenance.n_samples == (1,)


@pytest.mark.filterwarnings("ignore:feature 'x4' is constant")
@pytest.mark.parametrize("approach", ["gaussian", "copula"])
def test_constant_and_collinear_features_do_no_harm(approach):
    X = np.column_stack([Z, np.full(300, 3.0)])
    model = lm.LinearRegression().fit(X, y)
    by_means, by_samples = (fitted(model, X, approach, additive=a, n_samples=4096) for a in ("auto", False))
    np.testing.assert_allclose(by_means.explain(X[:3]).values, by_samples.explain(X[:3]).values, atol=5e-3)


def test_independence_means_all_training_rows():
    exact = fitted(PIPELINE, MIXED, additive=False, n_samples=len(MIXED)).explain(MIXED[:6])
    means = fitted(PIPELINE, MIXED).explain(MIXED[:6])
    np.testing.assert_allclose(means.value_table.values, exact.value_table.values, rtol=1e-10)
    assert means.value_table.n_evaluations == 6
    assert (means.std_errors == 0).all()


@pytest.mark.parametrize(("approach", "X"), [("empirical", NUMBERS), ("ctree", MIXED)])
def test_samples_of_other_approaches_are_the_same_without_calls(approach, X):
    model = PIPELINE if X is MIXED else lm.LinearRegression().fit(X, y)
    called, read = (fitted(model, X, approach, additive=a, n_samples=300).explain(X[:5]) for a in (False, "auto"))
    np.testing.assert_allclose(read.value_table.values, called.value_table.values, rtol=1e-9)
    np.testing.assert_allclose(read.std_errors, called.std_errors, rtol=1e-6, atol=1e-9)
    assert read.value_table.n_evaluations == 5 < called.value_table.n_evaluations


def test_models_that_are_not_linear_keep_their_numbers():
    forest = RandomForestRegressor(5, random_state=0).fit(NUMBERS, y)
    auto, off = (fitted(forest, NUMBERS, "gaussian", additive=a).explain(NUMBERS[:4]) for a in ("auto", False))
    assert np.array_equal(auto.values, off.values)
    assert np.array_equal(auto.std_errors, off.std_errors)


def test_samples_with_gaps_are_refused():
    X = NUMBERS.where(Z < 2)
    model = lm.LinearRegression().fit(NUMBERS, y)
    with pytest.raises(ModelError, match="needs complete rows, got missing or infinite values in samples of approach"):
        fitted(model, X, base_value=0.0).explain(NUMBERS[:2])


SMALL = VAEAC(epochs=6, width=16, latent=4, scales=["standard", "normal_scores"], progress=False)


def indicator(n_levels):
    """Function with one output per number and per level: the rows themselves, one-hot."""
    widths = [max(1, n) for n in n_levels]
    place = np.split(np.eye(sum(widths)), np.cumsum(widths)[:-1])
    slopes = np.stack([own[0] * (n == 0) for n, own in zip(n_levels, place, strict=True)])
    return AffineFunction(np.zeros(sum(widths)), slopes, tuple(own if n else None for n, own in zip(n_levels, place)))


def compare_means(approach, schema, X, masks, K):
    """Means of draws less expectations, (C, R, O), and the variance of both together; random numbers are not shared."""
    function = indicator([len(feature.levels or ()) for feature in schema.features])
    drawn = approach.sample(X, masks, K, keys=row_keys(X), seed=1)
    expected = approach.expect(X, masks, K, function=function, keys=row_keys(X), seed=2)
    assert expected.values.shape == (len(masks), len(X), K, len(function.intercept))
    weights = np.full(drawn.rows.shape[:3], 1 / K) if drawn.weights is None else drawn.weights
    weights = weights / weights.sum(axis=2, keepdims=True)
    means = [np.einsum("crk,crko->cro", weights, f) for f in (function(drawn.rows), expected.values)]
    spreads = [f.var(axis=2) for f in (function(drawn.rows), expected.values)]
    assert spreads[1].sum() < 0.8 * spreads[0].sum()
    return means[0] - means[1], spreads[0] + spreads[1]


@pytest.mark.parametrize("options", [{}, {"scales": ["standard"]}, {"scales": ["normal_scores"]}, {"draws": "plain"}])
def test_vaeac_expects_what_it_draws(options):
    # 2 coalitions x 3 rows x 8 outputs: differences of two independent means, in standard errors, of which the largest of
    # 48 normal ones exceeds 4.5 in 0.03 % of all seeds
    explainer = fitted(PIPELINE, MIXED, VAEAC(**{**SMALL.get_params(), **options}))
    approach, X = explainer.parts_[0].approach, explainer.schema_.encode(MIXED[:3])
    approach.votes_ = np.array([0.3, *np.full(len(approach.companions_), 0.3 / len(approach.companions_)), 0.4])
    masks = np.array([[True, False, False, False, True], [False, True, True, False, False]])
    apart, variance = compare_means(approach, explainer.schema_, X, masks, 2048)
    is_random = variance > 1e-20
    assert np.abs(apart[~is_random]).max() < 1e-9
    assert (np.abs(apart[is_random]) < 4.5 * np.sqrt(variance[is_random] / 2048)).all()


def test_vaeac_expects_known_features_that_are_missing_and_is_less_noisy():
    model = lm.LinearRegression().fit(NUMBERS, y)
    explainer = fitted(model, NUMBERS, SMALL)
    approach, row = explainer.parts_[0].approach, Z[:1].copy()
    row[0, 0] = np.nan
    assert approach.fills_missing_
    # 2 coalitions x 4 outputs, as above
    masks = np.array([[True, False, False, True], [False, True, True, False]])
    apart, variance = compare_means(approach, explainer.schema_, row, masks, 2048)
    assert (np.abs(apart) <= 4.5 * np.sqrt(variance / 2048) + 1e-9).all()
    assert variance[0, 0, 0] > 0.1
    assert np.isfinite(explainer.explain(NUMBERS[:1].assign(a=np.nan)).values).all()


def test_blind_expectations_do_not_look_at_what_is_known():
    from condshap.vaeac.sampling.tiles import Asked

    explainer = fitted(lm.LinearRegression().fit(NUMBERS, y), NUMBERS, SMALL)
    networks, mask = explainer.parts_[0].approach.networks_, np.array([[True, True, False, False]])
    unknown = AffineFunction(np.zeros(1), np.array([[0.0], [0.0], [1.0], [2.0]]), (None,) * 4)
    keys = np.zeros(5, dtype=np.uint64)  # the same noise for all rows
    blind, seeing = (networks.expect(unknown, Asked(Z[:5], mask, 8, keys, blind=b)) for b in (True, False))
    assert np.ptp(blind, axis=1).max() < 1e-12
    assert np.ptp(seeing, axis=1).min() > 1e-6


def test_vaeac_says_that_means_are_less_noisy():
    read, called = (fitted(PIPELINE, MIXED, SMALL, additive=a).explain(MIXED[:10]) for a in ("auto", False))
    assert (read.std_errors**2).mean() < 0.5 * (called.std_errors**2).mean()


@pytest.mark.parametrize("approach", ["gaussian", "independence", SMALL], ids=["gaussian", "independence", "vaeac"])
def test_blocks_and_other_rows_do_not_matter(approach):
    model = lm.LinearRegression().fit(NUMBERS, y)
    explainer = fitted(model, NUMBERS, approach, n_samples=16)
    whole, alone = explainer.explain(NUMBERS[:9]), explainer.explain(NUMBERS[7:8])
    explainer.memory_budget = 2**14
    pieces = explainer.explain(NUMBERS[:9])
    assert np.array_equal(whole.value_table.values, pieces.value_table.values)
    assert np.array_equal(whole.value_table.values[:, 7:8], alone.value_table.values)


@pytest.mark.parametrize("approach", ["independence", "ctree"])
def test_a_saved_explainer_reads_the_model_again(approach, tmp_path):
    explainer = fitted(PIPELINE, MIXED, approach)
    explainer.save(tmp_path / "explainer")
    loaded = cs.load_explainer(tmp_path / "explainer", PIPELINE)
    assert np.array_equal(loaded.explain(MIXED[:3]).values, explainer.explain(MIXED[:3]).values)
    assert loaded.explain(MIXED[:3]).value_table.n_evaluations == 3


def test_four_draws_have_the_right_mean_and_no_noise_where_all_is_linear():
    torch = pytest.importorskip("torch")
    from condshap.vaeac.columns.encoding import Layout
    from condshap.vaeac.sampling.expectations import expect_numbers
    from condshap.vaeac.sampling.heads import Heads, Margins

    noise = torch.randn(1, 4, 50_000, generator=torch.Generator().manual_seed(0))
    outputs = torch.cat([torch.full_like(noise, 0.3), torch.zeros_like(noise)])  # a scale of log 2
    heads = Heads(Layout.of([0]), None, np.zeros(1, dtype=bool), torch.device("cpu"))
    found = torch.empty(noise.shape, dtype=torch.float64)

    def expected(unscale):
        margins = Margins(torch.zeros(1, 1, 1), unscale, None)
        expect_numbers(outputs.clone(), noise.clone(), heads, margins, found)
        return found.numpy()

    np.testing.assert_allclose(expected(lambda scaled, out: out.copy_(scaled)), 0.3, atol=1e-6)
    curved = expected(lambda scaled, out: out.copy_(scaled).exp_())
    # 200,000 draws; 4.5 standard errors are exceeded in 0.001 % of all seeds
    assert abs(curved.mean() - np.exp(0.3 + np.log(2) ** 2 / 2)) < 4.5 * curved.std() / np.sqrt(curved.size)
    assert curved.std() < 0.4 * np.exp(0.3) * np.log(2)


def test_means_of_truncated_normals():
    torch = pytest.importorskip("torch")
    from condshap.vaeac.sampling.expectations import truncated_mean

    low, high = np.array([-1.0, -np.inf, 0.5, 3.0, 30.0, -np.inf]), np.array([2.0, 0.3, np.inf, 3.1, 31.0, -60.0])
    mean, scale = np.array([0.3, 1.0, -2.0, 0.0, 0.0, 0.0]), np.array([1.0, 0.7, 0.5, 1.0, 1.0, 1.0])
    limits = torch.tensor(np.stack([low, high]))[:, :, None, None]
    found = truncated_mean(torch.tensor(mean)[:, None, None], torch.tensor(scale)[:, None, None], limits)[
        :, 0, 0
    ].numpy()
    a, b = (low - mean) / scale, (high - mean) / scale
    np.testing.assert_allclose(found[:5], truncnorm.mean(a, b, mean, scale)[:5], rtol=1e-6)
    assert found[5] == -60.0
