"""Regressions of the model's output on what is known, against designs written out by hand."""

from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor

import condshap as cs
from condshap.approaches import RegressionSeparate, RegressionSurrogate, regression_surrogate
from condshap.approaches._regression import code_limit, design_width, encode, masked_levels
from condshap.coalitions import all_coalitions
from condshap.exceptions import OptionError, SchemaError
from condshap.schema import FeatureSchema
from condshap.testing import GaussianTruth, example_table

TABLE = example_table(120)[["a", "b", "d", "e"]]
SCHEMA = FeatureSchema.learn(TABLE)
ENCODED = SCHEMA.encode(TABLE)
TRAIN, ROWS = ENCODED[:100], ENCODED[100:]
PLAN = all_coalitions(4)
BOTH = pytest.mark.parametrize("approach", [RegressionSeparate, RegressionSurrogate])


def outputs(rows):
    return np.column_stack([rows[:, 0] * rows[:, 3] + rows[:, 2] ** 2, np.tanh(rows[:, 1]) - rows[:, 2]])


def fit(approach, n_outputs=2, seed=0):
    return approach.fit(TRAIN, outputs(TRAIN)[:, :n_outputs], SCHEMA, plan=PLAN, seed=seed)


def dummies(rows, mask):
    """Known columns of a, b, d (3 levels) and e (2 levels), the factors without their first level."""
    parts = [rows[:, [0]], rows[:, [1]], np.column_stack([rows[:, 2] == 1, rows[:, 2] == 2]), rows[:, [3]]]
    return np.column_stack([np.ones((len(rows), 1)), *(part for part, known in zip(parts, mask, strict=True) if known)])


def test_separate_linear_regressions_equal_least_squares_on_dummies():
    values = fit(RegressionSeparate()).estimate(ROWS, PLAN.masks)
    for c, mask in enumerate(PLAN.masks):
        coefficients = np.linalg.lstsq(dummies(TRAIN, mask), outputs(TRAIN), rcond=None)[0]
        np.testing.assert_allclose(values[c], dummies(ROWS, mask) @ coefficients, atol=1e-10)


def test_separate_linear_regressions_equal_the_normal_answer_for_a_linear_model():
    X = np.random.default_rng(0).multivariate_normal(np.zeros(4), 0.5 + 0.5 * np.eye(4), size=300)
    coefficients = np.array([1.0, -2.0, 0.5, 3.0])
    explanation = cs.explain(lambda x: x @ coefficients, X, X[:10], approach="regression_separate")
    truth = GaussianTruth(X.mean(axis=0), np.cov(X.T))
    exact = truth.exact_values(coefficients, X[:10], explanation.value_table.coalitions)
    np.testing.assert_allclose(explanation.value_table.values, exact, atol=1e-10)
    assert (explanation.std_errors == 0).all()


def test_the_default_regressor_does_not_mind_the_scale_of_the_features():
    X = np.random.default_rng(0).multivariate_normal(np.zeros(3), 0.5 + 0.5 * np.eye(3), size=200)
    scale = np.array([1e-6, 1.0, 1e9])
    plain = cs.explain(lambda x: x.sum(axis=1), X, X[:5], approach="regression_separate")
    scaled = cs.explain(lambda x: (x / scale).sum(axis=1), X * scale, X[:5] * scale, approach="regression_separate")
    np.testing.assert_allclose(scaled.values, plain.values, atol=1e-9)


def test_separate_forests_see_the_known_features_only():
    forest = RandomForestRegressor(10, random_state=3)
    values = fit(RegressionSeparate(forest), 1).estimate(ROWS, PLAN.masks)
    mask = np.array([True, False, True, False])
    one_hot = [np.column_stack([rows[:, 0], *(rows[:, 2] == level for level in range(3))]) for rows in (TRAIN, ROWS)]
    expected = RandomForestRegressor(10, random_state=3).fit(one_hot[0], outputs(TRAIN)[:, 0]).predict(one_hot[1])
    position = np.flatnonzero((PLAN.masks == mask).all(axis=1))[0]
    np.testing.assert_allclose(values[position, :, 0], expected, rtol=1e-12)


def test_separate_regressions_are_fitted_when_asked_for_and_only_once():
    fitted = fit(RegressionSeparate())
    assert fitted.fits_ == {}
    fitted.estimate(ROWS, PLAN.masks[3:5])
    first = dict(fitted.fits_)
    fitted.estimate(ROWS, PLAN.masks[3:6])
    assert len(first) == 2
    assert len(fitted.fits_) == 3
    assert all(fitted.fits_[key] is value for key, value in first.items())


