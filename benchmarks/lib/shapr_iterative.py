"""R shapr's default iterative procedure: how many coalitions it takes, and what it gives.

Coalitions are drawn in pairs by the kernel, with weights q / (1 - (1 - q)^L) for L draws ("on_all_cond"). After every
iteration the standard deviation of each Shapley value is estimated by B = 100 bootstrap samples of pairs, and the number
of coalitions that a row requires is (s sqrt(c) / (r tol))^2 with s its largest standard deviation, r its spread and c the
number of coalitions. Iteration stops when the *median* row requires no more than there are; before that 10 %, 20 %, ... of
what is missing are added. The constraint is met exactly here, in R by a weight of 10^6, which makes a difference of 1e-6.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import comb

import numpy as np

from benchmarks.lib.games import unpack

B = 100
FIRST = 200
MAX_ITERATIONS = 20


@dataclass(frozen=True)
class Stopped:
    """Where the procedure stopped: number of coalitions, Shapley values and standard deviations, both (P, R)."""

    n_coalitions: int
    phi: np.ndarray
    sd: np.ndarray


class Draws:
    """Paired draws that go on from where they were; how often each coalition has come."""

    def __init__(self, n_players: int, seed: int) -> None:
        sizes = np.arange(1, n_players)
        mass = (n_players - 1) / (sizes * (n_players - sizes))
        self.n_players, self.sizes, self.chance = n_players, sizes, mass / mass.sum()
        self.q = self.chance / [comb(n_players, int(s)) for s in sizes]
        self.rng = np.random.default_rng(seed)
        self.counts: dict[int, int] = {}

    def grow(self, n_different: int) -> None:
        """Draw until this many different coalitions are there."""
        P = self.n_players
        while len(self.counts) < n_different:
            size = self.rng.choice(self.sizes, p=self.chance)
            code = int((1 << self.rng.permutation(P)[:size]).sum())
            for one in (code, 2**P - 1 - code):
                self.counts[one] = self.counts.get(one, 0) + 1

    def weights(self, sizes: np.ndarray, n_draws: int) -> np.ndarray:
        """Regression weights of coalitions of these sizes after so many draws."""
        q = self.q[sizes - 1]
        return q / -np.expm1(n_draws * np.log1p(-q))


def iterate(
    values: Callable[[np.ndarray], np.ndarray], n_players: int, *, seed: int, tolerance: float, every_row: bool = False
) -> Stopped:
    """Run the procedure; with `every_row` the row that requires most decides, instead of the median row."""
    P = n_players
    draws, bootstrap = Draws(P, seed), np.random.default_rng(seed + 10**6)
    ends = values(np.array([np.zeros(P, dtype=bool), np.ones(P, dtype=bool)]))
    known = np.zeros((0, ends.shape[1]))
    n_wanted = FIRST - 2
    for iteration in range(1, MAX_ITERATIONS + 1):
        draws.grow(n_wanted)
        codes = np.fromiter(draws.counts, dtype=np.int64)
        masks = unpack(codes, P)
        known = np.concatenate([known, values(masks[len(known) :])])
        counts = np.fromiter(draws.counts.values(), dtype=np.int64)
        phi = _solve(masks, draws.weights(masks.sum(axis=1), counts.sum()), known, ends)
        sd = _bootstrap_sd(masks, counts, known, ends, draws, bootstrap)
        c, most = len(codes), 2**P - 2
        needs = np.minimum((sd.max(axis=0) * np.sqrt(c) / (np.ptp(phi, axis=0) * tolerance)) ** 2, most)
        required = 2 * round(np.ceil(needs.max() if every_row else np.median(needs)) / 2)
        if required <= c or iteration == MAX_ITERATIONS:
            break
        n_wanted = min(most, c + max(2, 2 * round((required - c) * min(1.0, 0.1 * iteration) / 2)))
    return Stopped(c + 2, phi, sd)


def without_stopping(
    values: Callable[[np.ndarray], np.ndarray], n_players: int, *, seed: int, numbers: list[int]
) -> list[np.ndarray]:
    """Shapley values (P, R) that the same draws and weights give with these numbers of coalitions."""
    draws = Draws(n_players, seed)
    ends = values(np.array([np.zeros(n_players, dtype=bool), np.ones(n_players, dtype=bool)]))
    known, found = np.zeros((0, ends.shape[1])), []
    for n in numbers:
        draws.grow(n - 2)
        masks = unpack(np.fromiter(draws.counts, dtype=np.int64), n_players)
        known = np.concatenate([known, values(masks[len(known) :])])
        weights = draws.weights(masks.sum(axis=1), sum(draws.counts.values()))
        found.append(_solve(masks, weights, known, ends))
    return found


def _bootstrap_sd(
    masks: np.ndarray,
    counts: np.ndarray,
    v: np.ndarray,
    ends: np.ndarray,
    draws: Draws,
    rng: np.random.Generator,
) -> np.ndarray:
    """Standard deviation (P, R) over bootstrap samples of pairs; a pair stands in neighbouring lines."""
    n_draws, chance = counts.sum() // 2, counts[::2] / counts[::2].sum()
    sizes, found = masks.sum(axis=1), []
    for _ in range(B):
        chosen = np.repeat(rng.multinomial(n_draws, chance) > 0, 2)
        found.append(_solve(masks[chosen], draws.weights(sizes[chosen], 2 * n_draws), v[chosen], ends))
    return np.std(found, axis=0, ddof=1)


def _solve(masks: np.ndarray, weights: np.ndarray, v: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Weighted least squares (P, R) under the constraint that the values add up; `ends` are v of none and of all."""
    design = masks.astype(np.float64)
    total, last = ends[1] - ends[0], design[:, -1:]
    contrasts = design[:, :-1] - last
    weighted = contrasts.T * (weights / weights.sum())
    some = np.linalg.lstsq(weighted @ contrasts, weighted @ (v - ends[0] - last * total), rcond=None)[0]
    return np.concatenate([some, [total - some.sum(axis=0)]])
