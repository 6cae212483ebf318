"""Values of a piecewise cubic, added to totals, by a compiled loop."""

from __future__ import annotations

import numpy as np

from condshap.numerics.jit import entry_kernel
from condshap.types import Floats, Indices


@entry_kernel
def add_curve(x: Floats, edges: Floats, coefficients: Floats, guide: Indices, missing: Floats, total: Floats) -> int:
    """Add g(x) to `total` (n, O) for x (n,); returns how many x are outside the edges, to which nothing is added.

    Parameters
    ----------
    edges : (B + 1,) ascending
    coefficients : (B, O, 4) of powers of (x - start) / width of a piece, the last one first
    guide : (G + 1,) pieces at evenly spaced values from the first edge to the last
    missing : (O,) what is added for NaN
    """
    n_outside, n_pieces, n_outputs = 0, len(coefficients), total.shape[1]
    first, last, n_marks = edges[0], edges[n_pieces], len(guide) - 1
    per_mark = n_marks / (last - first)
    for i in range(len(x)):
        value = x[i]
        if np.isnan(value):
            for o in range(n_outputs):
                total[i, o] += missing[o]
            continue
        if value < first or value > last:
            n_outside += 1
            continue
        mark = min(int((value - first) * per_mark), n_marks - 1)
        low, high = guide[mark], guide[mark + 1] + 1
        while low > 0 and edges[low] > value:  # rounding may put a value next to a mark on its other side
            low -= 1
        while high < n_pieces and edges[high] <= value:
            high += 1
        while high - low > 1:
            middle = (low + high) // 2
            if edges[middle] <= value:
                low = middle
            else:
                high = middle
        t = (value - edges[low]) / (edges[low + 1] - edges[low])
        for o in range(n_outputs):
            c = coefficients[low, o]
            total[i, o] += ((c[0] * t + c[1]) * t + c[2]) * t + c[3]
    return n_outside
