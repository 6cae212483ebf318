"""A folder with models and tables for the command line."""

from __future__ import annotations

import pickle
from pathlib import Path

import joblib
import numpy as np
import pytest
from lightgbm import LGBMRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import DotProduct
from sklearn.linear_model import LinearRegression, LogisticRegression
from xgboost import XGBRegressor

from tests.unit.cli.commands import fit_model, make_table


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A folder with tables as CSV and Parquet, and models in every format."""
    import skops.io

    where = tmp_path_factory.mktemp("cli")
    train, rows = make_table(60, 0), make_table(4, 1)
    y = train["size"] + (train["colour"] == "red")
    for name, frame in (("train", train), ("rows", rows)):
        frame.to_csv(where / f"{name}.csv", index=False)
        frame.to_parquet(where / f"{name}.parquet")
    train.assign(y=y).to_csv(where / "train_with_y.csv", index=False)
    linear = fit_model(LinearRegression(), train, y)
    skops.io.dump(linear, where / "linear.skops")
    models = {
        "forest": RandomForestRegressor(3),
        "xgboost": XGBRegressor(n_estimators=3),
        "lightgbm": LGBMRegressor(n_estimators=3, verbose=-1),
        "process": GaussianProcessRegressor(DotProduct(), optimizer=None),
    }
    for name, model in models.items():
        skops.io.dump(fit_model(model, train, y), where / f"{name}.skops")
    skops.io.dump(fit_model(LogisticRegression(), train, np.array([3, 5, 8])[train["code"]]), where / "classes.skops")
    joblib.dump(linear, where / "linear.joblib")
    (where / "linear.pkl").write_bytes(pickle.dumps(linear))
    return where
