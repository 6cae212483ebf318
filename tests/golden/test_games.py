"""Worked numbers of other questions: the linear model of the airquality table, by closed forms.

Ordinary least squares on all 111 rows, 108 training rows, `gaussian`, first explained row. The numbers were worked out from
the definitions, apart from this package.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import condshap as cs

TABLE = pd.read_csv(Path(__file__).parent / "data" / "airquality.csv")
NAMES = ["Solar.R", "Wind", "Temp", "Month", "Day"]
ORDER = [["Solar.R", "Wind"], ["Temp"], ["Month", "Day"]]
TRAIN, ROWS = TABLE[TABLE["split"] == "train"], TABLE[TABLE["split"] == "explain"]
MODEL = LinearRegression().fit(TABLE[NAMES], TABLE["Ozone"])
WORKED = {
    "conditional": ({}, [-8.5775, 7.8452, 14.4756, 0.6251, -1.7664]),
    "asymmetric": ({"causal_ordering": ORDER, "asymmetric": True}, [-11.0633, 15.3060, 13.8828, -2.6182, -2.9053]),
    "causal": ({"causal_ordering": ORDER, "confounding": True}, [-6.9161, 10.9928, 15.6120, -4.0487, -3.0380]),
}


@pytest.mark.parametrize("kind", WORKED)
def test_worked_numbers(kind):
    options, worked = WORKED[kind]
    options = {"approach": "gaussian", "base_value": TRAIN["Ozone"].mean(), "progress": False, **options}
    exact = cs.explain(MODEL, TRAIN[NAMES], ROWS[NAMES], **options)
    np.testing.assert_allclose(exact.values[0], worked, atol=1e-4)
    # by draws, without what was read of the model: five values at 4 standard errors, one false alarm in 3,000 seeds
    drawn = cs.explain(MODEL, TRAIN[NAMES], ROWS[NAMES], additive=False, n_samples=1024, **options)
    assert (np.abs(drawn.values[0] - worked) <= 0.02 + 4 * drawn.std_errors[0]).all()