def test_the_empty_coalition_has_the_mean_prediction():
    values = fit(RegressionSeparate(RandomForestRegressor(2))).estimate(ROWS, PLAN.masks[:1])
    np.testing.assert_allclose(values[0], np.tile(outputs(TRAIN).mean(axis=0), (len(ROWS), 1)))


def surrogate_design(rows, masks):
    """Every row under every coalition, row by row: a, b or 0, their mask columns, and d, e with masked as a level."""
    lines = []
    for row in rows:
        for known in masks:
            d = [float(known[2] and row[2] == level) for level in range(3)] + [float(not known[2])]
            e = [float(known[3] and row[3] == level) for level in range(2)] + [float(not known[3])]
            numbers = [row[0] * known[0], row[1] * known[1], float(not known[0]), float(not known[1])]
            lines.append([1.0, *numbers, *d[1:], *e[1:]])
    return np.array(lines)


def test_a_linear_surrogate_equals_least_squares_on_the_repeated_rows():
    values = fit(RegressionSurrogate(LinearRegression())).estimate(ROWS, PLAN.masks)
    used = PLAN.masks[1:]  # all but the empty coalition, with the grand one
    wanted = np.repeat(outputs(TRAIN), len(used), axis=0)
    coefficients = np.linalg.lstsq(surrogate_design(TRAIN, used), wanted, rcond=None)[0]
    expected = (surrogate_design(ROWS, PLAN.masks) @ coefficients).reshape(len(ROWS), len(PLAN.masks), 2)
    np.testing.assert_allclose(values, expected.swapaxes(0, 1), atol=1e-9)


def test_a_numeric_surrogate_equals_scikit_learn_on_the_repeated_rows():
    X = np.random.default_rng(1).normal(size=(60, 3))
    y = (X[:, 0] * X[:, 1])[:, None]
    plan, schema = all_coalitions(3), FeatureSchema.learn(X)
    fitted = RegressionSurrogate(LinearRegression()).fit(X, y, schema, plan=plan, seed=0)
    known = np.tile(plan.masks[1:], (60, 1))
    table = np.repeat(X, 7, axis=0)
    reference = LinearRegression().fit(np.column_stack([table * known, ~known]), np.repeat(y[:, 0], 7))
    for mask in plan.masks:
        design = np.column_stack([X * mask, np.tile(~mask, (60, 1))])
        np.testing.assert_allclose(fitted.estimate(X, mask[None])[0, :, 0], reference.predict(design), atol=1e-10)


def test_surrogate_values_come_in_blocks_of_any_size(monkeypatch):
    fitted = fit(RegressionSurrogate(RandomForestRegressor(5)))
    at_once = fitted.estimate(ROWS, PLAN.masks)
    monkeypatch.setattr(regression_surrogate, "_BLOCK_NUMBERS", 77)
    np.testing.assert_allclose(fitted.estimate(ROWS, PLAN.masks), at_once, rtol=1e-12)


def test_a_surrogate_answers_for_coalitions_that_it_was_not_fitted_on():
    plan = cs.CoalitionPlan.given(np.eye(4, dtype=bool), np.ones(4))
    fitted = RegressionSurrogate(DecisionTreeRegressor()).fit(TRAIN, outputs(TRAIN), SCHEMA, plan=plan, seed=0)
    values = fitted.estimate(ROWS, PLAN.masks)
    assert values.shape == (16, len(ROWS), 2)
    assert np.isfinite(values).all()


class Recorder(RegressorMixin, BaseEstimator):
    """Remembers, for all its copies, what it was fitted on."""

    seen: ClassVar = []

    def fit(self, X, y):
        Recorder.seen.append((X, y))
        return self

    def predict(self, X):
        return np.zeros(len(X))


def known_columns(table):
    """Which features a repeated row of a, b, d, e shows, read back from its design."""
    mask_a, mask_b = table[:, -2], table[:, -1]
    return np.column_stack([mask_a == 0, mask_b == 0, table[:, 5] == 0, table[:, 8] == 0])


