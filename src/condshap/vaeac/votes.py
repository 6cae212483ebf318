r"""Trained members, held-out rows -> votes: how much the networks, their companions and blind draws count.

Each of them is a distribution of the hidden features given the known ones, and so is every mixture of them. The best mixture
is found as in stacking: held-out rows x are compared, through functions phi of a whole row, with what each member expects
of phi given x_S. With w the votes,

.. math::

    \min_w \sum_{x, S} \| \phi(x) - \sum_i w_i E_i[\phi(X) \mid x_S] \|^2 + \lambda \| w - w_0 \|^2,
    \quad w \ge 0, \; \sum_i w_i = 1.

Where columns look normal, the first linear member is nearly right. There w_0 is a quarter the networks and three quarters
that member, and lambda twice the standard error of the difference between the losses of these two: what a hundred rows
cannot tell is shared out. With 500 rows or more, with levels, and with other columns lambda is 0.

phi holds the columns themselves and random waves cos(a'x + b), so that means count, and so do shapes and what hidden
features have to do with each other. No model is asked. Members are judged on rows that they have not seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from condshap.seeding import column_sizes, generator, hash_words, row_keys, stage_word
from condshap.types import Floats, Indices, Masks, Rows
from condshap.vaeac.columns.learned import Columns
from condshap.vaeac.companions import Companions
from condshap.vaeac.ensemble import Networks, as_array
from condshap.vaeac.sampling.tiles import Asked

_COALITIONS, _ROWS, _SAMPLES = 48, 100, 8
_WAVES = 48
_STREAMS = ("first", "second")
_FAR = 3.0  # standard deviations beyond which a number counts as there
_LEAST_VOTE = 0.04
_FEW_ROWS = 500
_DOUBT, _LINEAR = 2.0, 0.75  # standard errors, and the linear member's share, by designs of 100 rows
_NORMAL = 4.6  # 90 % quantile of Jarque and Bera's statistic


def learn_votes(
    networks: Networks, companions: Companions, X: Rows, masks: Masks, probabilities: Floats, *, seed: int
) -> Floats:
    """Votes of the networks together, of each of L companions, and of blind draws, which come last; they sum to 1.

    Parameters
    ----------
    X : (N, M) training rows
    masks, probabilities : (C, M), True = known, and (C,) how often each coalition is asked for

    Notes
    -----
    Squares of expectations are products of two estimates from different random numbers, so that few samples do not bias
    them. The networks' products with phi(x) are those of the member that has not seen x.
    """
    if len(masks) == 0 or networks.held_out_.size == 0:
        return only_networks(companions)
    gram, products = judge_members(networks, companions, X, masks, probabilities, seed=seed)
    is_shared = len(X) < _FEW_ROWS and not networks.fitted_.columns.atoms.n_levels.any() and looks_normal(X)
    prior = mostly_linear(len(networks.linear_names) if is_shared else 0, len(companions))
    return in_hundredths(simplex_least_squares(*doubted(gram, products, prior)))


def judge_members(
    networks: Networks, companions: Companions, X: Rows, masks: Masks, probabilities: Floats, *, seed: int
) -> tuple[Floats, Floats]:
    """Products of the members' expectations with each other (R, n, n) and with phi(x) (R, n), of each held-out row."""
    rng, judge = generator(seed, "votes"), _Judge(networks, companions, X, seed)
    found = []
    for e, held in enumerate(networks.held_out_):
        chosen = rng.choice(len(masks), size=min(_COALITIONS, len(masks)), p=probabilities, replace=False)
        found.append(judge.compare(e, held, masks[chosen]))
    gram, products = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return gram, products


def looks_normal(X: Rows) -> bool:
    """Whether half of the columns of X (N, M) or more have about the skewness and the kurtosis of normal ones."""
    spread = np.nanstd(X, axis=0)
    scores = (X - np.nanmean(X, axis=0)) / np.where(spread > 0, spread, 1.0)
    skewness, excess = np.nanmean(scores**3, axis=0), np.nanmean(scores**4, axis=0) - 3
    statistics = (~np.isnan(X)).sum(axis=0) / 6 * (skewness**2 + excess**2 / 4)
    return bool(np.median(statistics) < _NORMAL)


def mostly_linear(n_linear: int, n_companions: int) -> Floats:
    """Votes (2 + L,) where rows tell nothing: mostly the first linear member, if there is one, and the networks.

    >>> mostly_linear(1, 3).tolist()
    [0.25, 0.75, 0.0, 0.0, 0.0]
    """
    votes = np.zeros(n_companions + 2)
    votes[:2] = (1 - _LINEAR, _LINEAR) if n_linear else (1.0, 0.0)
    return votes


