"""Problems that several benchmarks share."""

from __future__ import annotations

import numpy as np
import pandas as pd


def correlated_normals(n: int, n_features: int, rho: float, seed: int) -> pd.DataFrame:
    """Draw n rows of equicorrelated standard normals."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(n, 1))
    rows = np.sqrt(rho) * common + np.sqrt(1 - rho) * rng.normal(size=(n, n_features))
    return pd.DataFrame(rows, columns=[f"f{j}" for j in range(n_features)])


def smooth_response(X: pd.DataFrame, seed: int) -> np.ndarray:
    """Draw a response with main effects, a product and noise."""
    x = X.to_numpy()
    signal = x @ np.linspace(0.5, 1.5, x.shape[1]) + x[:, 0] * x[:, 1] + np.sin(2 * x[:, 2])
    return signal + np.random.default_rng(seed).normal(scale=0.5, size=len(x))


def compile_kernels() -> None:
    """Have all compiled code on disk: the first use on a machine compiles for some seconds, which is nobody's own cost."""
    from sklearn.ensemble import RandomForestRegressor

    import condshap as cs

    X = correlated_normals(50, 3, 0.5, seed=0)
    forest = RandomForestRegressor(2, random_state=0).fit(X, X.sum(axis=1))
    cs.explain(forest, X, X.iloc[:2], approach="ctree", progress=False)