def test_coalitions_per_row_are_drawn_without_replacement():
    Recorder.seen = []
    fit(RegressionSurrogate(Recorder(), n_coalitions_per_row=5), 1)
    ((table, target),) = Recorder.seen
    assert len(table) == len(target) == 500
    shown = known_columns(table).reshape(100, 5, 4)
    assert all(len(np.unique(row, axis=0)) == 5 for row in shown)
    assert shown.any(axis=2).all()  # never the empty one
    share_of_grand = shown.all(axis=2).sum() / 100
    assert abs(share_of_grand - 5 / 15) < 4 * np.sqrt(1 / 3 * 2 / 3 / 100)
    np.testing.assert_array_equal(target, np.repeat(outputs(TRAIN)[:, 0], 5))


def test_a_huge_plan_is_thinned_to_a_bounded_table(monkeypatch):
    monkeypatch.setattr(regression_surrogate, "_MAX_ROWS", 750)
    Recorder.seen = []
    assert fit(RegressionSurrogate(Recorder()), 1).n_copies_ == 7
    assert len(Recorder.seen[0][0]) == 700


def test_cross_validation_keeps_all_copies_of_a_row_together():
    Recorder.seen = []
    fit(RegressionSurrogate([Recorder(), Recorder()]), 1)
    folds = [table for table, _ in Recorder.seen[:5]]
    assert [len(table) for table in folds] == [80 * 15] * 5
    for table in folds:
        grand = table[known_columns(table).all(axis=1)]
        assert len(grand) == 80  # every row that is there at all is there under every coalition


@BOTH
def test_the_better_of_several_regressors_is_chosen(approach):
    chosen = fit(approach([DummyRegressor(), LinearRegression(), DummyRegressor()])).estimate(ROWS, PLAN.masks[1:])
    linear = fit(approach(LinearRegression())).estimate(ROWS, PLAN.masks[1:])
    informative = slice(None) if approach is RegressionSurrogate else slice(-1, None)
    np.testing.assert_array_equal(chosen[informative], linear[informative])


def test_the_choice_is_made_for_every_coalition_anew():
    X = np.random.default_rng(0).normal(size=(200, 2))
    y = (3 * X[:, 0] + np.sign(X[:, 1]))[:, None]
    candidates = [LinearRegression(), DecisionTreeRegressor(max_depth=1)]
    schema = FeatureSchema.learn(X)
    fitted = RegressionSeparate(candidates).fit(X, y, schema, plan=all_coalitions(2), seed=0)
    fitted.estimate(X[:3], np.eye(2, dtype=bool))
    kinds = [type(one.models[0]) for one in fitted.fits_.values()]
    assert kinds[0] is LinearRegression
    y = np.where(X[:, 1] > 0, 5.0, -5.0)[:, None]
    fitted = RegressionSeparate(candidates).fit(X, y, schema, plan=all_coalitions(2), seed=0)
    fitted.estimate(X[:3], np.array([[False, True]]))
    assert [type(one.models[0]) for one in fitted.fits_.values()] == [DecisionTreeRegressor]


@BOTH
@pytest.mark.parametrize("regressor", [GradientBoostingRegressor(n_estimators=5), KNeighborsRegressor()])
def test_several_outputs_equal_one_after_the_other(approach, regressor):
    """One regressor takes them all at once, the other does not."""
    together = fit(approach(regressor)).estimate(ROWS, PLAN.masks)
    for o in range(2):
        one = approach(regressor).fit(TRAIN, outputs(TRAIN)[:, [o]], SCHEMA, plan=PLAN, seed=0)
        np.testing.assert_allclose(together[..., [o]], one.estimate(ROWS, PLAN.masks), rtol=1e-10)


@BOTH
def test_a_classifier_is_explained_for_all_classes_at_once(approach):
    X = TABLE[["a", "b"]]
    model = RandomForestClassifier(20, random_state=0).fit(X, TABLE["d"])
    explanation = cs.explain(model, X[:100], X[100:], approach=approach(LinearRegression()))
    assert explanation.values.shape == (20, 2, 3)
    np.testing.assert_allclose(explanation.values.sum(axis=2), 0, atol=1e-10)
    np.testing.assert_allclose(
        explanation.base_values + explanation.values.sum(axis=1), explanation.predictions, atol=1e-12
    )