def doubted(gram: Floats, products: Floats, prior: Floats, doubt: float = _DOUBT) -> tuple[Floats, Floats]:
    """Sums over rows of gram (R, n, n) and products (R, n), drawn towards the prior (n,) by the noise of the rows.

    The noise is that of the difference between the losses of the first two members; `doubt` is how often it counts.
    """
    apart = (gram[:, 0, 0] - 2 * products[:, 0]) - (gram[:, 1, 1] - 2 * products[:, 1])
    pull = doubt * float(apart.std()) * np.sqrt(len(apart)) if prior[1] else 0.0
    return gram.sum(axis=0) + pull * np.eye(len(prior)), products.sum(axis=0) + pull * prior


def in_hundredths(votes: Floats) -> Floats:
    """Round votes, which are not known better; so rounding of sums, which differs between machines, has no say in draws.

    >>> in_hundredths(np.array([0.333, 0.3329, 0.3341])).tolist()
    [0.33, 0.33, 0.34]
    """
    counts = np.rint(100 * votes)
    counts[np.argmax(votes)] += 100 - counts.sum()
    return np.asarray(counts / 100)


def only_networks(companions: Companions) -> Floats:
    """Votes (2 + L,) with which the networks decide alone."""
    return np.array([1.0, *np.zeros(len(companions) + 1)])


class _Judge:
    """Expectations of phi at some training rows and coalitions."""

    def __init__(self, networks: Networks, companions: Companions, X: Rows, seed: int) -> None:
        self.networks, self.companions = networks, companions
        self.X, self.seed, self.keys = X, seed, row_keys(X, column_sizes(X))
        self.phi = Features(networks.fitted_.columns, X, seed)

    def compare(self, e: int, held: Indices, known: Masks) -> tuple[Floats, Floats]:
        """Products of expectations with each other, (R, n, n), and with phi(x), (R, n), of every row.

        Phi of a row with its hidden features at their means is subtracted from all: votes that sum to 1 do not feel it.
        """
        rows = held[:_ROWS]
        plain = self.phi(np.where(known[:, None], self.X[rows], np.nan))  # (C, R, F)
        without = self.companions.without(self.X, held)
        first, second = (part - plain for part in self._expectations(rows, without, known))
        unseen = (first + second) / 2
        unseen[0] = self._networks(rows, known, [e], ("own",))[0] - plain
        gram = _products(first, second)
        return (gram + gram.swapaxes(1, 2)) / 2, _products(unseen, (self.phi(self.X[rows]) - plain)[None])[..., 0]

    def _expectations(self, rows: Indices, without: Companions, known: Masks) -> Floats:
        """Expected phi, twice (2, 2 + L, C, R, F): of the networks, of companions without these rows, and of blind draws."""
        everyone = range(len(self.networks.held_out_))
        others = [self._companion(without, i, rows, known) for i in range(len(without))]
        blind = self._networks(rows, known, everyone, ("first blind", "second blind"), blind=True)
        return np.stack([self._networks(rows, known, everyone, _STREAMS), *others, blind], axis=1)

    def _networks(
        self, rows: Indices, known: Masks, members: Sequence[int], stages: Sequence[str], *, blind: bool = False
    ) -> Floats:
        """Expected phi (n, C, R, F) by some of the networks, from n random streams."""
        K = max(_SAMPLES, len(members))
        weights = self.networks.weights(K) if len(members) > 1 else np.full(K, 1 / K)
        drawn = self.networks.draw(replace(self._asked(rows, known, stages, K), blind=blind), members)
        return self._expect(drawn, weights, rows, len(stages))

    def _companion(self, companions: Companions, i: int, rows: Indices, known: Masks) -> Floats:
        drawn = companions.draw(i, self._asked(rows, known, _STREAMS, _SAMPLES))
        return self._expect(drawn, np.full(_SAMPLES, 1 / _SAMPLES), rows, len(_STREAMS))

    def _asked(self, rows: Indices, known: Masks, stages: Sequence[str], K: int) -> Asked:
        """Rows once for every stream, side by side: one call for all streams is cheaper than a call for each."""
        keys = np.concatenate([hash_words(stage_word(f"votes {stage}"), self.keys[rows]) for stage in stages])
        X = np.tile(self.X[rows], (len(stages), 1))
        return Asked(X, known, K, keys, self.seed, fill_missing=True)

    def _expect(self, drawn: Tensor, weights: Floats, rows: Indices, n_streams: int) -> Floats:
        parts = np.split(as_array(drawn), n_streams, axis=1)
        return np.stack([self.phi.expect(part, weights, self.X[rows]) for part in parts])


