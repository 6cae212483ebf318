"""Scores of rows and of draws -> how far apart their dependence, spread and frequencies are, and how far beyond chance.

If draws of the unknown columns are right, rows with their unknown columns replaced by draws have the distribution of the
rows themselves, whatever is known. Every difference here is one between these two tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from condshap.types import Floats, Indices, Masks

DEPENDENCE, FREQUENCY, LOCATION, SPREAD = "dependence", "frequency", "location", "spread"
SHAPE = "curved dependence"
LIMITS = {DEPENDENCE: 0.25, SHAPE: 0.35, FREQUENCY: 0.15, LOCATION: 0.2, SPREAD: 1 / 3}
"""Differences that matter: of correlations, of frequencies and means in standard deviations, 1 - smaller / larger spread."""
_LITTLE = 0.3  # residual variance, as a share of all, below which what is left moves a model too little to be blown up
_SMOOTH = 0.05  # the same for ratios of spreads
_RIDGE = 0.01
_CANDIDATES = 100  # largest differences of a kind and a coalition whose errors are looked at


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference between rows and draws, of score columns `a` and `b`, which are the same where one is looked at."""

    kind: str
    a: int
    b: int
    rows: float
    draws: float
    size: float
    z: float


@dataclass(frozen=True)
class Tables:
    """Scores of rows and of their draws for one coalition.

    Attributes
    ----------
    rows : (n, D), variance about 1, NaN where missing
    draws : (n, K, D); known columns are not looked at
    weights : (n, K), positive sums
    known : (D,)
    is_level : (D,) columns that say whether a feature has a certain level
    is_shape : (D,) columns that serve curved dependence only
    is_effect : (D,) columns that serve dependence only, levels as numbers
    """

    rows: Floats
    draws: Floats
    weights: Floats
    known: Masks
    is_level: Masks
    is_shape: Masks
    is_effect: Masks

    @cached_property
    def unknown(self) -> Indices:
        """Positions (u,) of the unknown columns."""
        return np.flatnonzero(~self.known)

    @cached_property
    def shares(self) -> Floats:
        """Weights (n, K, u) of draws, none where the row or its draw is missing: gaps must not look like a difference."""
        there = np.isfinite(self.draws[..., self.unknown]) & np.isfinite(self.rows[:, None, self.unknown])
        shares = self.weights[..., None] * there
        total = shares.sum(axis=1, keepdims=True)
        return np.asarray(shares / np.where(total > 0, total, 1.0))

    @cached_property
    def present(self) -> Floats:
        """1 where a row and at least one of its draws have a value, else 0; (n, u)."""
        return np.asarray(self.shares.sum(axis=1) > 0, dtype=np.float64)

    @cached_property
    def given(self) -> Floats:
        """Known scores (n, k), 0 where missing."""
        return np.nan_to_num(self.rows[:, self.known])

    @cached_property
    def expected(self) -> Floats:
        """Ridge regression of unknown on known scores, (n, u); each half of the rows is predicted from the other half.

        So a row is as new to the regression as its draws are, and few rows make it useless, but never unfair.
        """
        rows = np.nan_to_num(self.rows[:, self.unknown])
        expected = np.zeros_like(rows)
        for half in (0, 1) if self.known.any() else ():
            G, y = self.given[1 - half :: 2], rows[1 - half :: 2]
            gram = G.T @ G + _RIDGE * len(G) * np.eye(G.shape[1])
            expected[half::2] = self.given[half::2] @ np.linalg.solve(gram, G.T @ y)
        return expected

    @cached_property
    def row_rest(self) -> Floats:
        """Unknown scores of rows less what is expected, centred, 0 where missing; (n, u)."""
        rest = (np.nan_to_num(self.rows[:, self.unknown]) - self.expected) * self.present
        return np.asarray((rest - rest.sum(axis=0) / self.counts) * self.present)

    @cached_property
    def draw_rest(self) -> Floats:
        """The same of draws, centred by their own mean, (n, K, u)."""
        rest = np.nan_to_num(self.draws[..., self.unknown]) - self.expected[:, None]
        mean = np.einsum("nku,nku->u", rest, self.shares) / self.counts
        return np.asarray((rest - mean) * (self.shares > 0))

    @cached_property
    def counts(self) -> Floats:
        """Rows (u,) that can be compared, at least 1."""
        return np.asarray(np.maximum(self.present.sum(axis=0), 1.0))

    @cached_property
    def moves(self) -> Floats:
        """Mean draw less the row, (n, u), 0 where missing."""
        unknown = np.nan_to_num(self.draws[..., self.unknown])
        return np.asarray(
            (np.einsum("nku,nku->nu", unknown, self.shares) - np.nan_to_num(self.rows[:, self.unknown])) * self.present
        )

    @cached_property
    def noise(self) -> float:
        """Variance of a row less its mean draw over the variance of a row, if draws are independent."""
        concentration = (self.weights**2).sum(axis=1) / self.weights.sum(axis=1) ** 2
        return float(1 + concentration.mean())

    def kind_of(self, a: int, b: int) -> str:
        """Kind of the dependence of two columns."""
        return SHAPE if self.is_shape[a] or self.is_shape[b] else DEPENDENCE

    def error(self, of_rows: Floats, of_draws: Floats, shares: Floats, n: float) -> float:
        """Standard error of the difference of two means, of rows (n,) and of draws (n, K).

        The larger variance of the two counts: few cells may be empty in one table by chance, which must not make it sure.
        """
        variances = (
            np.average((x - np.average(x, weights=w)) ** 2, weights=w)
            for x, w in ((of_rows, shares.sum(axis=1)), (of_draws, shares))
        )
        return float(np.sqrt(max(max(variances), 1e-12) * self.noise / max(n, 1.0)))


