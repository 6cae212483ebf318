"""Eigenvalues of small symmetric matrices, accurate also where they differ by many orders of magnitude."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from condshap.numerics.jit import kernel

Floats = npt.NDArray[np.float64]

MAX_SWEEPS = 60
"""Rotations converge quadratically; ten sweeps are enough for all but contrived matrices."""


@kernel
def diagonalise(matrix: Floats, values: Floats, vectors: Floats) -> None:
    """Jacobi's method: rotate pairs of coordinates until nothing is left beside the diagonal; `matrix` is destroyed.

    Parameters
    ----------
    matrix : (q, q) symmetric, positive semi-definite up to rounding
    values, vectors : (q,), (q, q) filled with eigenvalues, in no order, and eigenvectors (columns)
    """
    q = len(values)
    for j in range(q):
        for k in range(q):
            vectors[j, k] = 1.0 if j == k else 0.0
    for _ in range(MAX_SWEEPS):
        n_rotations = 0
        for j in range(q - 1):
            for k in range(j + 1, q):
                if abs(matrix[j, k]) > 1e-17 * math.sqrt(abs(matrix[j, j] * matrix[k, k])):
                    rotate(matrix, vectors, j, k)
                    n_rotations += 1
        if n_rotations == 0:
            break
    for j in range(q):
        values[j] = matrix[j, j]


@kernel
def rotate(matrix: Floats, vectors: Floats, j: int, k: int) -> None:
    """Rotate coordinates j and k so that ``matrix[j, k]`` vanishes, and the eigenvectors with them."""
    ratio = 0.5 * (matrix[k, k] - matrix[j, j]) / matrix[j, k]
    tangent = math.copysign(1.0, ratio) / (abs(ratio) + math.hypot(1.0, ratio))
    cosine = 1.0 / math.hypot(1.0, tangent)
    sine = tangent * cosine
    shift = tangent * matrix[j, k]
    matrix[j, j] -= shift
    matrix[k, k] += shift
    matrix[j, k] = matrix[k, j] = 0.0
    for l in range(len(matrix)):
        if l not in (j, k):
            a, b = matrix[l, j], matrix[l, k]
            matrix[l, j] = matrix[j, l] = cosine * a - sine * b
            matrix[l, k] = matrix[k, l] = sine * a + cosine * b
        a, b = vectors[l, j], vectors[l, k]
        vectors[l, j], vectors[l, k] = cosine * a - sine * b, sine * a + cosine * b


@kernel
def largest(values: Floats) -> float:
    """Largest entry."""
    found = -np.inf
    for value in values:
        found = max(found, value)
    return found
