"""Functions of one number, known by asking for their values -> piecewise cubics that equal them, jumps included.

Every cell between two edges is asked at five points. Where the cubic through four of them meets the fifth, the cell is one
piece. Where the values are those of the two ends, and nothing else, there is a jump, which bisection puts between two
neighbouring floats. All other cells are halved. What stays unseen is a bump between two points that ends where it began.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from condshap.exceptions import ModelError
from condshap.numerics.additive import AdditiveFunction, level_terms
from condshap.types import Floats, Indices, Masks

Asks = Callable[[Indices, Floats], Floats]
"""Features (n,), a value of each (n,) -> terms (n, O)."""

_AT = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
_TO_CUBIC = np.linalg.inv(
    np.vander(_AT[[0, 1, 3, 4]], 4)
)  # values at four points -> coefficients, the highest power first
_CHECKED = np.array([0.09, 0.62])  # where what looks like a cubic is asked again
_COMPARED = np.array([0.0, 0.3, 0.6, 0.95])  # where two pieces are compared with one in their place
_RELATIVE = 1e-11  # of a term
_MARKS = 1024
_OUTER = 2**15  # values that a piece beyond the edges may take
_IN_THE_MIDDLE = np.vander(_AT[[2]], 4)[0] @ _TO_CUBIC


class TooRoughError(Exception):
    """A function that would need more pieces than are allowed."""


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """Piecewise cubic with B pieces, each from its own edge up to the next one.

    Attributes
    ----------
    edges : (B + 1,) ascending
    coefficients : (B, O, 4) of powers of (x - start) / width, the highest first
    guide : (1025,) pieces at evenly spaced values, from which a value's piece is found
    """

    edges: Floats
    coefficients: Floats
    guide: Indices

    @classmethod
    def of(cls, edges: Floats, coefficients: Floats) -> Curve:
        """Make a curve, with its guide."""
        marks = edges[0] + (edges[-1] - edges[0]) * np.arange(_MARKS + 1) / _MARKS
        pieces = np.searchsorted(edges, marks, side="right") - 1
        return cls(edges, coefficients, np.clip(pieces, 0, len(coefficients) - 1))


@dataclass(frozen=True, slots=True, eq=False)
class CurvedFunction(AdditiveFunction):
    """f(x) = intercept + sum_j g_j(x_j) with a curve per number and any number per level otherwise.

    Attributes
    ----------
    intercept : (O,)
    curves : per feature, None for those with levels
    levels : per feature the terms of its levels (L, O), None for numbers
    missing : (M, O) terms of missing values, NaN where the model refuses them
    beyond : asks the model itself, for values outside a curve's edges
    allowed : (O,) errors of the curves
    outer : pieces that were read outside a curve's edges, by feature and number
    """

    intercept: Floats
    curves: tuple[Curve | None, ...]
    levels: tuple[Floats | None, ...]
    missing: Floats
    beyond: Asks
    allowed: Floats
    outer: dict[tuple[int, int], Curve] = field(default_factory=dict)

    def term(self, j: int, values: Floats) -> Floats:
        """Return g_j at values or codes of any shape, with one more axis for the outputs."""
        own = self.levels[j]
        if own is not None:
            return level_terms(own, values, self.missing[j])
        total = np.zeros((values.size, len(self.intercept)))
        self._add(j, values.reshape(-1), total)
        return total.reshape(*values.shape, len(self.intercept))

    def __call__(self, rows: Floats) -> Floats:
        """Return f at rows (..., M), shape (..., O)."""
        flat = rows.reshape(-1, rows.shape[-1])
        total = np.tile(self.intercept, (len(flat), 1))
        for j, own in enumerate(self.levels):
            if own is None:
                self._add(j, flat[:, j], total)
            else:
                total += level_terms(own, flat[:, j], self.missing[j])
        return total.reshape(*rows.shape[:-1], len(self.intercept))

    def _add(self, j: int, values: Floats, total: Floats) -> None:
        """Add g_j at values (n,) to `total` (n, O)."""
        from condshap.numerics.curve_kernel import add_curve  # numba takes a while to load

        curve = self.curves[j]
        assert curve is not None
        if add_curve(values, curve.edges, curve.coefficients, curve.guide, self.missing[j], total):
            outside = (values < curve.edges[0]) | (values > curve.edges[-1])
            total[outside] += self.beyond(np.full(int(outside.sum()), j), values[outside])

    def add_expected(self, j: int, mean: Floats, sd: float, total: Floats) -> None:
        """Add E[g_j(mean + sd Z)] to `total` (n, O) for Z standard normal and means (n,)."""
        from condshap.numerics.curve_kernel import REACH, add_expected

        if sd == 0:
            self._add(j, mean, total)
            return
        curve = self._reaching(j, float(mean.min()) - REACH * sd, float(mean.max()) + REACH * sd)
        add_expected(mean, sd, curve.edges, curve.coefficients, total)

    def _reaching(self, j: int, low: float, high: float) -> Curve:
        """Curve from `low` to `high` at least; what is beyond the edges is read by pieces that do not depend on both."""
        curve = self.curves[j]
        assert curve is not None
        pieces, first, last = [curve], curve.edges[0], curve.edges[-1]
        for side, end, wanted in ((-1, first, first - low), (1, last, high - last)):
            k, width = 0, last - first
            while wanted > width * (2**k - 1):
                if (j, side * (k + 1)) not in self.outer:  # two threads read the same
                    ends = np.sort([end + side * width * (2**n - 1) for n in (k, k + 1)])
                    self.outer[j, side * (k + 1)] = self._read_outer(j, ends)
                pieces.insert(0 if side < 0 else len(pieces), self.outer[j, side * (k + 1)])
                k += 1
        if len(pieces) == 1:
            return curve
        edges = np.concatenate([pieces[0].edges[:1], *(piece.edges[1:] for piece in pieces)])
        return Curve.of(edges, np.concatenate([piece.coefficients for piece in pieces]))

    def _read_outer(self, j: int, ends: Floats) -> Curve:
        try:
            return read_curves(lambda which, x: self.beyond(which + j, x), [ends], self.allowed, most=_OUTER)[0]
        except TooRoughError as error:
            raise ModelError(
                f"additive models must have few jumps and bends beyond the training range, but feature {j} has too many "
                f"from {ends[0]:.3g} to {ends[1]:.3g}. Set additive=False."
            ) from error


class _Cells(NamedTuple):
    """Cells of all features: of which (n,), five points (n, 5) and the terms there (n, 5, O)."""

    feature: Indices
    x: Floats
    v: Floats

    def where(self, chosen: Masks) -> _Cells:
        return _Cells(self.feature[chosen], self.x[chosen], self.v[chosen])


class _Pieces(NamedTuple):
    """Pieces of all features: of which (n,), start (n,), end (n,), coefficients (n, O, 4)."""

    feature: Indices
    start: Floats
    end: Floats
    coefficients: Floats


def read_curves(ask: Asks, edges: Sequence[Floats], allowed: Floats, *, most: int) -> list[Curve]:
    """Curves that equal functions of one number each, to within `allowed` (O,), between their outermost edges.

    Parameters
    ----------
    ask : gives terms; features are positions in `edges`
    edges : per function the ascending edges of its first cells, at least two
    most : values that may be asked for; functions that need more raise `TooRoughError`
    """
    left = most

    def counted(feature: Indices, values: Floats) -> Floats:
        nonlocal left
        left -= len(values)
        if left < 0:
            raise TooRoughError
        return ask(feature, values) if len(values) else np.empty((0, len(allowed)))

    feature = np.repeat(np.arange(len(edges)), [len(own) - 1 for own in edges])
    low, high = (np.concatenate([own[some] for own in edges]) for some in (slice(-1), slice(1, None)))
    cells, pieces = _ask_cells(counted, feature, low, high), []
    while len(cells.feature):
        fits = _fits(counted, cells, _limit(cells, allowed))
        pieces.append(_cubics(cells.where(fits)))
        cells = cells.where(~fits)
        jumps, at = _jumps(cells, _limit(cells, allowed))
        jumping = cells.where(jumps)
        found, again = _split_at_jumps(counted, jumping, at[jumps], _limit(jumping, allowed))
        pieces.extend(found)
        cells = _join(_halve(counted, cells.where(~jumps)), again)
    return _curves(pieces, len(edges), allowed)


def _ask_cells(ask: Asks, feature: Indices, low: Floats, high: Floats) -> _Cells:
    x = low[:, None] + (high - low)[:, None] * _AT
    x[:, 4] = high
    found = ask(np.repeat(feature, 5), x.ravel())
    return _Cells(feature, x, found.reshape(*x.shape, found.shape[1]))


def _join(first: _Cells, second: _Cells) -> _Cells:
    return _Cells(*(np.concatenate(parts) for parts in zip(first, second, strict=True)))


def _limit(cells: _Cells, allowed: Floats) -> Floats:
    """Error (n, O) that is allowed in every cell: beyond the training range functions may grow without bound."""
    return np.asarray(allowed + _RELATIVE * np.abs(cells.v).max(axis=1))


def _fits(ask: Asks, cells: _Cells, limit: Floats) -> Masks:
    """Cells (n,) that one cubic describes, also at two further points, and those that have no float inside."""
    expected = np.einsum("i,nio->no", _IN_THE_MIDDLE, cells.v[:, [0, 1, 3, 4]])
    inside = (cells.x[:, 0] < cells.x[:, 2]) & (cells.x[:, 2] < cells.x[:, 4])
    fits = (np.abs(expected - cells.v[:, 2]) <= limit).all(axis=1)
    tried = np.flatnonzero(fits & inside)
    start, width = cells.x[tried, 0], cells.x[tried, 4] - cells.x[tried, 0]
    coefficients = np.einsum("pi,nio->nop", _TO_CUBIC, cells.v[tried][:, [0, 1, 3, 4]])
    for t in _CHECKED:
        x = start + t * width
        found = ask(cells.feature[tried], x)
        powers = np.vander((x - start) / width, 4)  # of where it was asked, after rounding
        fits[tried] &= (np.abs(np.einsum("np,nop->no", powers, coefficients) - found) <= limit[tried]).all(axis=1)
    return np.asarray(fits | ~inside)


def _cubics(cells: _Cells) -> _Pieces:
    """Cells as pieces; one without a float inside, or with one value only, is constant."""
    coefficients = np.einsum("pi,nio->nop", _TO_CUBIC, cells.v[:, [0, 1, 3, 4]])
    no_inside = (cells.x[:, 2] <= cells.x[:, 0]) | (cells.x[:, 2] >= cells.x[:, 4])
    constant = no_inside | (cells.v == cells.v[:, :1]).all(axis=(1, 2))
    coefficients[constant] = _constants(cells.v[constant, 0])
    return _Pieces(cells.feature, cells.x[:, 0], cells.x[:, 4], coefficients)


def _constants(values: Floats) -> Floats:
    """Coefficients (n, O, 4) of constants (n, O)."""
    return np.stack([*[np.zeros_like(values)] * 3, values], axis=-1)


def constant_pieces(edges: Floats, values: Floats) -> Curve:
    """Curve that is constant between neighbouring edges (B + 1,), with values (B, O); equal neighbours are one piece."""
    kept = np.concatenate([[True], (values[1:] != values[:-1]).any(axis=1)])
    return Curve.of(np.append(edges[:-1][kept], edges[-1]), _constants(values[kept]))


def _jumps(cells: _Cells, limit: Floats) -> tuple[Masks, Indices]:
    """Which cells (n,) have the value of their start up to some point, and that of their end from the next one (n,) on."""
    is_start, is_end = (
        (np.abs(cells.v - end) <= limit[:, None]).all(axis=2) for end in (cells.v[:, :1], cells.v[:, 4:])
    )
    at = (~is_start).argmax(axis=1)  # the first point with another value
    later = np.arange(5) >= at[:, None]
    return np.asarray((at > 0) & (is_end | ~later).all(axis=1) & (is_start | later).all(axis=1)), at


def _split_at_jumps(ask: Asks, cells: _Cells, at: Indices, limit: Floats) -> tuple[list[_Pieces], _Cells]:
    """Bisect to the jumps; what has a third value between them is a cell again."""
    rows = np.arange(len(at))
    low, high = cells.x[rows, at - 1], cells.x[rows, at]
    before, after = cells.v[:, 0], cells.v[:, 4]
    is_plain, going = np.ones(len(at), dtype=bool), rows
    while len(going):
        middle = low[going] + (high[going] - low[going]) / 2
        inside = (low[going] < middle) & (middle < high[going])
        going, middle = going[inside], middle[inside]
        if not len(going):
            break
        found = ask(cells.feature[going], middle)
        is_low, is_high = ((np.abs(found - end[going]) <= limit[going]).all(axis=1) for end in (before, after))
        low[going[is_low]] = middle[is_low]
        high[going[~is_low & is_high]] = middle[~is_low & is_high]
        is_plain[going[~is_low & ~is_high]] = False
        going = going[is_low | is_high]
    ends = np.where(is_plain, high, low)
    pieces = [
        _Pieces(cells.feature, cells.x[:, 0], ends, _constants(before)),
        _Pieces(cells.feature, high, cells.x[:, 4], _constants(after)),
    ]
    return pieces, _ask_cells(ask, cells.feature[~is_plain], low[~is_plain], high[~is_plain])


def _halve(ask: Asks, cells: _Cells) -> _Cells:
    """Both halves of every cell, of whose points three are known."""
    n, n_outputs = len(cells.feature), cells.v.shape[2]
    x, v = np.empty((n, 2, 5)), np.empty((n, 2, 5, n_outputs))
    for half, first in enumerate((0, 2)):
        x[:, half, ::2], v[:, half, ::2] = cells.x[:, first : first + 3], cells.v[:, first : first + 3]
    x[:, :, 1::2] = x[:, :, :4:2] + (x[:, :, 2::2] - x[:, :, :4:2]) / 2
    asked = ask(np.repeat(cells.feature, 4), x[:, :, 1::2].ravel())
    v[:, :, 1::2] = asked.reshape(n, 2, 2, n_outputs)
    return _Cells(np.repeat(cells.feature, 2), x.reshape(-1, 5), v.reshape(2 * n, 5, n_outputs))


def _curves(pieces: Sequence[_Pieces], n_features: int, allowed: Floats) -> list[Curve]:
    """Pieces in their order, feature by feature; neighbours with the same constant, or cubic, are one."""
    every = _Pieces(*(np.concatenate(parts) for parts in zip(*pieces, strict=True)))
    order = np.lexsort((every.start, every.feature))
    order = order[every.start[order] < every.end[order]]
    curves = []
    for j in range(n_features):
        own = order[every.feature[order] == j]
        coefficients = every.coefficients[own]
        same = (coefficients[1:] == coefficients[:-1]).all(axis=(1, 2)) & ~coefficients[1:, :, :3].any(axis=(1, 2))
        kept = np.concatenate([[True], ~same])
        edges = np.append(every.start[own][kept], every.end[own[-1]])
        curves.append(Curve.of(*_merge(edges, coefficients[kept], allowed)))
    return curves


def _merge(edges: Floats, coefficients: Floats, allowed: Floats) -> tuple[Floats, Floats]:
    """Make one of two neighbouring pieces (B, O, 4) wherever one cubic describes both, again and again."""
    offset, n_failures = 0, 0
    while n_failures < 2 and len(coefficients) > 1:
        left = np.arange(offset, len(coefficients) - 1, 2)
        start, width = edges[left, None], (edges[left + 2] - edges[left])[:, None]
        at = _AT[[0, 1, 3, 4]]
        joint = np.einsum("pi,nio->nop", _TO_CUBIC, _values(edges, coefficients, left, start + at * width))
        inside = [edges[left + i, None] + (edges[left + i + 1] - edges[left + i])[:, None] * _COMPARED for i in (0, 1)]
        x = np.concatenate(inside, axis=1)
        found = np.einsum("nkp,nop->nko", ((x - start) / width)[..., None] ** np.arange(3, -1, -1), joint)
        apart = np.abs(found - _values(edges, coefficients, left, x)) > allowed
        is_curved = coefficients[left][:, :, :3].any(axis=(1, 2)) & coefficients[left + 1][:, :, :3].any(axis=(1, 2))
        fine = ~apart.any(axis=(1, 2)) & is_curved
        coefficients = coefficients.copy()
        coefficients[left[fine]] = joint[fine]
        edges, coefficients = np.delete(edges, left[fine] + 1), np.delete(coefficients, left[fine] + 1, axis=0)
        n_failures = 0 if fine.any() else n_failures + 1
        offset = 1 - offset
    return edges, np.ascontiguousarray(coefficients)


def _values(edges: Floats, coefficients: Floats, left: Indices, x: Floats) -> Floats:
    """Values (n, k, O) at x (n, k), which are in the pieces `left` (n,) or the next ones."""
    piece = left[:, None] + (x >= edges[left + 1, None])
    t = (x - edges[piece]) / (edges[piece + 1] - edges[piece])
    return np.asarray(np.einsum("nkp,nkop->nko", t[..., None] ** np.arange(3, -1, -1), coefficients[piece]))
