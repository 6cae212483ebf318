"""Points, queries -> one point near each query, at random: compiled loops that look at points once for equal queries."""

from __future__ import annotations

from math import exp

import numpy as np

from condshap.numerics.jit import entry_kernel, kernel, reordering_kernel
from condshap.seeding import row_keys
from condshap.types import Floats, Indices

TIED = 1e-9  # points whose squared distances differ by less, relatively, are equally near
NEAR, FAR = 6.0, 23.0  # exponents of most of the weight, and beyond which it is nothing: 1e-10 of the nearest point's
BINS = 64


@kernel
def _smallest(values: Floats) -> float:
    """Smallest of values without NaN, four at a time: one after the other, each would wait for the last."""
    a = b = c = d = values[0]
    n = len(values) // 4 * 4
    for i in range(0, n, 4):
        a, b = min(a, values[i]), min(b, values[i + 1])
        c, d = min(c, values[i + 2]), min(d, values[i + 3])
    for i in range(n, len(values)):
        a = min(a, values[i])
    smallest: float = min(min(a, b), min(c, d))
    return smallest


@kernel
def _measure(points: Floats, query: Floats, distances: Floats) -> float:
    """Write squared distances of points (m, N) to a query (m,), whose gaps are near to all; returns the smallest."""
    distances[:] = 0.0
    for j in range(len(points)):
        x = query[j]
        if not np.isnan(x):
            for i in range(len(distances)):
                apart = points[j, i] - x
                distances[i] += apart * apart
    return _smallest(distances)


def pick_nearest(points: Floats, queries: Floats, k: int, shares: Floats) -> Indices:
    """Choose one of the k nearest points (m, N), with all that are as near as the last of them, for queries (n, m).

    `shares` (n,) in [0, 1) say which of them, in the order of the points. Returns positions (n,).
    """
    order, ends = _equal_ones(queries)
    return _in_order_of(order, pick_nearest_of_each(points, queries[order[ends - 1]], ends, k, shares[order]))


def pick_weighted(points: Floats, queries: Floats, rate: float, eta: float, most: int, shares: Floats) -> Indices:
    """Choose one point of (m, N) for queries (n, m) with weights exp(-rate d), d the squared distance.

    Only the nearest points that together hold the share `eta` of all weight count, at most `most`. `shares` (n,) in [0, 1)
    choose among them by weight. Returns positions (n,).
    """
    order, ends = _equal_ones(queries)
    picked = pick_weighted_of_each(points, queries[order[ends - 1]], ends, rate, eta, most, shares[order])
    return _in_order_of(order, picked)


def _equal_ones(queries: Floats) -> tuple[Indices, Indices]:
    """Order (n,) of queries (n, m) in which equal ones follow each other, and where each of their groups ends.

    Many are equal where what is known was drawn from few rows, or rounded.
    """
    keys = row_keys(queries)
    order = np.argsort(keys)
    ends = np.flatnonzero(np.append(np.diff(keys[order]) != 0, True)) + 1 if len(keys) else order
    return order, ends


def _in_order_of(order: Indices, picked: Indices) -> Indices:
    found = np.empty_like(picked)
    found[order] = picked
    return found


@entry_kernel
def pick_nearest_of_each(points: Floats, queries: Floats, ends: Indices, k: int, shares: Floats) -> Indices:
    """Do what `pick_nearest` does, for different queries (q, m), each for all shares (n,) up to its end (q,)."""
    n_points = points.shape[1]
    found, distances, near = np.empty(len(shares), np.intp), np.empty(n_points), np.empty(k)
    start = 0
    for r in range(len(queries)):
        _measure(points, queries[r], distances)
        n_near = 0
        for i in range(n_points):  # the k smallest in ascending order: few points still get in after the first ones
            d = distances[i]
            if n_near < k or d < near[n_near - 1]:
                place = n_near if n_near < k else k - 1
                while place > 0 and near[place - 1] > d:
                    near[place] = near[place - 1]
                    place -= 1
                near[place] = d
                n_near = min(n_near + 1, k)
        radius = near[n_near - 1] * (1 + TIED)
        count = 0
        for i in range(n_points):
            count += distances[i] <= radius
        for one in range(start, ends[r]):
            left = min(int(shares[one] * count), count - 1)
            for i in range(n_points):
                if distances[i] <= radius:
                    if left == 0:
                        found[one] = i
                        break
                    left -= 1
        start = ends[r]
    return found


