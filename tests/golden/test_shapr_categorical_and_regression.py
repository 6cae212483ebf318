"""Reference numbers of R's shapr for the approaches that do not sample; its soft constraint is off by up to 4e-6."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import condshap as cs
from condshap.approaches import Categorical, RegressionSeparate

DATA = Path(__file__).parent / "data"
GOLDEN = json.loads((DATA / "golden.json").read_text())


def cut_like_r(numbers, n):
    """R's cut: equally spaced breaks, the two ends widened by a thousandth of the range, closed on the right."""
    low, high = numbers.min(), numbers.max()
    breaks = np.linspace(low, high, n + 1)
    breaks[[0, -1]] += np.array([-1, 1]) * (high - low) / 1000
    return pd.Series(np.digitize(numbers, breaks, right=True), index=numbers.index)


def airquality():
    table = pd.read_csv(DATA / "airquality.csv")
    factors = {
        "Month_factor": table["Month"],
        "Ozone_sub30_factor": table["Ozone"] < 30,
        "Solar.R_factor": cut_like_r(table["Solar.R"], 10),
        "Wind_factor": table["Wind"].round(),
    }
    return table.assign(**{name: column.astype("category") for name, column in factors.items()})


TABLE = airquality()
TRAIN, ROWS = TABLE[TABLE["split"] == "train"], TABLE[TABLE["split"] == "explain"]


def explain(case, approach):
    features = GOLDEN[case]["features"]
    factors = [name for name in features if TABLE[name].dtype == "category"]
    dummies = OneHotEncoder(
        drop="first", sparse_output=False
    )  # a sparse table would be solved by iteration, to 1e-4 only
    encode = make_column_transformer((dummies, factors), remainder="passthrough")
    model = make_pipeline(encode, LinearRegression()).fit(TABLE[features], TABLE["Ozone"])
    base = TRAIN["Ozone"].mean()
    return cs.explain(model, TRAIN[features], ROWS[features], approach=approach, base_value=base)


@pytest.mark.parametrize(
    ("case", "approach"),
    [
        ("7", Categorical(share_unseen=True)),
        ("7", Categorical(epsilon=0.001, share_unseen=True)),
        ("8", "regression_separate"),
        ("8", RegressionSeparate(LinearRegression())),
    ],
)
def test_approach_without_samples_equals_reference(case, approach):
    explanation = explain(case, approach)
    np.testing.assert_allclose(explanation.predictions, GOLDEN[case]["predictions"], atol=1e-5)
    np.testing.assert_allclose(explanation.values, GOLDEN[case]["phi"], atol=1e-5)
    np.testing.assert_allclose(float(explanation.msev), GOLDEN[case]["msev"], atol=1e-5)
    assert (explanation.std_errors == 0).all()


def test_no_explained_cell_of_the_reference_was_seen_in_training():
    """So that the rule for unseen cells is what case 7 tests."""
    features = GOLDEN["7"]["features"]
    seen = set(TRAIN[features].itertuples(index=False, name=None))
    assert not seen & set(ROWS[features].itertuples(index=False, name=None))


def test_unseen_cells_of_other_rows_make_the_last_digits_of_the_reference():
    explanation = explain("7", "categorical")
    error = np.abs(explanation.values - GOLDEN["7"]["phi"]).max()
    assert 1e-5 < error < 1e-4
