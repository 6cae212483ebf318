"""Price of causal values: CPU time per row that the model predicts, over that of conditional values of the same rows.

Both explain the same rows of the Abalone table with the same number of samples, in turn; the median of the ratios counts.
Models: a forest of 500 trees behind an encoder of levels, and a few operations, which leave the price of drawing.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import condshap as cs
from benchmarks.lib.report import parser, publish, table
from condshap.datasets import load_abalone

N_TRAIN, N_ROWS, REPEATS = 1000, 20, 5
ORDER = [["Sex"], ["Length", "Diameter", "Height"], ["WholeWeight", "ShuckedWeight", "VisceraWeight", "ShellWeight"]]
LEVELS = ("independence", "ctree", "vaeac")
"""Approaches that take levels."""
SAMPLING = ("gaussian", "copula", "independence", "ctree", "empirical", "vaeac")


def cheap_model(X: Any) -> Any:
    """Model of a few operations."""
    return X["Length"].to_numpy() * X["WholeWeight"].to_numpy() + np.abs(X["ShellWeight"].to_numpy())


def microseconds(explainer: cs.Explainer, rows: Any) -> float:
    """CPU time of one explanation per predicted row."""
    start = time.process_time()
    found = explainer.explain(rows)
    return (time.process_time() - start) / found.value_table.n_evaluations * 1e6


def compare(approach: str, title: str) -> dict[str, str]:
    """One line: conditional and causal values in turn."""
    data = load_abalone()
    left_out = [] if approach in LEVELS else ["Sex"]
    X, y = data.X_train.iloc[:N_TRAIN].drop(columns=left_out), data.y_train.iloc[:N_TRAIN]
    model: Any = cheap_model
    if "forest" in title:
        encode = make_column_transformer((OneHotEncoder(), ["Sex"]), remainder="passthrough")
        forest = RandomForestRegressor(500, random_state=0)
        model = (forest if left_out else make_pipeline(encode, forest)).fit(X, y)
    order = [[name for name in component if name not in left_out] for component in ORDER]
    options: dict[str, Any] = {"approach": approach, "n_samples": 64, "check_draws": False, "progress": False}
    causal = {"causal_ordering": [component for component in order if component], "confounding": True}
    explainers = [cs.Explainer(model, **options, **more).fit(X) for more in ({}, causal)]
    rows = data.X_test.iloc[:N_ROWS].drop(columns=left_out)
    for explainer in explainers:
        explainer.explain(rows.iloc[:2])  # trees of ctree grow, compiled code is loaded
    found = np.array([[microseconds(explainer, rows) for explainer in explainers] for _ in range(REPEATS)])
    ratio = np.median(found[:, 1] / found[:, 0])
    usual, other = np.median(found, axis=0)
    both = {"conditional, microseconds a row": f"{usual:.2f}", "causal, microseconds a row": f"{other:.2f}"}
    return {"approach": approach, "model": title, **both, "ratio": f"{ratio:.2f}"}


def main(arguments: list[str] | None = None) -> None:
    given = parser("causal", __doc__).parse_args(arguments)
    titles = ("forest of 500 trees", "a few operations")
    lines = [compare(approach, title) for title in titles for approach in SAMPLING]
    publish("causal", lines, table(lines), write=given.write)


if __name__ == "__main__":
    main()
