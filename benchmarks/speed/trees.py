"""CPU seconds of a library's own predict and of condshap's evaluation of the same trees, side by side.

Run it with ``OMP_NUM_THREADS=1``: libraries that evaluate trees with several threads are held against one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor

from benchmarks.lib.measure import Measured, best, measure
from benchmarks.lib.report import parser, publish_rows
from condshap.studies.designs import burr_design
from condshap.trees import FastTrees

N_TRAIN, N_FEATURES, N_REPEATS = 1000, 10, 3


def rows_of(design: str, n: int, seed: int) -> np.ndarray:
    """Draw (n, M) rows of Burr or of standard normal features."""
    if design == "Burr":
        return burr_design(N_FEATURES, seed=1).draw(n, seed=seed).to_numpy()
    return np.random.default_rng(seed).normal(size=(n, N_FEATURES))


def response(X: np.ndarray) -> np.ndarray:
    """A response with interactions and noise for rows X (n, M)."""
    ranks = X.argsort(axis=0).argsort(axis=0) / len(X)
    noise = np.random.default_rng(3).normal(size=len(X))
    return (
        np.sin(3 * ranks[:, 0] * ranks[:, 1]) + ranks[:, 2] * ranks[:, 3] + ranks[:, 4:].sum(axis=1) / 3 + 0.1 * noise
    )


def models() -> Iterator[tuple[str, Any]]:
    """Unfitted models with one job, those whose libraries are installed."""
    forest = {"max_features": "sqrt", "min_samples_split": 6, "random_state": 0, "n_jobs": 1}
    yield "forest, 500 trees", RandomForestRegressor(500, **forest)
    yield "HistGradientBoosting, 100 trees", HistGradientBoostingRegressor(random_state=0)
    try:
        from xgboost import XGBRegressor

        yield "XGBoost, 100 trees", XGBRegressor(n_jobs=1)
        from lightgbm import LGBMRegressor

        yield "LightGBM, 100 trees", LGBMRegressor(n_jobs=1, verbose=-1)
    except ImportError:
        return


def measure_both(model: Any, X: np.ndarray) -> tuple[Measured, Measured]:
    """Measure predict of the model and of `FastTrees` on rows X (n, M) in turns; compiled code is loaded before."""
    fast = FastTrees(model)
    fast.predict(X[:10])
    pairs = [(measure(lambda: model.predict(X)), measure(lambda: fast.predict(X))) for _ in range(N_REPEATS)]
    return best(pair[0] for pair in pairs), best(pair[1] for pair in pairs)


def main() -> None:
    """Print the table."""
    given = parser("trees", __doc__)
    given.add_argument("--rows", type=int, default=200_000, help="rows that are predicted")
    options = given.parse_args()
    n_rows = options.rows
    heads = "| features | model | library, CPU s | condshap, CPU s | ratio | rows per CPU s | largest difference |"
    lines = [f"{n_rows} rows, trained on {N_TRAIN}\n", heads, "|" + 7 * " --- |"]
    for design in ("Burr", "normal"):
        train, X = rows_of(design, N_TRAIN, 1), rows_of(design, n_rows, 2)
        for name, model in models():
            library, ours = measure_both(model.fit(train, response(train)), X)
            gap = np.abs(library.result - ours.result).max()
            figures = f"{library.cpu:.2f} | {ours.cpu:.2f} | {library.cpu / ours.cpu:.1f} | {n_rows / ours.cpu:,.0f}"
            lines.append(f"| {design} | {name} | {figures} | {gap:.0e} |")
    publish_rows("trees", "\n".join(lines), write=options.write)


if __name__ == "__main__":
    main()