def count_differences(known: Masks) -> int:
    """How many differences of a coalition (D,) are looked at, for the share of false alarms."""
    u = int((~known).sum())
    return u * (u - 1) // 2 + u * int(known.sum()) + 2 * u


def find_differences(tables: Tables, feature: Indices) -> list[Difference]:
    """Largest differences of every kind; `feature` (D,) tells whose scores the columns are, as features are no pairs."""
    return [
        *_among_unknown(tables, feature),
        *_with_known(tables),
        *_means(tables),
        *_spreads(tables),
    ]


def _largest(sizes: Floats) -> Indices:
    """Positions of the largest differences of correlations, any shape, from half of what matters on."""
    flat = np.nan_to_num(sizes.ravel())
    order = np.argsort(-flat, kind="stable")[:_CANDIDATES]
    return order[flat[order] >= LIMITS[DEPENDENCE] / 2]


def _among_unknown(tables: Tables, feature: Indices) -> list[Difference]:
    """Correlations of what the known columns leave unexplained of the unknown ones."""
    E, F, S, u = tables.row_rest, tables.draw_rest, tables.shares, tables.unknown
    both = np.maximum(tables.present.T @ tables.present, 1.0)
    weighted = (np.sqrt(S) * F).reshape(-1, len(u))
    C, D = E.T @ E / both, weighted.T @ weighted / both
    least = np.where(tables.is_shape[u], 1.0, _LITTLE)  # what is left of squares is mostly noise
    r, d = _correlations(C, least), _correlations(D, least)
    sizes = np.triu(np.abs(r - d) * (feature[u][:, None] != feature[u]), 1)
    found = []
    for at in _largest(sizes):
        a, b = divmod(int(at), len(u))
        pair = [a, b]
        rows = _influence(E[:, pair], np.diag(C)[pair], least[pair], r[a, b])
        draws = _influence(F[..., pair], np.diag(D)[pair], least[pair], d[a, b])
        error = tables.error(rows, draws, np.sqrt(S[..., a] * S[..., b]), both[a, b])
        kind = tables.kind_of(u[a], u[b])
        found.append(Difference(kind, int(u[a]), int(u[b]), r[a, b], d[a, b], sizes[a, b], sizes[a, b] / error))
    return found


def _correlations(C: Floats, least: Floats) -> Floats:
    """Covariances (u, u) over standard deviations, from variances of at least `least` (u,)."""
    sd = np.sqrt(np.maximum(np.diag(C), least))
    return np.asarray(C / np.outer(sd, sd))


def _influence(pair: Floats, variances: Floats, least: Floats, r: float) -> Floats:
    """What every row or draw (..., 2) adds to a correlation r of the pair, (...)."""
    psi = pair.prod(axis=-1) / np.sqrt(np.maximum(variances, least).prod())
    for x, variance, low in zip(np.moveaxis(pair, -1, 0), variances, least, strict=True):
        if variance > low:
            psi = psi - r / 2 * x**2 / variance
    return np.asarray(psi)


def _with_known(tables: Tables) -> list[Difference]:
    """Covariances of unknown with known columns, in units of the rows' standard deviations."""
    if not tables.known.any():
        return []
    G, u, k = tables.given, tables.unknown, np.flatnonzero(tables.known)
    present = np.isfinite(tables.rows[:, k]).astype(np.float64)
    both = np.maximum(tables.present.T @ present, 1.0)
    moved = tables.moves.T @ G / both
    found = []
    for at in _largest(np.abs(moved)):
        a, b = divmod(int(at), len(k))
        shares = tables.shares[..., a] * present[:, b, None]
        rows, draws = tables.row_rest[:, a] * G[:, b], tables.draw_rest[..., a] * G[:, b, None]
        error = tables.error(rows, draws, shares, both[a, b])
        own = float(np.nan_to_num(tables.rows[:, u[a]] * G[:, b]) @ (tables.present[:, a] * present[:, b]) / both[a, b])
        step, kind = float(moved[a, b]), tables.kind_of(u[a], k[b])
        found.append(Difference(kind, int(u[a]), int(k[b]), own, own + step, abs(step), abs(step) / error))
    return found


def _means(tables: Tables) -> list[Difference]:
    """Frequencies of levels and means of numbers, in standard deviations of the rows."""
    moved, found = tables.moves.sum(axis=0) / tables.counts, []
    for a, column in enumerate(tables.unknown):
        kind, step = FREQUENCY if tables.is_level[column] else LOCATION, float(moved[a])
        if tables.is_shape[column] or tables.is_effect[column] or abs(step) < LIMITS[kind] / 2:
            continue
        error = tables.error(tables.row_rest[:, a], tables.draw_rest[..., a], tables.shares[..., a], tables.counts[a])
        found.append(Difference(kind, int(column), int(column), 0.0, step, abs(step), abs(step) / error))
    return found


def _spreads(tables: Tables) -> list[Difference]:
    """Spread of numbers around what is expected, draws over rows."""
    found = []
    for a, column in enumerate(tables.unknown):
        if tables.is_shape[column] or tables.is_effect[column] or tables.is_level[column]:
            continue
        rows, draws, shares = tables.row_rest[:, a] ** 2, tables.draw_rest[..., a] ** 2, tables.shares[..., a]
        v, w = (float(x) / tables.counts[a] + _SMOOTH for x in (rows.sum(), (draws * shares).sum()))
        ratio = float(np.sqrt(w / v))
        size = 1 - min(ratio, 1 / ratio)
        if size >= LIMITS[SPREAD] / 2:
            error = tables.error(rows / (2 * v), draws / (2 * w), shares, tables.counts[a])
            found.append(Difference(SPREAD, int(column), int(column), 1.0, ratio, size, abs(np.log(ratio)) / error))
    return found
