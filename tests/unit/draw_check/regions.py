"""A table with a level of many regions and numbers around the means of the region, and approaches that know its law."""

from __future__ import annotations

import numpy as np
import pandas as pd

import condshap as cs
from condshap.approaches.base import Capabilities, DrawnRows


class Regions:
    """Level of a region, and three numbers, normal around its means; `strength` is the variance that these explain."""

    def __init__(self, n_regions, strength, seed, *, rho=0.4, skew=0.0):
        rng = np.random.default_rng([seed, n_regions])
        self.shares = np.arange(1, n_regions + 1) ** -float(skew)
        self.shares /= self.shares.sum()
        self.means = np.sqrt(strength / 2) * (rng.normal(size=(n_regions, 1)) + rng.normal(size=(n_regions, 3)))
        self.covariance = (1 - strength) * (rho + (1 - rho) * np.eye(3))

    def draw(self, n, seed):
        """Draw a table, and forget the regions that are not in it, as a schema does."""
        rng = np.random.default_rng([seed, n])
        regions = np.sort(rng.choice(len(self.shares), size=n, p=self.shares))
        seen, codes = np.unique(regions, return_inverse=True)
        self.shares, self.means = self.shares[seen] / self.shares[seen].sum(), self.means[seen]
        numbers = self.means[codes] + rng.multivariate_normal(np.zeros(3), self.covariance, size=n)
        table = pd.DataFrame(numbers, columns=["income", "age", "rooms"])
        table.insert(0, "region", pd.Categorical.from_codes(codes, [f"r{k:03d}" for k in range(len(seen))]))
        return table.sample(frac=1, random_state=seed).reset_index(drop=True)

    def some(self, shape, rng):
        """Regions by their shares alone."""
        return rng.choice(len(self.shares), size=shape, p=self.shares)

    def given(self, numbers, known, n_samples, rng):
        """Regions (n, K) given known numbers (n, 3)."""
        distance = numbers[:, None, known] - self.means[:, known]
        inverse = np.linalg.inv(self.covariance[np.ix_(known, known)])
        log = np.log(self.shares) - np.einsum("nli,ij,nlj->nl", distance, inverse, distance) / 2
        reached = np.exp(log - log.max(axis=1, keepdims=True)).cumsum(axis=1)
        wanted = rng.random((len(numbers), n_samples, 1)) * reached[:, None, -1:]
        return (reached[:, None] <= wanted).sum(axis=2)

    def numbers(self, regions, numbers, known, rng):
        """Numbers (n, K, 3) of regions (n, K), given the known ones."""
        means, inside, across = self.means[regions], np.ix_(known, known), np.ix_(~known, known)
        slope = self.covariance[across] @ np.linalg.inv(self.covariance[inside])
        rest = self.covariance[np.ix_(~known, ~known)] - slope @ self.covariance[across].T
        drawn = np.repeat(numbers[:, None], regions.shape[1], axis=1)
        moved = means[..., ~known] + (numbers[:, None, known] - means[..., known]) @ slope.T
        drawn[..., ~known] = moved + rng.multivariate_normal(np.zeros((~known).sum()), rest, size=regions.shape)
        return drawn


class Law(cs.approaches.Independence):
    """Draws by the table's own law. With a probability, numbers belong to `strangers`, or unknown regions are `stray`."""

    name = "law"
    capabilities = Capabilities(default_samples=128, expects=True, expects_exactly=True, is_storable=True)

    def __init__(self, design, strangers=0.0, stray=0.0):
        self.design, self.strangers, self.stray = design, strangers, stray

    def sample(self, X, masks, n_samples, *, keys, seed):
        drawn = np.repeat(np.repeat(X[None, :, None], len(masks), axis=0), n_samples, axis=2)
        for c, mask in enumerate(masks):
            self._fill(drawn[c], X, mask, np.random.default_rng([seed, *map(int, mask)]))
        return DrawnRows(drawn)

    def _fill(self, drawn, X, mask, rng):
        known, shape = mask[1:], drawn.shape[:2]
        regions = drawn[..., 0].astype(int)
        if not mask[0]:
            regions = self.design.given(X[:, 1:], known, shape[1], rng)
            regions = np.where(rng.random(shape) < self.stray, self.design.some(shape, rng), regions)
        drawn[..., 0] = regions
        if not known.all():
            used = np.where(rng.random(shape) < self.strangers, self.design.some(shape, rng), regions)
            drawn[..., 1:] = self.design.numbers(used, X[:, 1:], known, rng)
