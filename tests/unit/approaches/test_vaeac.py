"""The approach `vaeac`: what it hands to the networks, and what becomes of missing values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

import condshap as cs
from condshap.approaches.base import fit_approach
from condshap.coalitions import make_plan
from condshap.exceptions import OptionError
from condshap.models.predictor import Predictor
from condshap.schema import FeatureSchema
from condshap.seeding import row_keys

QUICK = {"epochs": 3, "width": 8, "latent": 2, "scales": ("standard",) * 2, "device": "cpu"}
RNG = np.random.default_rng(2)
X = pd.DataFrame(
    RNG.multivariate_normal(np.zeros(3), np.full((3, 3), 0.6) + 0.4 * np.eye(3), 120), columns=["a", "b", "c"]
)
Y = X["a"] + 2 * X["b"] - X["c"]
GAPS = X.mask(RNG.random(X.shape) < 0.15)
MASKS = np.array([[True, True, False], [False, True, False]])
TREES = HistGradientBoostingRegressor(max_iter=10)


def fitted(model, X_train, **options):
    """Approach fitted as the explainer does it."""
    schema = FeatureSchema.learn(X_train)
    rows = schema.encode(X_train)
    predictor = Predictor.of(model, schema, rows)
    approach = cs.approaches.VAEAC(**QUICK, **options)
    return fit_approach(approach, rows, schema, plan=make_plan(3, None, seed=0), seed=0, predict=predictor)


def draws(approach, rows):
    encoded = rows.to_numpy(copy=True)
    return approach.sample(encoded, MASKS, 6, keys=row_keys(encoded), seed=0).rows


def row_with_a_gap():
    return pd.DataFrame({"a": [np.nan, 0.3], "b": [0.5, 1.0], "c": [0.1, 0.2]})


@pytest.mark.parametrize("train", [X, GAPS], ids=["complete", "with gaps"])
def test_a_model_that_accepts_gaps_gets_the_gaps_of_known_features(train):
    approach = fitted(TREES.fit(train, Y), train)
    assert approach.fills_missing_ is False
    drawn = draws(approach, row_with_a_gap())
    assert np.isnan(drawn[0, 0, :, 0]).all()
    assert np.isfinite(drawn[1]).all()
    assert np.isfinite(drawn[:, 1]).all()


@pytest.mark.parametrize(
    "make", [lambda: LinearRegression().fit(X, Y), lambda: lambda T: T.to_numpy() @ [1.0, 2.0, -1.0]]
)
def test_a_model_that_refuses_gaps_or_answers_nan_gets_draws_for_them(make):
    approach = fitted(make(), X)
    assert approach.fills_missing_ is True
    drawn = draws(approach, row_with_a_gap())
    assert np.isfinite(drawn).all()
    assert len(np.unique(drawn[0, 0, :, 0])) > 1
    np.testing.assert_array_equal(drawn[0, 0, :, 1], 0.5)
    np.testing.assert_array_equal(drawn[0, 1, :, 0], 0.3)


def test_a_pipeline_that_imputes_accepts_gaps():
    assert not fitted(make_pipeline(SimpleImputer(), LinearRegression()).fit(X, Y), X).fills_missing_


def test_only_features_with_gaps_in_training_are_tried():
    def model(table):
        values = table.to_numpy()
        assert not np.isnan(values[:, 1:]).any()
        return np.nan_to_num(values[:, 0]) + values[:, 1]

    train = X.assign(a=GAPS["a"])
    assert not fitted(model, train).fills_missing_
    assert fitted(model, X).fills_missing_


@pytest.mark.parametrize("fill", [True, False])
def test_the_option_decides_whatever_the_model_accepts(fill):
    for model in (TREES.fit(X, Y), LinearRegression().fit(X, Y)):
        approach = fitted(model, X, fill_missing=fill)
        assert approach.fills_missing_ is fill
        assert np.isnan(draws(approach, row_with_a_gap())).any() is np.bool_(not fill)


def test_the_trial_shows_no_warning_and_leaves_the_training_rows_alone():
    def model(table):
        if table.isna().any().any():
            import warnings

            warnings.warn("gaps", UserWarning, stacklevel=1)
            table.iloc[:, :] = 0.0
        return table["a"].to_numpy()

    before = X.copy()
    fitted(model, X)
    pd.testing.assert_frame_equal(X, before)


def test_a_bad_option_is_refused_at_fit():
    with pytest.raises(OptionError, match="fill_missing must be one of"):
        fitted(LinearRegression().fit(X, Y), X, fill_missing="sometimes")


def test_rows_with_gaps_are_explained_with_a_model_that_accepts_them():
    explainer = cs.Explainer(TREES.fit(GAPS, Y), approach=cs.approaches.VAEAC(**QUICK), n_samples=8).fit(GAPS)
    explanation = explainer.explain(GAPS[GAPS.isna().any(axis=1)][:3])
    np.testing.assert_allclose(explanation.base_values + explanation.values.sum(axis=1), explanation.predictions)


def test_options_are_clear_in_the_provenance_of_an_explanation():
    explanation = cs.explain(lambda T: T["a"], X, X[:1], approach=cs.approaches.VAEAC(**QUICK), n_samples=4)
    assert "epochs" in str(explanation.provenance.options)


@pytest.mark.parametrize("train", [X, GAPS], ids=["complete", "with gaps"])
def test_state_without_pickle_gives_the_same_draws(train):
    approach = fitted(TREES.fit(train, Y), train)
    again = type(approach).from_state(approach.to_state(), predict=None)
    np.testing.assert_array_equal(draws(again, row_with_a_gap()), draws(approach, row_with_a_gap()))
    assert again.get_params() == approach.get_params()
    assert again.fills_missing_ == approach.fills_missing_


def test_a_row_that_the_model_refuses_is_explained_by_the_mean_over_its_imputations():
    model = LinearRegression().fit(X, Y)
    explainer = cs.Explainer(model, approach=cs.approaches.VAEAC(**QUICK), n_samples=8).fit(X)
    row = row_with_a_gap()
    found = explainer.explain(row)
    networks = explainer.parts_[0].approach.networks_
    encoded = explainer.schema_.encode(row)
    drawn = networks.sample(encoded, np.ones((1, encoded.shape[1]), dtype=bool), 4096, seed=9, fill_missing=True)
    expected = model.predict(pd.DataFrame(drawn.reshape(-1, 3), columns=X.columns)).reshape(drawn.shape[1:3])
    spread = expected.std(axis=1)
    assert (np.abs(found.predictions - expected.mean(axis=1)) <= 5 * spread / np.sqrt(256) + 1e-9).all()
    np.testing.assert_allclose(found.base_values + found.values.sum(axis=1), found.predictions, atol=1e-9)


def test_training_rows_with_gaps_do_not_need_a_model_that_accepts_them():
    with_gaps = X.mask(np.arange(len(X))[:, None] % 3 == np.arange(3))  # no row is complete
    model = LinearRegression().fit(X, Y)
    explainer = cs.Explainer(model, approach=cs.approaches.VAEAC(**QUICK), n_samples=8).fit(with_gaps)
    assert abs(explainer.base_value_[0] - model.predict(X).mean()) < 0.2 * model.predict(X).std()


@pytest.mark.parametrize(("trust", "n_blind"), [(1.0, 0), (0.75, 8), (0.0, 32)])
def test_what_is_not_trusted_is_drawn_blind_with_its_share_of_the_weight(trust, n_blind):
    approach = fitted(TREES.fit(X, Y), X)
    approach.votes_ = np.array([trust, *np.zeros(len(approach.companions_)), 1 - trust])
    assert approach.trust_ == trust
    rows, keys = X.to_numpy()[:4], row_keys(X.to_numpy()[:4])
    found = approach.sample(rows, MASKS, 32, keys=keys, seed=1)
    seen = [
        approach.networks_.sample(rows, MASKS, n, keys=keys, seed=1, blind=blind)
        for n, blind in ((32 - n_blind, False), (n_blind, True))
        if n
    ]
    np.testing.assert_array_equal(found.rows, np.concatenate(seen, axis=2))
    weights = np.full(32, 1 / 32) if found.weights is None else found.weights[0, 0]
    assert weights.sum() == pytest.approx(1.0)
    assert weights[32 - n_blind :].sum() == pytest.approx(1 - trust)


def test_declared_supports_hold_in_explanations_and_in_stored_ones(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"income": rng.lognormal(size=120), "share": rng.beta(2, 2, size=120)})
    seen = []

    def model(table):
        seen.append(table["income"].min())
        return np.log(table["income"]) + table["share"]  # refuses what is not positive

    approach = cs.approaches.VAEAC(epochs=3, support={"income": (0.0, np.inf)}, scales=("support", "standard"))
    explainer = cs.Explainer(model, approach=approach, progress=False, device="cpu").fit(frame)
    values = explainer.explain(frame[:3]).values
    lowest = min(seen)
    assert 0 < lowest < frame["income"].min()  # below the training range, and still positive
    explainer.save(tmp_path / "stored")
    again = cs.load_explainer(tmp_path / "stored", model)
    np.testing.assert_array_equal(again.explain(frame[:3]).values, values)
    assert again.parts_[0].approach.support == {"income": (0.0, np.inf)}
    with pytest.raises(cs.CondShapError, match="support must name continuous columns"):
        cs.Explainer(model, approach=cs.approaches.VAEAC(epochs=2, support={"wage": (0, 1)}), progress=False).fit(frame)
