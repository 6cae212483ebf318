"""v(S) of some coalitions -> the best game of low order in the sense of the Shapley kernel, FSII, and how sure it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
from scipy.special import eval_legendre

from condshap.numerics.interactions import PlayerSet, common_players, moebius_weight, spread_of
from condshap.numerics.kriging import few_pairs_factor
from condshap.numerics.shapley import column_sums, each_column, kernel_weights
from condshap.types import Floats, Masks

_RANK_TOLERANCE = 1e-7  # smallest over largest singular value
_FOLLOWED = 0.1
_LEAST_SPARE, _PLENTY = 0.5, 4.0  # lines more than unknowns: to be judged at all, and to afford curves
_MOST_CURVES = 3


@dataclass(frozen=True, slots=True, eq=False)
class FaithfulRegression:
    """The best game of the given order in the sense of the Shapley kernel, from some of the coalitions.

    It meets v of no player and v of all exactly. Coalitions of one size share the kernel's weight of that size, whatever
    their number, and curves in that size stand beside the sets of players (see `_size_curves`), so that the regression
    estimates the one with all coalitions. A game of the given order is found exactly.

    Attributes
    ----------
    operator : (sets, C) such that the interactions are ``operator @ v``; the empty set has v of no player
    even : (C - 2,) share of all sets, but the empty one, that are in the interior coalition
    hat : (C - 2, C - 2) from what the interior coalitions add to that share of v(all) - v(0) to its fit
    parts : what lacking coalitions may change, see `Part`
    """

    operator: Floats
    even: Floats
    hat: Floats
    parts: tuple[Part, ...]

    @classmethod
    def of(cls, masks: Masks, sets: Sequence[PlayerSet]) -> FaithfulRegression | None:
        """Regression on coalitions (C, P), the empty one first and the grand one last.

        None if they do not determine it, or leave nothing to judge it by.
        """
        inner, n_sets = masks[1:-1], len(sets) - 1
        in_coalition = (common_players(inner, sets[1:]) == [[len(members)] for members in sets[1:]]).T.astype(
            np.float64
        )
        missing, weights = _missing_and_weights(inner)
        free = np.linalg.qr(np.ones((n_sets, 1)), mode="complete")[0][:, 1:]  # the sum over all sets is known
        for n_curves, least_spare in ((_MOST_CURVES, _PLENTY), (0, _LEAST_SPARE)):
            curves, of_curves = _size_curves(masks.shape[1], sets, n_curves)
            fit = _Fit.of(np.hstack([in_coalition @ free, curves[inner.sum(axis=1)]]), weights)
            if fit is None:
                continue
            parts = tuple(Part.of(combined, fit.span, missing) for combined in _sums_and_differences(inner))
            if all(part.spare >= least_spare or not part.missing.any() for part in parts):
                break
        else:
            return None
        response = free @ fit.solved[: n_sets - 1] + of_curves[1:] @ fit.solved[n_sets - 1 :]
        even = in_coalition.mean(axis=1)
        A = np.zeros((len(sets), len(masks)))
        A[0, 0] = 1.0
        A[1:, 1:-1] = response
        A[1:, -1] = 1 / n_sets - response @ even
        A[1:, 0] = -A[1:, 1:].sum(axis=1)
        return cls(A, even, fit.hat, parts)

    def solve(self, v: Floats, variances: Floats) -> tuple[Floats, Floats]:
        """Interactions and their variances, both (sets, n), from v and its variances, both (C, n).

        The variances have Monte Carlo noise in them and what the lacking coalitions would change, from how far v is from
        the fitted game.
        """
        found = each_column(self.operator, v)
        return found, spread_of(self.operator, variances) + self._from_lacking_coalitions(v, variances)

    def _from_lacking_coalitions(self, v: Floats, variances: Floats) -> Floats:
        added = v[1:-1] - v[0] - self.even[:, None] * (v[-1] - v[0])
        residuals = added - each_column(self.hat, added)
        noise = np.nan_to_num(variances[1:-1])
        A = self.operator[:, 1:-1]
        return np.asarray(sum(part.variances(A, residuals, noise) for part in self.parts))


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    """Weighted least squares: coefficients are ``solved @ y``, fitted values ``hat @ y``, and `span` is orthonormal."""

    solved: Floats
    hat: Floats
    span: Floats

    @classmethod
    def of(cls, columns: Floats, weights: Floats) -> _Fit | None:
        """Fit of columns (n, k) with weights (n,); None where they do not determine their coefficients."""
        if len(columns) < columns.shape[1]:
            return None
        root = np.sqrt(weights)[:, None]
        left, singular, right = np.linalg.svd(root * columns, full_matrices=False)
        if len(singular) and singular[-1] <= _RANK_TOLERANCE * singular[0]:
            return None
        weighted = (left * root).T
        return cls((right.T / singular) @ weighted, (left / root) @ weighted, left)


def _missing_and_weights(inner: Masks) -> tuple[Floats, Floats]:
    """Share of all coalitions of its size that the table lacks, and weight in the regression, both (C - 2,).

    Where a size is lacking altogether, no coalition stands for it, and none counts as certain to be in the table.
    """
    P, size = inner.shape[1], inner.sum(axis=1)
    there = np.bincount(size, minlength=P)
    share = there[size] / np.array([comb(P, int(s)) for s in size])
    missing = 1.0 - share if there[1:].all() else np.ones(len(inner))
    return missing, kernel_weights(P)[size - 1] / share


def _size_curves(n_players: int, sets: Sequence[PlayerSet], n_curves: int) -> tuple[Floats, Floats]:
    """Games that only know how many players they have, (P + 1, q), and what they have for interactions, (sets, q).

    Where features depend on each other, the first of them tell most and the last little. No game of low order follows such
    a curve. What it does to the regression is known for all coalitions, so it need not be guessed from some of them.
    """
    P, order = n_players, len(sets[-1])
    degrees = range(order - 1, min(order - 1 + n_curves, P - 2))
    s = np.arange(P + 1.0)
    scaled = 4 * s * (P - s) / P**2
    curves = np.array([scaled * eval_legendre(degree, 2 * s / P - 1) for degree in degrees]).reshape(-1, P + 1).T
    by_size = np.zeros((order + 1, curves.shape[1]))
    for q, degree in enumerate(degrees):
        for t in range(1, degree + 3):  # polynomials have no Moebius coefficients beyond their degree
            moebius = sum((-1) ** (t - i) * comb(t, i) * curves[i, q] for i in range(t + 1))
            for size in range(1, min(t, order) + 1):
                by_size[size, q] += float(moebius_weight("FSII", t, size, order)) * comb(P - size, t - size) * moebius
    return curves, by_size[[len(members) for members in sets]]


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Half of the information of a sampled table: sums, or differences, of the values of a coalition and its complement.

    Sets of an even number of players show in the sums, others in the differences, and one half may be fitted closely while
    the other has much to spare.

    Attributes
    ----------
    combined : (n, C - 2), orthonormal lines
    kept : (n,) 1 less the leverage: how much of a deviation the fit leaves in its residual
    missing : (n,) share of such coalitions that the table lacks
    """

    combined: Floats
    kept: Floats
    missing: Floats

    @classmethod
    def of(cls, combined: Floats, left: Floats, missing: Floats) -> Part:
        """Part of a regression whose fitted values are spanned by the orthonormal columns `left` (C - 2, n_free)."""
        fitted = combined @ left
        return cls(combined, 1.0 - np.einsum("ci,ci->c", fitted, fitted), combined**2 @ missing)

    @property
    def spare(self) -> float:
        """How many lines more than unknowns there are."""
        return float(self.kept.sum())

    def variances(self, A: Floats, residuals: Floats, noise: Floats) -> Floats:
        """Variances (m, n) of ``A @ v`` for the lack of coalitions, from residuals and noise of v, both (C - 2, n).

        Nearly a Horvitz-Thompson estimate, sum (1 - pi) (A r)^2, with residuals enlarged because the fit has bent towards
        v. Where it follows v closely, the average residual says more. Noise is counted elsewhere and taken off. Few spare
        coalitions make all this uncertain: Student's t says by how much.
        """
        influence = (A @ self.combined.T) ** 2 * self.missing
        if not influence.any():
            return np.zeros((len(A), residuals.shape[1]))
        squares = each_column(self.combined, residuals) ** 2
        followed = (self.kept < _FOLLOWED)[:, None]
        honest = np.where(
            followed, column_sums(squares) / self.spare, squares / np.maximum(self.kept, _FOLLOWED)[:, None]
        )
        lacking = each_column(influence, honest - each_column(self.combined**2, noise))
        return np.maximum(lacking, 0.0) * few_pairs_factor(round(self.spare))


def _sums_and_differences(inner: Masks) -> tuple[Floats, Floats]:
    """Orthonormal lines (n, C - 2) that add up, and subtract, the values of a coalition and its complement.

    A coalition without its complement is a line of the sums.
    """
    sides = np.where(inner[:, :1], ~inner, inner)  # one name for a coalition and its complement
    names, pair, count = np.unique(sides, axis=0, return_inverse=True, return_counts=True)
    lines, columns = pair.ravel(), np.arange(len(inner))
    sums, differences = np.zeros((2, len(names), len(inner)))
    sums[lines, columns] = 1 / np.sqrt(count[lines])
    differences[lines, columns] = np.where(inner[:, 0], 1.0, -1.0) / np.sqrt(count[lines])
    return sums, differences[count == 2]
