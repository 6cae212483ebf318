r"""The linear algebra of Shapley values: phi is a linear function of v.

With all coalitions phi = A v has, by eq. (1) of the paper,

.. math::

    A_{jS} = \frac{(s-1)!\,(P-s)!}{P!} \text{ if } j \in S, \qquad A_{jS} = -\frac{s!\,(P-s-1)!}{P!} \text{ if } j \notin S,

which depends on S only through its size s and whether it holds j. With fewer coalitions phi minimises
sum_S w_S (v(S) - v(0) - sum_{j in S} phi_j)^2 subject to sum_j phi_j = v(all) - v(0), which is linear in v as well.
"""

from __future__ import annotations

from math import comb

import numpy as np

from condshap.types import Floats, Masks

_BLOCK = 65536  # coalitions turned into floats at a time
_RANK_TOLERANCE = 1e-10


def each_column(operator: Floats, columns: Floats) -> Floats:
    """Product (m, n) of an operator (m, k) with every one of n columns (k, n) by itself.

    A product with all of them at once rounds by their number, and so a column's result by which others there are.
    """
    apart = np.ascontiguousarray(columns.T)[:, :, None]
    return np.asarray(np.matmul(np.ascontiguousarray(operator), apart)[:, :, 0].T)


def column_sums(columns: Floats) -> Floats:
    """Sums (n,) of columns (k, n), each added up in the same order whatever others there are."""
    return np.asarray(np.ascontiguousarray(columns.T).sum(axis=1))


def kernel_weights(n_players: int) -> Floats:
    """Shapley kernel weights (P - 1) / (C(P, s) s (P - s)) of sizes s = 1, ..., P-1.

    >>> kernel_weights(3).round(4).tolist()
    [0.3333, 0.3333]
    """
    sizes = range(1, n_players)
    return np.array([(n_players - 1) / (comb(n_players, s) * s * (n_players - s)) for s in sizes], dtype=np.float64)


def shapley_coefficients(n_players: int) -> tuple[Floats, Floats]:
    """Coefficients of v(S) by size s = 0, ..., P: for members of S, and for the others (negative); both (P + 1,)."""
    P = n_players
    inside = np.array([0.0] + [1 / (s * comb(P, s)) for s in range(1, P + 1)])
    outside = np.array([-1 / ((P - s) * comb(P, s)) for s in range(P)] + [0.0])
    return inside, outside


def exact_shapley(v: Floats, masks: Masks) -> Floats:
    """Shapley values (P, n) of all 2^P values v (2^P, n), whatever their order, in O(P 2^P) per column."""
    return _apply_by_size(v, masks, *shapley_coefficients(masks.shape[1]))


def exact_shapley_variances(variances: Floats, masks: Masks) -> Floats:
    """Variances (P, n) of Shapley values when the v(S) are uncorrelated with these variances (2^P, n)."""
    inside, outside = shapley_coefficients(masks.shape[1])
    return _apply_by_size(variances, masks, inside**2, outside**2)


def _apply_by_size(v: Floats, masks: Masks, inside: Floats, outside: Floats) -> Floats:
    """Sum of inside[s] v(S) over S with j and outside[s] v(S) over S without j, in blocks of coalitions."""
    total = np.zeros((masks.shape[1], v.shape[1]))
    for start in range(0, len(masks), _BLOCK):
        block = masks[start : start + _BLOCK]
        sizes = block.sum(axis=1)
        total += each_column(np.where(block.T, inside[sizes], outside[sizes]), v[start : start + _BLOCK])
    return total


def _contrasts(n_players: int) -> Floats:
    """Orthonormal basis (P, P - 1) of the vectors that sum to zero."""
    P = n_players
    basis = np.zeros((P, P - 1))
    for j in range(1, P):
        basis[:j, j - 1] = 1.0
        basis[j, j - 1] = -j
        basis[:, j - 1] /= np.sqrt(j * (j + 1))
    return basis


def can_separate(masks: Masks, weights: Floats) -> bool:
    """Tell whether interior coalitions (C, P) determine every player's value, given that the sum is known."""
    n_players = masks.shape[1]
    if n_players < 2:
        return True
    design = masks @ _contrasts(n_players) * np.sqrt(weights / weights.sum())[:, None]
    eigenvalues = np.linalg.eigvalsh(design.T @ design)
    return bool(eigenvalues[0] > _RANK_TOLERANCE * eigenvalues[-1])


def wls_operator(masks: Masks, weights: Floats) -> tuple[Floats, Floats]:
    """Solve the constrained regression once for all rows.

    Parameters
    ----------
    masks : (C, P), the empty coalition first and the grand coalition last
    weights : (C,), positive for the interior coalitions

    Returns
    -------
    A : (P, C) such that phi = A v; efficiency holds exactly because the constraint is built in
    leverage : (C,) of the interior coalitions, between 0 and 1; 0 for the two trivial ones
    """
    n_players = masks.shape[1]
    Q = _contrasts(n_players)
    inner = masks[1:-1].astype(np.float64)
    w = weights[1:-1]
    projected = inner @ Q
    gram = np.linalg.inv(projected.T @ (w[:, None] * projected))
    half = Q @ gram @ (projected * w[:, None]).T  # (P, C - 2): response to v(S) - v(0) - |S|/P (v(all) - v(0))
    A = np.zeros((n_players, len(masks)))
    A[:, 1:-1] = half
    share = half @ inner.mean(axis=1)
    A[:, -1] = 1 / n_players - share
    A[:, 0] = -1 / n_players - half.sum(axis=1) + share
    leverage = np.zeros(len(masks))
    leverage[1:-1] = w * np.einsum("ci,ij,cj->c", projected, gram, projected)
    return A, leverage
