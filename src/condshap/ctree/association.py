"""Moments of a node -> statistic, degrees of freedom and p-value of every predictor."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from condshap.ctree.eigen import diagonalise, largest
from condshap.ctree.moments import Moments, Problem
from condshap.numerics.jit import kernel

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

TOLERANCE = 1e-10
"""Eigenvalues count if larger than this times the largest, of response columns of variance 1: units have no say."""

DEPENDENT = 1e-13
"""A response column with a smaller share of its variance left, given the columns before it, is a combination of them."""

SAFETY = 10.0
"""The short way is taken only where bounds on all eigenvalues clear the tolerance by this factor."""


class Whitening(NamedTuple):
    """Two ways to V^+, the second only where the first cannot be trusted.

    Attributes
    ----------
    basis : (q,) of which the first r are response columns that span the others
    inverse_root : (q, q) of which the upper left (r, r) block is L^-1, where L L' = V restricted to the basis
    values, vectors : (q,), (q, q) eigenvalues and eigenvectors (columns) of the correlations that belong to V
    scales : (q,) standard deviations of the response columns, 0 for constants
    """

    basis: Integers
    inverse_root: Floats
    values: Floats
    vectors: Floats
    scales: Floats


@kernel
def empty_whitening(q: int) -> Whitening:
    """Room for the decompositions of any node with q response columns."""
    return Whitening(np.empty(q, np.int64), np.empty((q, q)), np.empty(q), np.empty((q, q)), np.empty(q))


@kernel
def chi2_tail(x: float, df: int) -> float:
    """P(chi2_df > x), by the finite sums that integer degrees of freedom allow.

    With y = x / 2 and a = 0 (even df) or 1/2 (odd df) the tail is [erfc(sqrt(y)) if df is odd] plus the sum over
    k < df // 2 of exp(-y) y^(k + a) / Gamma(k + a + 1). All terms are positive: summed outwards from the largest one
    there is neither cancellation nor overflow.
    """
    if df == 0 or not x > 0.0:
        return 1.0
    y, n_terms = 0.5 * x, df // 2
    shift = 0.5 * (df % 2)
    tail = math.erfc(math.sqrt(y)) if df % 2 == 1 else 0.0
    if n_terms > 0:
        peak = min(n_terms - 1, int(min(y, 1e9)))
        largest = math.exp((peak + shift) * math.log(y) - y - math.lgamma(peak + shift + 1.0))
        tail += largest
        term = largest
        for k in range(peak, 0, -1):
            term *= (k + shift) / y
            tail += term
        term = largest
        for k in range(peak + 1, n_terms):
            term *= y / (k + shift)
            tail += term
    return min(tail, 1.0)


@kernel
def invert_root(scatter: Floats, n: int, basis: Integers, root: Floats) -> tuple[int, float]:
    """Cholesky factor of V on a basis of its columns, inverted: L^-1 with L L' = V_basis.

    Column by column: with L^-1 of the columns chosen so far, the next row of L is L^-1 times the new column of V, and what
    remains of its variance is the pivot. Columns with nothing left are combinations of the others (the last dummy of a
    nominal response, levels that do not occur, constants, copies) and are left out. With R the correlations that belong to
    V, the eigenvalues of R that remain are not smaller than those of R_basis, because R = B R_basis B' with B'B = I +
    something positive.

    Returns
    -------
    The size r of the basis, and 1 / trace(R_basis^-1), a lower bound for the smallest nonzero eigenvalue of R.
    """
    r = 0
    row = np.empty(len(basis))
    precision = 0.0
    for j in range(len(basis)):
        pivot = scatter[j, j] / n
        smallest = DEPENDENT * pivot
        for k in range(r):
            total = 0.0
            for l in range(k + 1):
                total += root[k, l] * scatter[basis[l], j]
            row[k] = total / n
            pivot -= row[k] * row[k]
        if not pivot > smallest:
            continue
        diagonal = math.sqrt(pivot)
        for l in range(r):
            total = 0.0
            for k in range(l, r):
                total += row[k] * root[k, l]
            root[r, l] = -total / diagonal
            precision += root[r, l] * root[r, l] * (scatter[basis[l], basis[l]] / n)
        root[r, r] = 1.0 / diagonal
        precision += scatter[j, j] / n / pivot
        basis[r] = j
        r += 1
    return r, 1.0 / precision if r > 0 else 0.0


@kernel
def whitened_square(root: Floats, basis: Integers, r: int, d: Floats) -> float:
    """Square of d in the metric of V^+, that is |L^-1 d_basis|^2, for d in the range of V."""
    square = 0.0
    for j in range(r):
        total = 0.0
        for k in range(j + 1):
            total += root[j, k] * d[basis[k]]
        square += total * total
    return square


@kernel
def predictor_covariance(moments: Moments, n: int, first: int, last: int, spread: float, nominal: bool) -> Floats:
    """n/(n-1) (G'G - s s'/n) of one predictor: 1 x 1 if numeric, levels x levels if nominal."""
    f = n / (n - 1.0)
    covariance = np.empty((last - first, last - first))
    if not nominal:
        covariance[0, 0] = f * spread
        return covariance
    for k in range(first, last):
        for l in range(first, last):
            own = moments.sizes[k] if k == l else 0.0
            covariance[k - first, l - first] = f * (own - moments.sizes[k] * moments.sizes[l] / n)
    return covariance


@kernel
def decompose(scatter: Floats, n: int, whitening: Whitening) -> None:
    """Fill the scales of the response columns, and eigenvalues and eigenvectors of their correlations."""
    scales, q = whitening.scales, len(scatter)
    correlations = np.zeros((q, q))
    for j in range(q):
        scales[j] = math.sqrt(scatter[j, j] / n)
        for k in range(j + 1):
            if scales[j] > 0.0 and scales[k] > 0.0:
                correlations[j, k] = correlations[k, j] = scatter[j, k] / n / (scales[j] * scales[k])
    diagonalise(correlations, whitening.values, whitening.vectors)


@kernel
def exact_form(whitening: Whitening, covariance: Floats, cross: Floats) -> tuple[float, int]:
    """Statistic and rank from the eigenvalues of both factors of Sigma = R (x) C, for response columns of variance 1.

    The eigenvalues of Sigma are the products v_i c_l; those above TOLERANCE times the largest count, and the statistic
    is the sum over them of (u_i' D w_l)^2 / (v_i c_l), with D = `cross` (levels, q) the centred linear statistic over the
    scales. That is the statistic of the columns as they are, because D is in the range of Sigma.
    """
    v, u = whitening.values, whitening.vectors
    c, w, combined = np.empty(len(covariance)), np.empty(covariance.shape), np.empty(len(v))
    diagonalise(covariance, c, w)
    limit = TOLERANCE * largest(v) * largest(c)
    statistic, rank = 0.0, 0
    for l in range(len(c)):
        for j in range(len(v)):
            combined[j] = 0.0
            for k in range(len(c)):
                combined[j] += w[k, l] * cross[k, j]
            combined[j] = combined[j] / whitening.scales[j] if whitening.scales[j] > 0.0 else 0.0
        for i in range(len(v)):
            if v[i] * c[l] > limit:
                projection = 0.0
                for j in range(len(v)):
                    projection += combined[j] * u[j, i]
                statistic += projection * projection / (v[i] * c[l])
                rank += 1
    return statistic, rank


@kernel
def count_range(count: Floats, first: int, last: int) -> tuple[int, float, float]:
    """Number of levels that occur, smallest and largest of their counts."""
    present, smallest, largest = 0, np.inf, 0.0
    for k in range(first, last):
        if count[k] > 0.0:
            present += 1
            smallest = min(smallest, count[k])
            largest = max(largest, count[k])
    return present, smallest, largest


@kernel
def short_form(problem: Problem, moments: Moments, whitening: Whitening, r: int, n: int, m: int) -> float:
    """Statistic of predictor m where Sigma has full rank on the basis: no eigenvalues are needed.

    Numeric x: d' V^+ d / a with a = n/(n-1) spread. Nominal x: (n-1)/n times the sum over levels of D_k' V^+ D_k / n_k.
    """
    f, first = n / (n - 1.0), problem.first[m]
    if problem.n_levels[m] == 0:
        square = whitened_square(whitening.inverse_root, whitening.basis, r, moments.cross[first])
        return square / (f * float(moments.spread[m]))
    total = 0.0
    for k in range(first, problem.first[m + 1]):
        if moments.sizes[k] > 0.0:
            total += whitened_square(whitening.inverse_root, whitening.basis, r, moments.cross[k]) / moments.sizes[k]
    return total / f


@kernel
def assess_predictors(problem: Problem, moments: Moments, n: int, whitening: Whitening, tests: Floats) -> None:
    """Fill statistic, degrees of freedom and p-value of every predictor, the rows of `tests` (3, p).

    Where bounds show that no eigenvalue of Sigma comes near the tolerance the Cholesky factor of V serves all predictors:
    v_min >= 1 / trace(R_basis^-1) and v_max <= trace(R), the number of columns; the eigenvalues of C lie between n/(n-1)
    times the smallest and the largest level count, and a number has one. Otherwise both eigen-decompositions are computed
    and the tolerance applied as defined.
    """
    r, v_min = invert_root(moments.scatter, n, whitening.basis, whitening.inverse_root)
    v_max = len(moments.mean)
    decomposed = False
    for m in range(len(problem.predictors)):
        first, last, nominal = problem.first[m], problem.first[m + 1], problem.n_levels[m] > 0
        present, c_min, c_max = 2, moments.spread[m], moments.spread[m]
        if nominal:
            present, c_min, c_max = count_range(moments.sizes, first, last)
        if r == 0 or present < 2 or not c_min > 0.0:
            tests[0, m], tests[1, m] = 0.0, 0.0
        elif v_min * c_min > SAFETY * TOLERANCE * v_max * c_max:
            tests[0, m] = short_form(problem, moments, whitening, r, n, m)
            tests[1, m] = r * (present - 1)
        else:
            if not decomposed:
                decompose(moments.scatter, n, whitening)
                decomposed = True
            covariance = predictor_covariance(moments, n, first, last, moments.spread[m], nominal)
            tests[0, m], tests[1, m] = exact_form(whitening, covariance, moments.cross[first:last])
        tests[2, m] = chi2_tail(tests[0, m], int(tests[1, m]))
