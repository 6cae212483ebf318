"""Approaches whose draws are known to be right, and such that are wrong on purpose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

import condshap as cs
from condshap.approaches.base import ALL_KINDS, DrawnRows
from condshap.schema import Kind


class Truth(BaseEstimator):
    """Approach that draws from a design's own conditional distributions."""

    name: ClassVar[str] = "truth"
    supports: ClassVar[frozenset[Kind]] = ALL_KINDS
    handles_missing: ClassVar[bool] = False
    needs_model: ClassVar[bool] = False

    def __init__(self, design: Any) -> None:
        self.design = design

    def fit(self, X: Any, schema: Any, *, plan: Any, seed: int) -> Truth:
        """Learn nothing."""
        return self

    def sample(self, X: Any, masks: Any, n_samples: int, *, keys: Any, seed: int) -> DrawnRows:
        """Draw from the truth, (C, R, K, M)."""
        return DrawnRows(self.design.sample_conditional(X, masks, n_samples, seed=seed, keys=keys))


class Worse(Truth):
    """The same with something done to its draws: `spoil(draws (C, R, K, M), masks (C, M), rng)` changes them in place."""

    name: ClassVar[str] = "truth made worse"

    def __init__(self, design: Any, spoil: Callable[..., None]) -> None:
        super().__init__(design)
        self.spoil = spoil

    def sample(self, X: Any, masks: Any, n_samples: int, *, keys: Any, seed: int) -> DrawnRows:
        """Draw from the truth and spoil it."""
        drawn = super().sample(X, masks, n_samples, keys=keys, seed=seed).rows.copy()
        self.spoil(drawn, masks, np.random.default_rng([seed, *masks.sum(axis=1)]))
        return DrawnRows(drawn)


class Margins(cs.approaches.Independence):
    """Features by their margins alone, each from a row of its own."""

    name: ClassVar[str] = "margins"

    def sample(self, X: Any, masks: Any, n_samples: int, *, keys: Any, seed: int) -> DrawnRows:
        """Draw every unknown column by itself."""
        rng = np.random.default_rng([seed, *masks.sum(axis=1)])
        drawn = np.repeat(np.repeat(X[None, :, None], len(masks), axis=0), n_samples, axis=2)
        for c, mask in enumerate(masks):
            for j in np.flatnonzero(~mask):
                drawn[c, ..., j] = rng.choice(self.rows_[:, j], size=drawn.shape[1:3])
        return DrawnRows(drawn)


def halve_dependence(drawn: Any, masks: Any, rng: Any) -> None:
    """Half of the draws have their unknown columns from draws for other rows, each column from another one."""
    for c, mask in enumerate(masks):
        replaced = rng.random(drawn.shape[1:3]) < 0.5
        for j in np.flatnonzero(~mask):
            drawn[c, replaced, j] = rng.permutation(drawn[c, ..., j].ravel())[: replaced.sum()]


def thin_a_level(drawn: Any, masks: Any, rng: Any) -> None:
    """A third of the first level of the first column becomes the second."""
    for c, mask in enumerate(masks):
        if not mask[0]:
            moved = (drawn[c, ..., 0] == 0) & (rng.random(drawn.shape[1:3]) < 1 / 3)
            drawn[c, moved, 0] = 1


def halve_spread(drawn: Any, masks: Any, rng: Any) -> None:  # noqa: ARG001
    """Draws are half as far from their mean for the row."""
    mean = drawn.mean(axis=2, keepdims=True)
    drawn[:] = mean + (drawn - mean) / 2
