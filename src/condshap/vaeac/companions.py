"""Members that stand beside the networks: linear ones, one per scale, and rows that are near.

Each is right where networks are at a loss: on a few hundred rows of nearly normal data, or on rows along a curve. Votes
decide how much each counts, see `condshap.vaeac.votes`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from condshap.seeding import generator
from condshap.types import Indices, Rows
from condshap.vaeac.ensemble import Networks
from condshap.vaeac.sampling.neighbours import NEAREST, Neighbours, complete_rows
from condshap.vaeac.sampling.tiles import Asked

_FEWEST = 20  # complete rows for neighbours to be asked


@dataclass(frozen=True, slots=True, eq=False)
class Companions:
    """Linear members of fitted networks, and neighbours, None where there are too few complete rows."""

    networks: Networks
    neighbours: Neighbours | None

    @classmethod
    def learn(cls, networks: Networks, X: Rows, *, seed: int) -> Companions:
        """Learn from training rows (N, M) what networks did not learn already."""
        if not networks.fitted_.config.companions:
            return cls(networks, None)
        positions = complete_rows(X, generator(seed, "neighbours"))
        if len(positions) < _FEWEST:
            return cls(networks, None)
        return cls(networks, Neighbours.of(X[positions], networks.fitted_.columns.atoms.n_levels > 0, positions))

    @classmethod
    def of(cls, networks: Networks, lenders: Rows | None) -> Companions:
        """Companions with rows (n, M) that lend, or without."""
        n_levels = networks.fitted_.columns.atoms.n_levels
        return cls(networks, None if lenders is None else Neighbours.of(lenders, n_levels > 0))

    @property
    def names(self) -> tuple[str, ...]:
        """What each of them is."""
        near = NEAREST if self.neighbours is not None else ()
        return (*(f"linear, {name}" for name in self.networks.linear_names), *(f"{k} neighbours" for k in near))

    def __len__(self) -> int:
        """Return their number L."""
        return len(self.names)

    def without(self, X: Rows, held: Indices) -> Companions:
        """The same as if they had not seen the training rows X (N, M) at positions `held`."""
        near = None if self.neighbours is None else self.neighbours.without(held)
        return Companions(self.networks.without(X, held), near)

    def draw(self, i: int, asked: Asked) -> torch.Tensor:
        """Draw with the i-th of them, (C, R, K, M); none of them is asked blindly."""
        n_linear = len(self.networks.linear_names)
        if i < n_linear:
            return self.networks.draw_linear(i, asked)
        assert self.neighbours is not None
        k, device = NEAREST[i - n_linear], self.networks.where
        if device.type == "cpu" or asked.points is not None:
            return torch.from_numpy(self.neighbours.sample(k, asked))
        return self.neighbours.sample_on(k, asked, device)
