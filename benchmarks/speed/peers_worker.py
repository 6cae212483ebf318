"""Problem in a file, name of a peer's method -> what it found and cost, as JSON; runs where shap and shapiq are installed.

It needs nothing but numpy, scikit-learn, shap and shapiq. The forest is fitted here again, because a stored one would need
pickle; its predictions must be those that came with the problem.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestRegressor

from benchmarks.lib.measure import Asked, installed_versions, measure

FOREST = {"n_estimators": 100, "max_depth": 8, "random_state": 0, "n_jobs": 2}
Predict = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Problem:
    """What every method gets: training rows (N, M), background (B, M), rows to explain (R, M), and the model."""

    train: np.ndarray
    background: np.ndarray
    X: np.ndarray
    coef: np.ndarray
    model: Any
    predict: Predict


def read_problem(path: str, kind: str) -> Problem:
    """Problem from its file: a linear model by its coefficients, a forest fitted again."""
    with np.load(path) as arrays:
        train, background, X, coef, y, expected = (
            arrays[name] for name in ("train", "background", "X", "coef", "y", "forest_predictions")
        )
    if kind == "linear":
        return Problem(train, background, X, coef, None, lambda rows: np.asarray(rows) @ coef)
    model = RandomForestRegressor(**FOREST).fit(train, y)
    if not np.allclose(model.predict(X), expected, rtol=0, atol=1e-9):
        raise SystemExit("The forest that was fitted here predicts otherwise: are versions of scikit-learn the same?")
    return Problem(train, background, X, coef, model, model.predict)


def kernel(problem: Problem, f: Predict, X: np.ndarray) -> np.ndarray:
    """KernelExplainer of shap as it comes: all coalitions of ten features, marginal expectation over the background."""
    import shap

    return shap.KernelExplainer(f, problem.background)(X, silent=True).values


def permutation(problem: Problem, f: Predict, X: np.ndarray) -> np.ndarray:
    """PermutationExplainer of shap as it comes."""
    import shap

    return shap.PermutationExplainer(f, problem.background)(X, silent=True).values


def linear_impute(problem: Problem, _f: Predict, X: np.ndarray) -> np.ndarray:
    """LinearExplainer of shap with Impute: conditional values of a linear model from mean and covariance."""
    import shap

    moments = {"mean": problem.train.mean(axis=0), "cov": np.cov(problem.train.T)}
    return shap.LinearExplainer((problem.coef, 0.0), shap.maskers.Impute(moments)).shap_values(X)


def tree(problem: Problem, _f: Predict, X: np.ndarray) -> np.ndarray:
    """TreeExplainer of shap, path dependent."""
    import shap

    return shap.TreeExplainer(problem.model)(X).values


def shapiq_gaussian(problem: Problem, f: Predict, X: np.ndarray) -> np.ndarray:
    """GaussianImputer of shapiq, which has to be put together by hand: 100 samples, all coalitions."""
    import shapiq
    from shapiq.imputer import GaussianImputer

    n_features, values = X.shape[1], []
    for x in X:
        game = GaussianImputer(f, problem.train, sample_size=100, random_state=0)
        game.fit(x)
        found = shapiq.KernelSHAP(n=n_features, random_state=0).approximate(budget=2**n_features, game=game)
        values.append(found.get_n_order_values(1))
    return np.array(values)


def shapiq_marginal(problem: Problem, f: Predict, X: np.ndarray) -> np.ndarray:
    """TabularExplainer of shapiq as it comes."""
    return _tabular(f, problem.background, X)


def shapiq_conditional(problem: Problem, f: Predict, X: np.ndarray) -> np.ndarray:
    """TabularExplainer of shapiq with its conditional imputer, on the background rows."""
    return _tabular(f, problem.background, X, imputer="conditional")


def _tabular(f: Predict, data: np.ndarray, X: np.ndarray, **options: Any) -> np.ndarray:
    import shapiq

    explainer = shapiq.TabularExplainer(f, data, index="SV", max_order=1, random_state=0, **options)
    found = explainer.explain_X(X, budget=2 ** X.shape[1])
    return np.array([values.get_n_order_values(1) for values in found])


METHODS = {
    "kernel": kernel,
    "permutation": permutation,
    "linear_impute": linear_impute,
    "tree": tree,
    "shapiq_gaussian": shapiq_gaussian,
    "shapiq_marginal": shapiq_marginal,
    "shapiq_conditional": shapiq_conditional,
}


def main(path: str, kind: str, method: str, n_rows: str) -> None:
    """Run one method on the first rows of a problem and print what it found and cost."""
    import shap  # noqa: F401 - loaded before the clock starts
    import shapiq  # noqa: F401

    problem = read_problem(path, kind)
    asked, X = Asked(), problem.X[: int(n_rows)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ran = measure(lambda: METHODS[method](problem, asked.around(problem.predict), X))
    cost = {"cpu": ran.cpu, "wall": ran.wall, "peak_mib": ran.peak_mib, "calls": asked.calls, "n_rows": asked.n_rows}
    packages = installed_versions(("shap", "shapiq", "scikit-learn", "numpy"))
    print(json.dumps({**cost, "values": np.asarray(ran.result).tolist(), "versions": packages}))


if __name__ == "__main__":
    main(*sys.argv[1:])