@kernel
def _weigh(distances: Floats, smallest: float, rate: float, exponents: Floats, weights: Floats) -> None:
    """Write exponents rate (d - smallest), at most FAR, and weights exp(-exponent), in a form that vector units can do.

    A Taylor series of a 64th of the exponent, squared six times: the smallest weights are off by 1e-5, large ones by 1e-11.
    """
    for i in range(len(distances)):
        exponent = min((distances[i] - smallest) * rate, FAR)
        exponents[i] = exponent
        x = exponent * (-1.0 / 64.0)
        w = 1.0 + x * (1.0 + x / 2 * (1.0 + x / 3 * (1.0 + x / 4 * (1.0 + x / 5 * (1.0 + x / 6)))))
        w = w * w
        w = w * w
        w = w * w
        w = w * w
        w = w * w
        weights[i] = w * w


@reordering_kernel
def _total(weights: Floats) -> float:
    total = 0.0
    for i in range(len(weights)):
        total += weights[i]
    return total


@kernel
def _list_near(exponents: Floats, reach: float, near: Indices) -> int:
    """Write the positions of exponents up to `reach`, in order, without a branch to guess; returns their number."""
    n = 0
    for i in range(len(exponents)):
        near[n] = i
        n += exponents[i] <= reach
    return n


@kernel
def _edge(exponents: Floats, weights: Floats, near: Indices, wanted: float, most: int) -> tuple[float, float]:
    """Exponent up to which the nearest points hold the weight that is wanted, or are the most, and the weight they hold.

    Looks at the points at positions `near` only, which may be too few: then it returns a negative number.
    """
    masses, counts, reach = np.zeros(BINS + 1), np.zeros(BINS + 1, np.intp), 0.0
    for i in near:
        reach = max(reach, exponents[i])
    scale = BINS / reach if reach > 0 else 0.0
    for i in near:
        b = int(exponents[i] * scale)
        masses[b] += weights[i]
        counts[b] += 1
    last, kept, n_kept = 0, 0.0, 0
    while last <= BINS and kept + masses[last] < wanted and n_kept + counts[last] < most:
        kept, n_kept, last = kept + masses[last], n_kept + counts[last], last + 1
    if last > BINS:
        return -1.0, kept
    inside = np.empty(counts[last])
    n = 0
    for i in near:
        if int(exponents[i] * scale) == last:
            inside[n] = exponents[i]
            n += 1
    inside.sort()
    edge = inside[0]
    for exponent in inside:  # points that are equally near are kept together
        if exponent > edge and (kept >= wanted or n_kept >= most):
            break
        edge, kept, n_kept = exponent, kept + exp(-exponent), n_kept + 1
    return edge, kept


@entry_kernel
def pick_weighted_of_each(
    points: Floats, queries: Floats, ends: Indices, rate: float, eta: float, most: int, shares: Floats
) -> Indices:
    """Do what `pick_weighted` does, for different queries (q, m), each for all shares (n,) up to its end (q,)."""
    n_points = points.shape[1]
    found, distances = np.empty(len(shares), np.intp), np.empty(n_points)
    exponents, weights, places = np.empty(n_points), np.empty(n_points), np.empty(n_points, np.intp)
    start = 0
    for r in range(len(queries)):
        smallest = _measure(points, queries[r], distances)
        _weigh(distances, smallest, rate, exponents, weights)
        wanted = eta * _total(weights)
        near = places[: _list_near(exponents, NEAR, places)]
        edge, kept = _edge(exponents, weights, near, wanted, most)
        if edge < 0:
            near = places[: _list_near(exponents, FAR, places)]
            edge, kept = _edge(exponents, weights, near, wanted, most)
        if edge < 0:  # all of them, up to rounding
            edge = FAR
        for one in range(start, ends[r]):
            found[one] = _walk(exponents, weights, near, edge, shares[one] * kept)
        start = ends[r]
    return found


@kernel
def _walk(exponents: Floats, weights: Floats, near: Indices, edge: float, left: float) -> int:
    """Point at which the weight of those up to the edge has used up what is left; the last, should rounding leave some."""
    found = -1
    for i in near:
        if exponents[i] <= edge:
            found = i
            left -= weights[i]
            if left < 0:
                break
    return found
