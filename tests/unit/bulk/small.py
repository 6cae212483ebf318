"""One small explainer, quick to fit and to ask, with numbers, levels and a pair of outputs."""

from pathlib import Path

import numpy as np
import pandas as pd

import condshap as cs

LEVELS = ["low", "mid", "high"]


def make_rows(n: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 2)) @ np.array([[1.0, 0.6], [0.0, 0.8]]), columns=["age", "income"])
    X["code"] = rng.integers(0, 5, n)
    X["class"] = pd.Categorical(rng.choice(LEVELS, n), categories=LEVELS)
    return X


def model(X) -> np.ndarray:
    high = (np.asarray(X["class"]) == "high").astype(float)
    return np.asarray(X["age"] * X["income"] + X["code"] * high, dtype=float)


def explainer_of(X, **options) -> cs.Explainer:
    return cs.Explainer(model, **{"approach": "independence", "n_samples": 8, "progress": False, **options}).fit(X)


FEATURES = ["age", "income", "code", "class"]


def write_files(folder: Path, rows: pd.DataFrame, *sizes: int) -> Path:
    """Write rows to Parquet files a, b, ... of these sizes."""
    folder.mkdir(exist_ok=True)
    start = 0
    for name, size in zip("abcdef", sizes, strict=False):
        rows.iloc[start : start + size].to_parquet(folder / f"{name}.parquet", index=False)
        start += size
    return folder


def assert_same(found: cs.Explanation, expected: cs.Explanation) -> None:
    """Numbers are equal to the last bit."""
    for name in ("values", "std_errors", "model_errors", "base_values", "predictions"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    if found.value_table is not None:
        np.testing.assert_array_equal(found.value_table.values, expected.value_table.values)
        np.testing.assert_array_equal(found.value_table.coalitions, expected.value_table.coalitions)