class Features:
    """Functions phi of rows: columns in units of their spread, and random waves of all of them together."""

    def __init__(self, columns: Columns, X: Rows, seed: int) -> None:
        self.n_levels = columns.atoms.n_levels
        self.centre, self.spread = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
        self.spread[self.spread == 0] = 1.0
        self.shares = [_shares(X[:, j], n) for j, n in enumerate(self.n_levels)]
        widths = np.where(self.n_levels == 0, 1, self.n_levels)
        self.starts = np.cumsum(widths) - widths
        rng, width = generator(seed, "waves"), int(widths.sum())
        length = np.sqrt(X.shape[1]) * np.repeat([0.5, 1.0, 2.0], -(-_WAVES // 3))[:_WAVES]
        self.slopes = (rng.standard_normal((width, _WAVES)) / length).astype(np.float32)
        self.phases = rng.uniform(0, 2 * np.pi, _WAVES).astype(np.float32)
        self.weight = np.float32(np.sqrt(X.shape[1] / _WAVES))  # all waves together weigh as much as all columns

    def __call__(self, rows: Rows) -> npt.NDArray[np.float32]:
        """Phi (..., F) of rows (..., M), in single precision for speed; a gap counts as an average."""
        n_scores = len(self.slopes)
        out = np.zeros((*rows.shape[:-1], n_scores + _WAVES), dtype=np.float32)
        numbers = self.n_levels == 0
        found = np.clip((rows[..., numbers] - self.centre[numbers]) / self.spread[numbers], -_FAR, _FAR)
        out[..., self.starts[numbers]] = np.where(np.isnan(found), 0.0, found)
        for j in np.flatnonzero(~numbers):
            own, column, n = (
                out[..., self.starts[j] : self.starts[j] + self.n_levels[j]],
                rows[..., j],
                self.n_levels[j],
            )
            own[...] = ((column[..., None] == np.arange(n)) - self.shares[j][0]) / self.shares[j][1]
            own[np.isnan(column)] = 0.0
        scores, waves = out[..., :n_scores], out[..., n_scores:]
        np.matmul(scores, self.slopes, out=waves)
        waves += self.phases
        np.cos(waves, out=waves)
        waves *= self.weight
        return out

    def expect(self, drawn: Rows, weights: Floats, rows: Rows) -> Floats:
        """Mean phi (C, R, F) over draws (C, R, K, M) with weights (K,); where a row has a gap, its draws count as gaps."""
        gaps = np.isnan(rows)
        if gaps.any():
            drawn = np.where(gaps[None, :, None, :], np.nan, drawn)
        return np.asarray(np.stack([np.einsum("rkf,k->rf", self(part), weights.astype(np.float32)) for part in drawn]))


def _products(left: npt.NDArray[Any], right: npt.NDArray[Any]) -> Floats:
    """Scalar products (R, i, j) of each row, of arrays (i, C, R, F) and (j, C, R, F)."""
    first, second = (
        part.transpose(2, 0, 1, 3).reshape(part.shape[2], len(part), -1).astype(np.float64) for part in (left, right)
    )
    return np.asarray(first @ second.swapaxes(1, 2))


def _shares(column: Floats, n_levels: int) -> tuple[Floats, float]:
    """Frequencies of levels (L,), and the root of the indicators' total variance."""
    if n_levels == 0:
        return np.zeros(0), 1.0
    counts = np.bincount(column[~np.isnan(column)].astype(np.intp), minlength=n_levels)
    shares = counts / counts.sum()
    return shares, float(np.sqrt(max(1.0 - (shares**2).sum(), 1e-12)))


def simplex_least_squares(gram: Floats, products: Floats) -> Floats:
    """Weights w >= 0 with sum 1 that minimise w'Gw - 2w'p; small ones are dropped.

    All subsets are tried, which is quick for the few members that there are.
    """
    n = len(products)
    gram = gram + np.eye(n) * 1e-9 * max(float(np.trace(gram)), 1e-300)
    best, least = np.eye(n)[0], np.inf
    for size in range(1, n + 1):
        for some in combinations(range(n), size):
            w = np.zeros(n)
            w[list(some)] = _on_plane(gram[np.ix_(some, some)], products[list(some)])
            if (w < _LEAST_VOTE * (w != 0)).any():
                continue
            loss = float(w @ gram @ w - 2 * w @ products)
            if loss < least:
                best, least = w, loss
    return np.asarray(best)


def _on_plane(gram: Floats, products: Floats) -> Floats:
    """Minimise w'Gw - 2w'p subject to sum w = 1."""
    n = len(products)
    system = np.block([[gram, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    try:
        return np.asarray(np.linalg.solve(system, np.append(products, 1.0))[:n])
    except np.linalg.LinAlgError:
        return np.full(n, -1.0)
