"""Commands as users type them, and tables and models to type them with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from typer.testing import CliRunner

from condshap.cli import app

COLOURS = np.array(["blue", "green", "red"])


def make_table(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "size": rng.normal(size=n),
            "mass": rng.normal(size=n),
            "colour": rng.choice(COLOURS, n),
            "code": rng.integers(0, 3, n),
        }
    )


def fit_model(estimator, X: pd.DataFrame, y):
    encode = make_column_transformer((OneHotEncoder(sparse_output=False), ["colour"]), remainder="passthrough")
    return make_pipeline(encode, estimator).fit(X, y)


def run(*arguments: object):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def explain_files(folder: Path, out: Path, *more: object, model="linear.skops", train="train.csv", rows="rows.csv"):
    files = ("--model", folder / model, "--train", folder / train, "--rows", folder / rows, "--out", out)
    approach = () if "--approach" in more else ("--approach", "independence")
    return run("explain", *files, *approach, *more)


def message_of(result) -> str:
    return " ".join(result.stderr.split())
