"""Games of 15 to 25 players with a known v(S), so that all coalitions give the truth.

Features have one common factor, X_j = l_j U + sqrt(1 - l_j^2) e_j, all normal, so U given x_S is normal with precision
1 + sum_S l_j^2 / (1 - l_j^2), and expectations of polynomials and exponentials are closed forms.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from xgboost import XGBRegressor

from condshap.numerics.shapley import shapley_coefficients

BLOCK = 2**14
TRAINING_ROWS = 2000


class Game(Protocol):
    """Rows to explain (R, M) and v(S) for them."""

    rows: np.ndarray

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict as the model that is explained does."""
        ...

    def values(self, masks: np.ndarray) -> np.ndarray:
        """v(S) of coalitions (C, M), shape (C, R)."""
        ...


class Factor:
    """Distribution of the features."""

    def __init__(self, n_features: int, rng: np.random.Generator) -> None:
        self.loadings = rng.uniform(0.4, 0.9, n_features)
        self.rest = np.sqrt(1 - self.loadings**2)

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Independent rows (n, M)."""
        return self.loadings * rng.normal(size=(n, 1)) + self.rest * rng.normal(size=(n, len(self.loadings)))

    def given(self, rows: np.ndarray, masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean (C, R) and variance (C, 1) of U given x_S."""
        pull = self.loadings / self.rest**2
        variance = 1 / (1 + masks @ (self.loadings * pull))[:, None]
        return masks @ (pull[:, None] * rows.T) * variance, variance


class ClosedForm:
    """f = sum_j b_j x_j, with interactions also + sum_k c_k x_a x_b + sum_j e_j exp(x_j / 2) for three j."""

    def __init__(self, n_features: int, n_rows: int, seed: int, *, interactions: bool) -> None:
        rng = np.random.default_rng(seed)
        M = n_features
        self.factor = Factor(M, rng)
        self.rows = self.factor.draw(n_rows, rng)
        self.slopes = rng.normal(size=M)
        self.first = np.arange(M)
        self.second = (self.first + rng.integers(1, 4, M)) % M
        self.products = rng.normal(size=M) * interactions
        self.exponentials = rng.normal(size=3) * interactions
        self.bent = rng.choice(M, 3, replace=False)

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Evaluate f."""
        products = (X[:, self.first] * X[:, self.second]) @ self.products
        return X @ self.slopes + products + np.exp(X[:, self.bent] / 2) @ self.exponentials

    def values(self, masks: np.ndarray) -> np.ndarray:
        """E[f(X) | x_S], (C, R)."""
        m = masks.astype(np.float64)
        X, load = self.rows.T, self.factor.loadings
        mean, variance = self.factor.given(self.rows, m)
        a, b, c = self.first, self.second, self.products
        total = m @ (self.slopes[:, None] * X) + ((1 - m) @ (self.slopes * load))[:, None] * mean
        if c.any():
            total += (m[:, a] * m[:, b]) @ (c[:, None] * X[a] * X[b])
            one_known = (m[:, a] * (1 - m[:, b])) @ (c[:, None] * X[a] * load[b, None])
            one_known += ((1 - m[:, a]) * m[:, b]) @ (c[:, None] * load[a, None] * X[b])
            total += one_known * mean
            total += ((1 - m[:, a]) * (1 - m[:, b])) @ (c * load[a] * load[b])[:, None] * (mean**2 + variance)
            for j, e in zip(self.bent, self.exponentials, strict=True):
                spread = load[j] ** 2 * variance + self.factor.rest[j] ** 2
                unknown = np.exp(load[j] * mean / 2 + spread / 8)
                total += e * np.where(masks[:, j, None], np.exp(X[j] / 2), unknown)
        return total


class Boosted:
    """XGBoost, 100 trees of depth 4; features that are not known are filled from K fixed draws.

    The draws are common to all coalitions: of the joint distribution (`conditional` False, as in approach independence), or
    from the conditional one given x_S. The mean over them defines v(S), so the game has no noise.
    """

    def __init__(self, n_features: int, n_rows: int, seed: int, *, conditional: bool, n_draws: int = 8) -> None:
        rng = np.random.default_rng(seed)
        self.factor, self.conditional = Factor(n_features, rng), conditional
        X = self.factor.draw(TRAINING_ROWS, rng)
        y = X @ rng.normal(size=n_features) + 2 * X[:, 0] * X[:, 1] + 3 * (X[:, 2] > 0) * X[:, 3]
        y += 2 * np.sin(2 * X[:, 4]) + X[:, 5] * X[:, 6] * (X[:, 7] > 0)
        self.model = XGBRegressor(n_estimators=100, max_depth=4, learning_rate=0.15, n_jobs=1).fit(X, y)
        self.rows, self.background = self.factor.draw(n_rows, rng), self.factor.draw(n_draws, rng)
        self.common, self.own = rng.normal(size=n_draws), rng.normal(size=(n_draws, n_features))

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Evaluate the model."""
        return self.model.predict(np.asarray(X, dtype=np.float32)).astype(np.float64)

    def values(self, masks: np.ndarray) -> np.ndarray:
        """Mean prediction over the draws, (C, R)."""
        found = [self._some(masks[start : start + 512]) for start in range(0, len(masks), 512)]
        return np.concatenate(found)

    def _some(self, masks: np.ndarray) -> np.ndarray:
        fill = self.background
        if self.conditional:
            mean, variance = self.factor.given(self.rows, masks.astype(np.float64))
            U = mean[:, :, None] + np.sqrt(variance)[:, :, None] * self.common
            fill = self.factor.loadings * U[..., None] + self.factor.rest * self.own
        filled = np.where(masks[:, None, None, :], self.rows[None, :, None, :], fill)
        outputs = self.predict(filled.reshape(-1, filled.shape[-1]))
        return outputs.reshape(filled.shape[:3]).mean(axis=2)


def unpack(codes: np.ndarray, n_players: int) -> np.ndarray:
    """Coalitions (n, P) of integers whose bits are the players."""
    return ((codes[:, None] >> np.arange(n_players)) & 1).astype(bool)


def exact_values(game: Game) -> np.ndarray:
    """Shapley values (P, R) from all 2^P coalitions, eq. (1) of the paper, in blocks."""
    n_rows, P = game.rows.shape
    inside, outside = shapley_coefficients(P)
    phi = np.zeros((P, n_rows))
    for start in range(0, 2**P, BLOCK):
        masks = unpack(np.arange(start, min(start + BLOCK, 2**P)), P)
        v, sizes = game.values(masks), masks.sum(axis=1)
        phi += masks.T.astype(np.float64) @ ((inside - outside)[sizes, None] * v) + outside[sizes] @ v
    return phi