@BOTH
def test_random_regressors_follow_the_seed(approach):
    regressor = RandomForestRegressor(5)
    first, again, other = (fit(approach(regressor), seed=s).estimate(ROWS, PLAN.masks[1:]) for s in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert regressor.random_state is None


def test_gradient_boosting_gets_levels_as_codes_and_others_one_hot():
    boosting = HistGradientBoostingRegressor()
    assert code_limit(boosting) == 255
    assert code_limit(HistGradientBoostingRegressor(categorical_features=[0])) == 0
    assert code_limit(LinearRegression()) == 0
    fitted = fit(RegressionSurrogate(), 1).fitted_[0]
    np.testing.assert_array_equal(fitted.models[0].is_categorical_, [False, False, True, True, False, False])


def test_levels_beyond_the_limit_are_one_hot_encoded():
    X = np.array([[1.5, 2.0, 1.0], [2.5, 0.0, 0.0]])
    design = encode(X, [0, 3, 2], 2)
    np.testing.assert_array_equal(design.table, [[1.5, 0, 0, 1, 1], [2.5, 1, 0, 0, 0]])
    assert design.is_code == (False, False, False, False, True)
    assert design_width([0, 3, 2], 2) == 5
    assert masked_levels([0, 3, 2, 0]) == (0, 4, 3, 0, 0, 0)


def test_the_default_surrogate_finds_the_dependence():
    """Independence would say 0 for the first feature; the truth is 0.9 of the second one's effect."""
    rng = np.random.default_rng(0)
    X = rng.multivariate_normal(np.zeros(2), [[1, 0.9], [0.9, 1]], size=1000)
    v = cs.explain(lambda x: x[:, 1], X, X[:200], approach="regression_surrogate").value_table.values
    first = v[1]  # the coalition of the first feature alone
    assert np.sqrt(np.mean((first - 0.9 * X[:200, 0]) ** 2)) < 0.25


class Duck:
    """Not an estimator, but it has the methods; it gives nothing back from fit."""

    def fit(self, X, y):
        self.mean = y.mean()

    def predict(self, X):
        return np.full(len(X), self.mean)


@BOTH
def test_any_object_with_fit_and_predict_will_do(approach):
    values = fit(approach(Duck())).estimate(ROWS, PLAN.masks)
    np.testing.assert_allclose(values, np.broadcast_to(outputs(TRAIN).mean(axis=0), values.shape))


class NoPredict:
    def fit(self, X, y):
        return self


class Failing(Duck):
    def fit(self, X, y):
        raise RuntimeError("no luck")


class Silent(Duck):
    def predict(self, X):
        return np.full(len(X), np.nan)


@BOTH
@pytest.mark.parametrize(
    ("regressor", "message"),
    [
        (
            NoPredict(),
            r"must be an object with fit and predict, got .*NoPredict.*, which has no predict\. Pass an estimator",
        ),
        ([LinearRegression(), NoPredict()], "which has no predict"),
        ("forest", "got 'forest', which has no fit and no predict"),
        (LinearRegression, "which is a class"),
        ([], "got an empty list"),
        (RandomForestClassifier(), r"must predict numbers, got the classifier RandomForestClassifier\(\)"),
    ],
)
def test_what_is_no_regressor_is_refused_at_fit(approach, regressor, message):
    with pytest.raises(OptionError, match=message):
        cs.Explainer(lambda x: np.zeros(len(x)), approach=approach(regressor)).fit(TABLE)


@BOTH
@pytest.mark.parametrize(
    ("regressor", "message"),
    [(Failing(), "failed with RuntimeError: no luck"), (Silent(), "finite numbers per row")],
)
def test_a_regressor_that_breaks_is_named(approach, regressor, message):
    with pytest.raises(OptionError, match=message):
        fit(approach(regressor)).estimate(ROWS, PLAN.masks)


@pytest.mark.parametrize(("wanted", "message"), [(0, "at least 1"), (2.5, "an integer"), (16, "at most 15")])
def test_coalitions_per_row_must_be_possible(wanted, message):
    with pytest.raises(OptionError, match=f"n_coalitions_per_row must be {message}|{message}"):
        fit(RegressionSurrogate(n_coalitions_per_row=wanted))


@BOTH
def test_missing_values_are_refused(approach):
    gaps = TABLE.assign(a=TABLE["a"].mask(TABLE["a"] > 1))
    with pytest.raises(SchemaError, match=r"needs complete training rows, got missing values in columns \['a'\]"):
        cs.Explainer(lambda x: np.zeros(len(x)), approach=approach()).fit(gaps)


@BOTH
def test_groups_of_features_are_players(approach):
    groups = {"numbers": ["a", "b"], "labels": ["d", "e"]}
    model = lambda x: x["a"].to_numpy() + pd.Series(x["e"]).to_numpy()  # noqa: E731
    explanation = cs.explain(model, TABLE[:100], TABLE[100:], approach=approach(LinearRegression()), groups=groups)
    assert explanation.values.shape == (20, 2)
