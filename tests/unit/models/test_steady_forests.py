"""A forest of several jobs adds its trees in the order in which they finish; condshap's numbers do not depend on it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import condshap as cs
from condshap.models.predictor import Predictor
from condshap.schema import FeatureSchema

X = np.random.default_rng(0).normal(size=(1500, 6)) @ np.tri(6)
Y = X[:, 0] * X[:, 1] + np.sin(X[:, 2])
FOREST = {"n_estimators": 120, "min_samples_leaf": 2, "random_state": 0}
CALLS = 60  # two jobs give at least two answers to two rows: the same one 60 times has a chance of 1e-17 with odds of 1 to 1
MODELS = {
    "forest": lambda n_jobs: RandomForestRegressor(**FOREST, n_jobs=n_jobs).fit(X[:300], Y[:300]),
    "extra trees": lambda n_jobs: ExtraTreesRegressor(**FOREST, n_jobs=n_jobs).fit(X[:300], Y[:300]),
    "classifier": lambda n_jobs: RandomForestClassifier(**FOREST, n_jobs=n_jobs).fit(X[:300], Y[:300] > 0),
    "pipeline": lambda n_jobs: make_pipeline(StandardScaler(), RandomForestRegressor(**FOREST, n_jobs=n_jobs)).fit(
        X[:300], Y[:300]
    ),
}


def predictor_of(model, *, fast_trees=True):
    return Predictor.of(model, FeatureSchema.learn(X), X[:2], fast_trees=fast_trees)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("fast_trees", [True, False])
def test_predictions_of_few_rows_are_the_same_at_every_call(kind, fast_trees):
    several, single = (predictor_of(MODELS[kind](n), fast_trees=fast_trees) for n in (2, 1))
    answers = {several(X[:2].copy()).tobytes() for _ in range(CALLS)}
    assert answers == {single(X[:2].copy()).tobytes()}


@pytest.mark.parametrize("kind", MODELS)
def test_predictions_of_many_rows_are_those_of_one_job(kind):
    several, single = (predictor_of(MODELS[kind](n)) for n in (2, 1))
    answers = {several(X.copy()).tobytes() for _ in range(5)}
    assert answers == {single(X.copy()).tobytes()}


def test_explanations_do_not_depend_on_the_jobs_of_a_forest():
    expected, *others = [
        cs.explain(MODELS["forest"](n), X[:200], X[:3], approach="gaussian", check_draws=False) for n in (1, 2, 2, 2)
    ]
    for other in others:
        np.testing.assert_array_equal(other.values, expected.values)
        np.testing.assert_array_equal(other.base_values, expected.base_values)


def test_a_forest_that_was_fitted_anew_is_asked_itself():
    model = MODELS["forest"](2)
    predictor = predictor_of(model)
    model.fit(X[300:600], -Y[300:600])
    np.testing.assert_array_equal(predictor(X[:4].copy()), predictor_of(model)(X[:4].copy()))
