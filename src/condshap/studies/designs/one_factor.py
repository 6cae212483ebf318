r"""Integrals over the common factor of equicorrelated normals, some of them cut into levels.

Equal correlation rho >= 0 means x_j = sqrt(rho) Z + sqrt(1 - rho) e_j with independent standard normals, so given Z all
features are independent, and every conditional expectation is an integral over Z alone. Z lives on a lattice: by
Poisson's summation formula the trapezoidal rule with spacing h errs by about exp(-2 pi^2 s^2 / h^2) for an integrand of
standard deviation s. With h below 0.7 of the smallest s that can occur, that of Z given all features, this is 1e-17: a
factor on the lattice gives the features the same joint distribution as a continuous one, to rounding. Quadrature and
sampling share it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from condshap.studies.designs.linear import LinearModel
from condshap.types import Floats, Masks, Rows

_SPACING = 0.7
_TAIL = 8.5  # standard deviations on either side of the mode
_BLOCK_NUMBERS = 2**21


@dataclass(frozen=True, slots=True)
class OneFactor:
    """Distribution of M_cat factors followed by M_cont numbers.

    Attributes
    ----------
    n_categorical, n_continuous : M_cat and M_cont
    cutoffs : inner cut-off values v_2 < ... < v_L, the same for all factors
    rho : correlation of the normals behind the features, 0 <= rho < 1
    """

    n_categorical: int
    n_continuous: int
    cutoffs: tuple[float, ...]
    rho: float

    @property
    def signal(self) -> float:
        """Precision that one number adds to the factor, rho / (1 - rho)."""
        return self.rho / (1.0 - self.rho)


def log_level_probabilities(law: OneFactor, z: Floats) -> Floats:
    """Logarithm of P(x_j = l | Z = z), shape (L, G), right in both tails."""
    edges = np.array([-np.inf, *law.cutoffs, np.inf])
    scaled = (edges[:, None] - np.sqrt(law.rho) * z) / np.sqrt(1.0 - law.rho)
    low, high = scaled[:-1], scaled[1:]
    low, high = np.where(low > 0, -high, low), np.where(low > 0, -low, high)  # differences in the lower tail only
    log_low, log_high = log_ndtr(low), log_ndtr(high)
    return np.asarray(log_high + np.log1p(-np.exp(log_low - log_high)))


def lattice(law: OneFactor, X: Rows, masks: Masks) -> Floats:
    """Values of Z, shape (G,), that hold all of its mass given x_S for these rows (R, M) and coalitions (C, M).

    The log density of Z given x_S is concave with curvature below -1, and its mode lies within the sum of two bounds:
    the mode given the numbers alone, and the mode given that all factors have the same extreme level.
    """
    if law.rho == 0.0:
        return np.zeros(1)
    pulls, precisions = _numbers(law, X, masks)
    by_numbers = float(np.abs(pulls / (1.0 + precisions[:, None])).max(initial=0.0))
    wide = np.linspace(-60.0, 60.0, 2401)
    by_levels = wide[np.argmax(law.n_categorical * log_level_probabilities(law, wide) - wide**2 / 2, axis=1)]
    half_width = 2.0 * np.ceil((by_numbers + float(np.abs(by_levels).max()) + _TAIL) / 2.0)
    spacing = _SPACING / np.sqrt(1.0 + (law.n_categorical + law.n_continuous) * law.signal)
    n = int(np.ceil(half_width / spacing))
    return np.asarray(np.arange(-n, n + 1) * spacing)


def _numbers(law: OneFactor, X: Rows, masks: Masks) -> tuple[Floats, Floats]:
    """Linear term (C, R) and precision (C,) that the known numbers add to the log density of Z."""
    known = masks[:, law.n_categorical :].astype(np.float64)
    pulls = known @ X[:, law.n_categorical :].T * (np.sqrt(law.rho) / (1.0 - law.rho))
    return np.asarray(pulls), known.sum(axis=1) * law.signal


def factor_weights(law: OneFactor, X: Rows, masks: Masks, z: Floats) -> Iterator[tuple[slice, Floats]]:
    """P(Z = z_g | x_S), for blocks of rows: their slice and weights (C, rows, G) that sum to 1."""
    levels = log_level_probabilities(law, z)
    codes = X[:, : law.n_categorical].astype(np.intp)
    known = masks[:, : law.n_categorical].astype(np.float64)
    pulls, precisions = _numbers(law, X, masks)
    prior = -(1.0 + precisions[:, None, None]) / 2 * z**2
    at_once = max(1, _BLOCK_NUMBERS // (max(len(masks), law.n_categorical) * len(z)))
    for start in range(0, len(X), at_once):
        part = slice(start, min(start + at_once, len(X)))
        n_rows = part.stop - part.start
        evidence = levels[codes[part].T].reshape(law.n_categorical, n_rows * len(z))
        log_weights = (known @ evidence).reshape(len(masks), n_rows, len(z))
        log_weights += prior
        log_weights += pulls[:, part, None] * z
        log_weights -= log_weights.max(axis=2, keepdims=True)
        weights = np.exp(log_weights, out=log_weights)
        weights /= weights.sum(axis=2, keepdims=True)
        yield part, weights


def conditional_means(law: OneFactor, model: LinearModel, X: Rows, masks: Masks) -> Floats:
    """E[f(X) | x_S] of a linear model, shape (C, R), by quadrature over the factor (Appendix E.2 of the paper).

    Parameters
    ----------
    X : (R, M) encoded rows
    masks : (C, M), True = in S
    """
    z = lattice(law, X, masks)
    by_levels = model.level_effects @ np.exp(log_level_probabilities(law, z)) if law.n_categorical else None
    by_slopes = np.outer(model.slopes, np.sqrt(law.rho) * z)
    expected = by_slopes if by_levels is None else np.concatenate([by_levels, by_slopes])  # (M, G)
    unknown = (~masks).astype(np.float64) @ expected  # (C, G)
    v = model.intercept + masks.astype(np.float64) @ model.contributions(X).T
    for part, weights in factor_weights(law, X, masks, z):
        v[:, part] += np.matmul(weights, unknown[:, :, None])[..., 0]
    return np.asarray(v)


def draw_factor(law: OneFactor, X: Rows, masks: Masks, uniforms: Floats) -> Floats:
    """Draw Z given x_S by inversion of uniforms (C, R, K); same shape."""
    z = lattice(law, X, masks)
    out = np.empty_like(uniforms)
    for part, weights in factor_weights(law, X, masks, z):
        cdf = np.cumsum(weights, axis=2)
        cdf /= cdf[:, :, -1:]
        n_pairs = cdf.shape[0] * cdf.shape[1]
        ladder = cdf.reshape(n_pairs, -1) + np.arange(n_pairs)[:, None]  # one increasing sequence for all pairs
        wanted = uniforms[:, part].reshape(n_pairs, -1) + np.arange(n_pairs)[:, None]
        found = np.searchsorted(ladder.ravel(), wanted.ravel()).reshape(wanted.shape)
        found -= np.arange(n_pairs)[:, None] * len(z)
        out[:, part] = z[np.clip(found, 0, len(z) - 1)].reshape(out[:, part].shape)
    return out


def joint_probabilities(law: OneFactor, codes: Rows) -> Floats:
    """P(x_1 = l_1, ..., x_M = l_M) of cells (n, M) of an all-categorical design, shape (n,).

    Factors are exchangeable, so only the number of times that each level occurs matters.
    """
    n_levels = len(law.cutoffs) + 1
    counts = np.stack([(codes == level).sum(axis=1) for level in range(n_levels)], axis=1)
    unique, inverse = np.unique(counts, axis=0, return_inverse=True)
    z = lattice(law, codes[:1], np.zeros((1, codes.shape[1]), dtype=bool))
    log_prior = -(z**2) / 2
    log_prior -= np.log(np.exp(log_prior).sum())
    probabilities = np.exp(unique @ log_level_probabilities(law, z) + log_prior).sum(axis=1)
    return np.asarray(probabilities[inverse.ravel()])
