"""Tables of the draw check: normals, columns that repeat each other, and dependence that is hard to see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from condshap.studies.designs import burr_design, categorical_design, mixed_design
from condshap.testing.truth import GaussianTruth

Make = Callable[[int, int], pd.DataFrame]
"""Rows, seed -> table."""


def normals(n_features: int, rho: float, n: int, seed: int) -> pd.DataFrame:
    """Normals with equal correlations."""
    rng = np.random.default_rng([seed, n_features, n])
    covariance = rho + (1 - rho) * np.eye(n_features)
    X = rng.multivariate_normal(np.zeros(n_features), covariance, size=n)
    return pd.DataFrame(X, columns=[f"x{j + 1}" for j in range(n_features)])


def duplicates(n: int, seed: int) -> pd.DataFrame:
    """Four columns that correlate with .998, and two more with .6."""
    rng = np.random.default_rng([seed, n])
    common = rng.normal(size=(n, 1))
    four, two = common + 0.045 * rng.normal(size=(n, 4)), 0.78 * common + 0.62 * rng.normal(size=(n, 2))
    return pd.DataFrame(np.hstack([four, two]), columns=["d1", "d2", "d3", "d4", "e1", "e2"])


def gems(n: int, seed: int) -> pd.DataFrame:
    """Table like that of diamonds: three lengths that go with the weight's cube root, and a purity that falls with it."""
    rng = np.random.default_rng([seed, n, 1])
    carat = np.exp(rng.normal(-0.4, 0.6, size=n))
    lengths = 6.4 * np.cbrt(carat)[:, None] * np.exp(0.01 * rng.normal(size=(n, 3))) * [1, 1, 0.62]
    purity = pd.cut(
        -np.log(carat) + 1.2 * rng.normal(size=n), [-np.inf, -0.6, 0.4, 1.4, np.inf], labels=["I1", "SI", "VS", "IF"]
    )
    columns = {
        "carat": carat,
        "x": lengths[:, 0],
        "y": lengths[:, 1],
        "z": lengths[:, 2],
        "depth": rng.normal(62, 1.4, size=n),
    }
    return pd.DataFrame(
        {**columns, "cut": pd.Categorical(rng.choice(["Fair", "Good", "Ideal"], size=n)), "purity": purity}
    )


class NormalDesign:
    """Normals with equal correlations, as a design."""

    def __init__(self, n_features: int, rho: float) -> None:
        self.n_features, self.rho = n_features, rho
        self.truth = GaussianTruth(np.zeros(n_features), rho + (1 - rho) * np.eye(n_features))
        self.truth.fit(None, None, plan=None, seed=0)

    def draw(self, n: int, seed: int) -> pd.DataFrame:
        """Draw a table of n rows."""
        return normals(self.n_features, self.rho, n, seed)

    def sample_conditional(self, X: Any, masks: Any, n_samples: int, *, seed: int, keys: Any) -> Any:
        """Draw from the truth, (C, R, K, M)."""
        return self.truth.sample(X, masks, n_samples, keys=keys, seed=seed).rows


def plain_tables() -> dict[str, Make]:
    """Data on which networks are known to be right."""
    return {
        "normal, M = 4, rho = 0.3": lambda n, s: normals(4, 0.3, n, s),
        "Burr, M = 5": lambda n, s: burr_design(5, seed=s).draw(n, s),
        "mixed, M = 4, rho = 0.5": lambda n, s: mixed_design("M4", 0.5, s).draw(n, s),
        "categorical, M = 4, L = 3, rho = 0.5": lambda n, s: categorical_design(4, 3, 0.5, s).draw(n, s),
    }


def hidden_tables() -> dict[str, Make]:
    """Dependence that is hard to see; the columns are drawn as if there were none, or by a copula."""

    def table_of(columns: Callable[[Any, int], list[Any]]) -> Make:
        def make(n: int, seed: int) -> pd.DataFrame:
            values = columns(np.random.default_rng([seed, n]), n)
            return pd.DataFrame({f"x{j + 1}": column for j, column in enumerate(values)})

        return make

    def square(rng: Any, n: int) -> list[Any]:
        x = rng.normal(size=n)
        return [x, x**2 + 0.3 * rng.normal(size=n), rng.normal(size=n)]

    def circle(rng: Any, n: int) -> list[Any]:
        angle = rng.uniform(0, 2 * np.pi, size=n)
        return [np.cos(angle) + 0.1 * rng.normal(size=n), np.sin(angle) + 0.1 * rng.normal(size=n), rng.normal(size=n)]

    def wave(rng: Any, n: int) -> list[Any]:
        x = rng.uniform(-1, 1, size=n)
        return [x, np.sin(4 * np.pi * x) + 0.2 * rng.normal(size=n), rng.normal(size=n)]

    def tails(rng: Any, n: int) -> list[Any]:
        x, y = rng.normal(size=(2, n))
        return [x, np.where(np.abs(x) > 1.645, x, np.clip(y, -1.645, 1.645)), rng.normal(size=n)]

    def by_level(rng: Any, n: int) -> list[Any]:
        level, x = rng.integers(0, 2, size=n), rng.normal(size=n)
        return [x, 0.9 * x * (2 * level - 1) + 0.44 * rng.normal(size=n), pd.Categorical(np.where(level, "up", "down"))]

    def of_states(rng: Any, n: int) -> list[Any]:
        state, means = rng.integers(0, 48, size=n), rng.normal(size=(48, 2))
        numbers = means[state] + 0.2 * rng.normal(size=(n, 2))
        return [*numbers.T, pd.Categorical(state.astype(str))]

    def parity(rng: Any, n: int) -> list[Any]:
        a, b = rng.integers(0, 2, size=(2, n))
        return [pd.Categorical(one.astype(str)) for one in (a, b, a ^ b)]

    def scale(rng: Any, n: int) -> list[Any]:
        x = rng.normal(size=n)
        return [x, np.exp(0.8 * x) * rng.normal(size=n), rng.normal(size=n)]

    kinds = {
        "y = x^2": square, "a circle": circle, "y = sin(4 pi x)": wave, "equal in the tails only (10 % of rows)": tails,
        "sign by a third column's level (rho = ±.9)": by_level, "parity of three levels": parity,
        "spread that grows with x": scale, "a level of 48 that nearly determines two numbers": of_states,
    }  # fmt: skip
    return {name: table_of(columns) for name, columns in kinds.items()}
