"""Conditional draws from a multivariate normal distribution, for many coalitions and rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from condshap.numerics.chains import Chain
from condshap.numerics.sobol import normal_nets, power_of_two_at_least
from condshap.seeding import Streams
from condshap.types import Floats, Indices, Masks, Rows

_EIGENVALUE_FLOOR = 1e-8
_NORMALS = 2**18  # gathered at once
_ENTRIES = 2**20  # of matrices that are inverted at once


@dataclass(frozen=True, slots=True)
class NormalModel:
    """Mean (M,), scale (M,) and correlation (M, M) of a normal distribution; a scale of 0 is a constant feature."""

    mean: Floats
    scale: Floats
    correlation: Floats

    def condition(self, masks: Masks) -> list[Conditional]:
        """What x_unknown is given x_known, for every coalition (C, M)."""
        return condition(self.correlation, masks)


@dataclass(frozen=True, slots=True)
class ChainedNormal(NormalModel):
    """A normal distribution whose features are drawn along a causal chain: x_unknown given that x_known was set."""

    chain: Chain

    def condition(self, masks: Masks) -> list[Conditional]:
        """What x_unknown is after x_known was set, for every coalition (C, M)."""
        at_once = max(1, _ENTRIES // masks.shape[1] ** 2)
        blocks = (masks[start : start + at_once] for start in range(0, len(masks), at_once))
        return [given for block in blocks for given in self._condition(block)]

    def _condition(self, masks: Masks) -> list[Conditional]:
        maps, covariances = self._follow(masks)

        def cut(alike: Indices, known: Indices, unknown: Indices) -> tuple[Floats, Floats]:
            rows, own = alike[:, None, None], unknown[:, :, None]
            return np.ascontiguousarray(maps[rows, own, known[:, None]]), covariances[rows, own, unknown[:, None]]

        return _by_size(masks, cut)

    def _follow(self, masks: Masks) -> tuple[Floats, Floats]:
        """How features depend on those that were set, and their covariances then, both (C, M, M).

        Drawn features are z = B z + e, with slopes B on what their component is drawn given. So all features are
        (1 - B)^-1 times those that were set and e.
        """
        slopes, noise = np.zeros((2, *masks.shape, masks.shape[1]))
        for k, component in enumerate(self.chain.components):
            drawn, which = np.unique(self.chain.drawn(k, masks), axis=0, return_inverse=True)
            given, sizes = self.chain.given(k, component & ~drawn), drawn.sum(axis=1)
            own = np.zeros((2, len(drawn), *slopes.shape[1:]))
            for size in np.unique(sizes[sizes > 0]):
                alike = np.flatnonzero(sizes == size)
                old, new = _places(given[alike]), _places(drawn[alike])
                rows, at = alike[:, None, None], new[:, :, None]
                own[0, rows, at, old[:, None]], own[1, rows, at, new[:, None]] = _regress(self.correlation, old, new)
            slopes += own[0, which.ravel()]
            noise += own[1, which.ravel()]
        maps = np.linalg.inv(np.eye(masks.shape[1]) - slopes)
        return maps, maps @ noise @ np.swapaxes(maps, 1, 2)


@dataclass(frozen=True, slots=True)
class Conditional:
    """What x_unknown is given x_known, in units of mean and scale: z_u | z_k ~ N(coefficients z_k, factor factor')."""

    known: Indices
    unknown: Indices
    coefficients: Floats
    factor: Floats

    def predict(self, Z: Floats) -> Floats:
        """Means (R, u) of z_u for rows (R, M), by a product per row: together, other rows would change its last bits."""
        return np.asarray(np.matmul(np.ascontiguousarray(Z[:, None, self.known]), self.coefficients.T)[:, 0])


def condition(correlation: Floats, masks: Masks) -> list[Conditional]:
    """Condition a standardised normal distribution on the features of every coalition (C, M)."""
    return _by_size(masks, lambda _, known, unknown: _regress(correlation, known, unknown))


def _by_size(masks: Masks, describe: Callable[[Indices, Indices, Indices], tuple[Floats, Floats]]) -> list[Conditional]:
    """Coefficients and covariances of coalitions (C, M) -> conditional distributions.

    Coalitions of one size are done together: one by one, calling NumPy takes several times as long as its work.
    """
    sizes = masks.sum(axis=1)
    found: list[Conditional] = [None] * len(masks)  # type: ignore[list-item]
    for size in np.unique(sizes):
        alike = np.flatnonzero(sizes == size)
        known, unknown = _places(masks[alike]), _places(~masks[alike])
        coefficients, covariances = describe(alike, known, unknown)
        factors = _lower_factors((covariances + np.swapaxes(covariances, 1, 2)) / 2)
        for c, *given in zip(alike, known, unknown, coefficients, factors, strict=True):
            found[c] = Conditional(*given)
    return found


def _places(masks: Masks) -> Indices:
    """Positions (C, m) of the features of coalitions (C, M) that all have m of them."""
    return np.asarray(np.nonzero(masks)[1].reshape(len(masks), -1 if masks.any() else 0))


def _regress(correlation: Floats, known: Indices, unknown: Indices) -> tuple[Floats, Floats]:
    """Slopes (C, u, k) of features `unknown` (C, u) on `known` (C, k), and covariances (C, u, u) of what these leave."""
    across = correlation[known[:, :, None], unknown[:, None, :]]  # (C, k, u)
    has_known = known.shape[1] > 0
    solved = np.linalg.solve(correlation[known[:, :, None], known[:, None, :]], across) if has_known else across
    coefficients = np.ascontiguousarray(np.swapaxes(solved, 1, 2))
    return coefficients, correlation[unknown[:, :, None], unknown[:, None, :]] - coefficients @ across


def _lower_factors(covariances: Floats) -> Iterable[Floats]:
    """Factors of covariances (C, u, u)."""
    try:
        return np.asarray(np.linalg.cholesky(covariances), dtype=np.float64)
    except np.linalg.LinAlgError:  # of one of them at least
        return [lower_factor(covariance) for covariance in covariances]


def lower_factor(covariance: Floats) -> Floats:
    """Cholesky factor, or a symmetric root where rounding has made the matrix slightly indefinite."""
    try:
        return np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(covariance)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def draw_conditional(
    model: NormalModel,
    X: Rows,
    masks: Masks,
    n_samples: int,
    streams: Streams,
    *,
    margins_only: bool = False,
) -> Floats:
    """Draw the unknown features given the known ones by randomised quasi-Monte Carlo.

    Parameters
    ----------
    X : (R, M) rows
    masks : (C, M) coalitions, True = known
    n_samples : K
    streams : of the R rows
    margins_only : draw every unknown feature by itself, from its own coordinate of the net, which is evenly spread; what
        features have to do with each other given x_known is lost, and sums of functions of one feature do not miss it

    Returns
    -------
    (C, R, K, M), known columns unchanged
    """
    n_rows, n_features = X.shape
    pool = normal_nets(power_of_two_at_least(n_samples), n_features, streams.common_seed)
    nets = (streams.words(masks) % np.uint64(len(pool))).astype(np.intp)
    at_once = max(1, _NORMALS // (n_samples * n_features))
    out = np.empty((len(masks), n_rows, n_samples, n_features))
    divisor = np.where(model.scale > 0, model.scale, 1.0)
    Z = (X - model.mean) / divisor
    for c, given in enumerate(model.condition(masks)):
        n_unknown = len(given.unknown)
        transform = np.zeros((n_unknown, n_features))
        factor = np.diag(np.sqrt((given.factor**2).sum(axis=1))) if margins_only else given.factor
        transform[:, given.unknown] = factor.T * model.scale[given.unknown]
        centre = X.copy()
        centre[:, given.unknown] = model.mean[given.unknown] + model.scale[given.unknown] * given.predict(Z)
        for start in range(0, n_rows, at_once):  # a copy of some normals at a time
            some = slice(start, start + at_once)
            # a product per row, (K, u) with (u, M): one product of all rows has other bits for other rows beside
            np.matmul(pool[:, :n_samples, :n_unknown][nets[c, some]], transform, out=out[c, some])
        out[c] += centre[:, None, :]
    return out


def conditional_margins(model: NormalModel, X: Rows, mask: Masks) -> tuple[Indices, Floats, Floats]:
    """Unknown features (u,) of a coalition (M,), their means (u, R) given x_known for rows (R, M), and deviations (u,)."""
    (given,) = model.condition(mask[None])
    divisor = np.where(model.scale > 0, model.scale, 1.0)
    means = np.zeros((len(given.unknown), len(X)))
    for i, j in enumerate(given.known):  # one by one: a product of matrices has other bits for other rows beside
        means += given.coefficients[:, i, None] * ((X[:, j] - model.mean[j]) / divisor[j])
    scale = model.scale[given.unknown]
    means = model.mean[given.unknown, None] + scale[:, None] * means
    return given.unknown, means, scale * np.sqrt((given.factor**2).sum(axis=1))


def expect_conditional(model: NormalModel, X: Rows, masks: Masks, slopes: Floats) -> Floats:
    """E[X slopes | x_known] in closed form, for slopes (M, O): shape (C, R, O).

    With b the slopes of the unknown features, in units of their scale, the mean of z_u b is z_k R_kk^-1 R_ku b.
    """
    divisor = np.where(model.scale > 0, model.scale, 1.0)
    Z = (X - model.mean) / divisor
    out = np.empty((len(masks), len(X), slopes.shape[1]))
    chained = model.condition(masks) if isinstance(model, ChainedNormal) else None
    for c, mask in enumerate(masks):
        known, unknown = np.flatnonzero(mask), np.flatnonzero(~mask)
        own = model.scale[unknown, None] * slopes[unknown]
        moved: Floats
        if chained is not None:
            moved = np.asarray(chained[c].coefficients.T @ own)
        else:
            across = model.correlation[np.ix_(known, unknown)] @ own
            solved = np.linalg.solve(model.correlation[np.ix_(known, known)], across) if len(known) else across
            moved = np.asarray(solved)
        out[c] = model.mean[unknown] @ slopes[unknown]
        for i, j in enumerate(known):  # feature by feature: a product of matrices has other bits for other rows beside
            out[c] += X[:, j, None] * slopes[j] + Z[:, j, None] * moved[i]
    return out


def floor_eigenvalues(correlation: Floats) -> tuple[Floats, float]:
    """Shrink a correlation matrix towards the identity just enough to be safely invertible.

    Returns the matrix and the share of the identity in it, 0 where nothing was needed.
    """
    smallest = float(np.linalg.eigvalsh(correlation)[0])
    if smallest >= _EIGENVALUE_FLOOR:
        return correlation, 0.0
    share = (_EIGENVALUE_FLOOR - smallest) / (1.0 - smallest)
    return (1 - share) * correlation + share * np.eye(len(correlation)), share


def correlation_of(X: Rows) -> tuple[Floats, Floats, Floats]:
    """Mean (M,), standard deviation (M,) and correlation (M, M) of rows; constant columns correlate with nothing."""
    mean = np.where((X[:1] == X).all(axis=0), X[0], X.mean(axis=0))  # a constant's own mean may be a rounding away
    centred = X - mean
    magnitude = np.abs(centred).max(axis=0)
    magnitude[magnitude == 0] = 1.0  # scaled first, so that values near 1e200 do not overflow when squared
    scaled = centred / magnitude
    deviation = np.sqrt((scaled**2).sum(axis=0) / (len(X) - 1))
    standard = scaled / np.where(deviation > 0, deviation, 1.0)
    correlation = standard.T @ standard / (len(X) - 1)
    np.fill_diagonal(correlation, 1.0)
    return mean, deviation * magnitude, correlation
