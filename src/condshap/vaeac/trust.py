"""Trained members, held-out rows -> trust: how far the dependence that was learned may be believed.

A network that has learned nothing but noise still moves a feature's conditional mean a little with what is known. Held-out
rows tell by how much such moves are too large: they are regressed on them, over all features at once. A slope of 1 means
that the moves are right, 0 that they are noise. Whoever draws may then let a share 1 - slope of the draws be blind.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from condshap.seeding import generator, hash_words, row_keys, stage_word
from condshap.types import Floats, Indices, Masks, RowKeys, Rows
from condshap.vaeac.model import Networks

_COALITIONS, _ROWS, _SAMPLES = 12, 250, 16


def learn_trust(networks: Networks, X: Rows, masks: Masks, probabilities: Floats, *, seed: int) -> float:
    """Slope of held-out rows on learned conditional means, at least 0 and at most 1; 1 where no row was held out.

    Parameters
    ----------
    X : (N, M) training rows
    masks, probabilities : (C, M), True = known, and (C,) how often each coalition is asked for

    Notes
    -----
    With D(S, x) = E[g(X) | x_S] - E[g(X)] for g = z-scores of numbers and indicators of levels, scaled to variance 1 a
    feature, and D_e of the member e that has not seen x, the slope is sum (g(x) - mean g) D_e / sum D^2, D of the mixture.
    Both expectations of D use the same random numbers, and the two factors of D^2 different ones, so that few samples do
    not bias it. No model is asked: against one model's predictions alone, the slope has three times the standard error.
    """
    if len(masks) == 0 or networks.held_out_.size == 0:
        return 1.0
    rng, keys = generator(seed, "trust"), row_keys(X)
    products = squares = 0.0
    everyone = range(len(networks.held_out_))
    for e, held in enumerate(networks.held_out_):
        chosen = rng.choice(len(masks), size=min(_COALITIONS, len(masks)), p=probabilities, replace=False)
        rows, known = held[:_ROWS], masks[chosen]
        means = _Means(networks, X, rows, known, keys, seed)
        own, first, second = means.moves([e], "own"), means.moves(everyone, "first"), means.moves(everyone, "second")
        for j, feature in enumerate(own):
            asked = ~known[:, j, None, None] & ~np.isnan(X[rows, j])[None, :, None]
            products += float((feature * means.deviations(j)).sum(where=asked))
            squares += float((first[j] * second[j]).sum(where=asked))
    return float(np.clip(products / squares, 0.0, 1.0)) if squares > 0 else 1.0


class _Means:
    """Conditional means of the features' scores at some training rows and coalitions."""

    def __init__(self, networks: Networks, X: Rows, rows: Indices, known: Masks, keys: RowKeys, seed: int) -> None:
        self.networks, self.X, self.rows, self.known, self.keys, self.seed = networks, X, rows, known, keys[rows], seed
        self.n_levels = networks.fitted_.columns.layout.n_levels

    def moves(self, members: Sequence[int], stage: str) -> list[Floats]:
        """Move of the mean score when x_S becomes known, by feature: (C, R, levels or 1)."""
        keys = hash_words(stage_word(f"trust {stage}"), self.keys)
        x, K, seed = self.X[self.rows], max(_SAMPLES, len(members)), self.seed
        weights = self.networks.weights(K) if len(members) > 1 else np.full(K, 1 / K)
        seeing, blind = (
            self.networks.sample(x, self.known, K, members=members, keys=keys, seed=seed, fill_missing=True, blind=b)
            for b in (False, True)
        )
        return [
            self._scores(seeing[..., j], j, weights) - self._scores(blind[..., j], j, weights)
            for j in range(self.X.shape[1])
        ]

    def deviations(self, j: int) -> Floats:
        """Scores of the rows themselves less the mean over all training rows, (R, levels or 1); means nothing at gaps."""
        column = self.X[:, j]
        mean = self._scores(column[None, None, ~np.isnan(column)], j, None)[0]
        return np.asarray(self._scores(column[self.rows][None, :, None], j, None)[0] - mean)

    def _scores(self, values: Floats, j: int, weights: Floats | None) -> Floats:
        """Mean score over the last axis: values (C, R, K) -> (C, R, levels or 1)."""
        column, n_levels = self.X[:, j], self.n_levels[j]
        if n_levels == 0:
            spread = np.nanstd(column) or 1.0
            return np.asarray(np.average(values, axis=2, weights=weights)[..., None] / spread)
        present = column[~np.isnan(column)].astype(np.intp)
        shares = np.bincount(present, minlength=n_levels) / len(present)
        spread = np.sqrt(max(1.0 - float((shares**2).sum()), 1e-12))
        cells = np.arange(values[..., 0].size)[:, None] * n_levels + np.nan_to_num(values).reshape(-1, values.shape[2])
        each = None if weights is None else np.broadcast_to(weights, cells.shape).ravel()
        counts = np.bincount(cells.astype(np.intp).ravel(), weights=each, minlength=values[..., 0].size * n_levels)
        scale = 1.0 if weights is not None else 1.0 / values.shape[2]
        return np.asarray(counts.reshape(*values.shape[:2], n_levels) * scale / spread)
