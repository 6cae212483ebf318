"""Path -> a file with the numbers of one seed for every approach, computed with the kernels of this process.

``one_seed.py PATH`` for all approaches, ``one_seed.py PATH --without-networks`` for those that differ by rounding only.
Run by ``tests/portable``, each time in a process of its own, because libraries choose their kernels when they are loaded.
"""

import sys
import warnings

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import condshap as cs
from condshap.approaches import find_approach

N_TRAIN, N_ROWS = 250, 6
COLUMNS = ["bmi", "bp", "s1", "s5", "age"]
CASES = {
    "independence": ("forest", "independence", {}, {}),
    "gaussian": ("forest", "gaussian", {}, {}),
    "gaussian, 60 coalitions": ("wide", "gaussian", {}, {"n_coalitions": 60}),
    "gaussian, auto": ("wide", "gaussian", {}, {"n_coalitions": "auto", "tolerance": 0.05}),
    "gaussian, target": ("smooth", "gaussian", {}, {"target_error": 2.0}),
    "gaussian, additive": ("additive", "gaussian", {}, {"additive": True}),
    "copula": ("forest", "copula", {}, {}),
    "ctree": ("forest", "ctree", {}, {}),
    "empirical": ("smooth", "empirical", {}, {}),
    "empirical, aicc": ("smooth", "empirical", {"bandwidth": "aicc_by_size"}, {}),
    "categorical": ("levels", "categorical", {}, {}),
    "regression_separate": ("smooth", "regression_separate", {}, {}),
    "regression_surrogate": ("smooth", "regression_surrogate", {}, {}),
    "vaeac": ("smooth", "vaeac", {"progress": False}, {}),
    "vaeac, mixed": ("mixed", "vaeac", {"progress": False}, {}),
}


def smooth(X):
    """Column by column, with interactions: what a model makes of its rows is not what is compared here."""
    bmi, bp, s1, s5, age = (np.asarray(X[name], dtype=np.float64) * 20 for name in COLUMNS)
    return 150 + 20 * bmi + 10 * bp * s5 - 5 * s1 * s1 + 15 * np.maximum(s5, age) + 3 * bmi * bp * age


def additive(X):
    total = np.full(len(X), 150.0)
    for j, name in enumerate(COLUMNS):
        column = np.asarray(X[name], dtype=np.float64) * 20
        total += (j + 1) * column + np.maximum(column - 0.3, 0.0) * column
    return total


def problems():
    """By name: table of features, model."""
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    narrow, wide = X[COLUMNS], X.drop(columns="sex")
    cut = narrow.apply(lambda column: pd.Categorical(np.digitize(column, [-0.02, 0.02]).astype(str)))
    mixed = narrow.assign(age=cut["age"])
    forests = {
        name: RandomForestRegressor(50, min_samples_leaf=3, random_state=0).fit(table[:N_TRAIN], y[:N_TRAIN])
        for name, table in (("forest", narrow), ("wide", wide))
    }
    return {
        "forest": (narrow, forests["forest"]),
        "wide": (wide, forests["wide"]),
        "smooth": (narrow, smooth),
        "additive": (narrow, additive),
        "levels": (cut, smooth),
        "mixed": (mixed, smooth),
    }


def explain(X, model, approach, options, settings):
    explainer = cs.Explainer(
        model, approach=find_approach(approach)(**options), progress=False, device="cpu", **settings
    )
    return explainer.fit(X[:N_TRAIN]).explain(X[N_TRAIN : N_TRAIN + N_ROWS])


def main(path, *, networks):
    tables, numbers = problems(), {}
    for name, (problem, approach, options, settings) in CASES.items():
        if approach == "vaeac" and not networks:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = explain(*tables[problem], approach, options, settings)
        for kind in ("values", "std_errors"):
            numbers[f"{name}/{kind}"] = getattr(found, kind)
            numbers[f"{name}/table {kind}"] = getattr(found.value_table, kind)
    np.savez(path, **numbers)


if __name__ == "__main__":
    main(sys.argv[1], networks="--without-networks" not in sys.argv)
