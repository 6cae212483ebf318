"""Games of 12 to 25 players with a known v(S), so that all coalitions give the truth.

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


class Chain:
    """f = sum_j b_j x_j + c_j sin(w_j x_j) + e_j x_j^2 of normal features in a chain, each correlated with the next.

    Given x_S, a feature depends on its nearest known neighbours only, so v(S) is a closed form.
    """

    def __init__(self, n_features: int, n_rows: int, seed: int, *, correlation: float = 0.7) -> None:
        rng, self.rho = np.random.default_rng(seed), correlation
        self.rows = rng.normal(size=(n_rows, n_features))
        for j in range(1, n_features):
            self.rows[:, j] = self.rho * self.rows[:, j - 1] + np.sqrt(1 - self.rho**2) * self.rows[:, j]
        self.slopes, self.waves, self.bends = rng.normal(size=(3, n_features)) * [[1.0], [1.0], [0.5]]
        self.frequencies = rng.uniform(1, 2.5, n_features)

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Evaluate f."""
        return X @ self.slopes + np.sin(X * self.frequencies) @ self.waves + X**2 @ self.bends

    def values(self, masks: np.ndarray) -> np.ndarray:
        """E[f(X) | x_S], (C, R)."""
        total = np.zeros((len(masks), len(self.rows)))
        for j in range(masks.shape[1]):
            mean, variance = self._given(masks, j)
            wave = np.sin(self.frequencies[j] * mean) * np.exp(-(self.frequencies[j] ** 2) * variance / 2)
            total += self.slopes[j] * mean + self.waves[j] * wave + self.bends[j] * (mean**2 + variance)
        return total

    def _given(self, masks: np.ndarray, j: int) -> tuple[np.ndarray, np.ndarray]:
        """Mean (C, R) and variance (C, 1) of feature j given x_S."""
        (left, x_left), (right, x_right) = self._nearest(masks, j, -1), self._nearest(masks, j, 1)
        a, b = self.rho ** (2 * left), self.rho ** (2 * right)
        known = masks[:, [j]]
        scale = np.where(known, 1.0, 1 - a * b)
        mean = (np.sqrt(a) * (1 - b) * x_left + np.sqrt(b) * (1 - a) * x_right) / scale
        return np.where(known, self.rows[:, j], mean), np.where(known, 0.0, (1 - a) * (1 - b) / scale)

    def _nearest(self, masks: np.ndarray, j: int, step: int) -> tuple[np.ndarray, np.ndarray]:
        """Distance (C, 1) from j to the nearest known feature in a direction, infinite if there is none; its x (C, R)."""
        distance, x = np.full((len(masks), 1), np.inf), np.zeros((len(masks), len(self.rows)))
        for k in range(0 if step < 0 else masks.shape[1] - 1, j - step if step < 0 else j - 1, -step):
            distance = np.where(masks[:, [k]], float(abs(j - k)), distance)
            x = np.where(masks[:, [k]], self.rows[:, k], x)
        return distance, x


class Unanimity:
    """v(S) = sum_T c_T [T in S] over random sets T; as trees make them under independence if `largest` is small.

    Sets have all sizes up to `largest` alike, or, with `largest` 5, mostly one to three players.
    """

    def __init__(self, n_players: int, n_rows: int, seed: int, *, largest: int | None = None) -> None:
        rng = np.random.default_rng(seed)
        self.rows = rng.normal(size=(n_rows, n_players))  # to tell rows apart; v does not look at them
        some = [1, 2, 3] * n_players + [4, 5] * (n_players // 2)
        sizes = some if largest == 5 else rng.integers(1, (largest or n_players) + 1, 50)
        self.sets = [rng.choice(n_players, size, replace=False) for size in sizes]
        self.worths = rng.normal(size=(len(sizes), n_rows)) if largest == 5 else rng.random((len(sizes), n_rows))

    def values(self, masks: np.ndarray) -> np.ndarray:
        """v(S), (C, R)."""
        there = np.column_stack([masks[:, members].all(axis=1) for members in self.sets])
        return there @ self.worths


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
