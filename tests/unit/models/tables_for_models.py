"""Tables with numbers, levels and codes, and predictors of models of them."""

from __future__ import annotations

import lightgbm as lgb
import numpy as np
import pandas as pd
import xgboost as xgb
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from condshap.models.predictor import Predictor
from condshap.schema import FeatureSchema


def predictor_of(model, X, output=None, **options):
    schema = FeatureSchema.learn(X, **options)
    rows = schema.encode(X)
    return Predictor.of(model, schema, rows, output), rows


def predictions_of(model, X, **options):
    predictor, rows = predictor_of(model, X, **options)
    return predictor(rows)


RNG = np.random.default_rng(1)


N = 120


NUMBERS = pd.DataFrame(RNG.normal(size=(N, 3)) * [1.0, 10.0, 100.0], columns=["a", "b", "c"])


MIXED = pd.DataFrame(
    {
        "x": RNG.normal(size=N),
        "n": RNG.integers(0, 5, N),
        "colour": pd.Categorical(RNG.choice(["red", "green", "blue"], N), categories=["red", "green", "blue"]),
        "flag": RNG.random(N) < 0.5,
    }
)


Y_MIXED = (MIXED["x"] + MIXED["n"] + 3 * (MIXED["colour"] == "green") - MIXED["flag"]).to_numpy()


CLASSES = np.array(["high", "low", "middle"])[RNG.integers(0, 3, N)]


def mixed_pipeline(model):
    encode = ColumnTransformer([("one", OneHotEncoder(), ["colour"]), ("scale", StandardScaler(), ["x", "n"])])
    return make_pipeline(encode, model)


MIXED_MODELS = {
    "pipeline": lambda: mixed_pipeline(LinearRegression()).fit(MIXED, Y_MIXED),
    "hist gradient boosting": lambda: HistGradientBoostingRegressor(
        max_iter=10, categorical_features="from_dtype", min_samples_leaf=3
    ).fit(MIXED, Y_MIXED),
    "xgboost": lambda: xgb.XGBRegressor(n_estimators=5, n_jobs=1, enable_categorical=True).fit(MIXED, Y_MIXED),
    "xgboost booster": lambda: xgb.train({"nthread": 1}, xgb.DMatrix(MIXED, Y_MIXED, enable_categorical=True), 5),
    "lightgbm": lambda: lgb.LGBMRegressor(n_estimators=5, n_jobs=1, verbose=-1, min_child_samples=2).fit(
        MIXED, Y_MIXED
    ),
    "lightgbm booster": lambda: lgb.train(
        {"verbose": -1, "min_data_in_leaf": 2, "num_threads": 1}, lgb.Dataset(MIXED, Y_MIXED, params={"verbose": -1}), 5
    ),
}
