"""Rows -> whether they are like those of the pool: as near to one of them as held-out rows are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from condshap.amortised.encoding import Inputs
from condshap.amortised.network import by_tiles, padded, widened
from condshap.approaches.base import State
from condshap.types import Floats, Masks

_USUAL, _MARGIN = 0.002, 1.25  # so many of the held-out rows are further away than the limit without its margin
_REFERENCES = 2048
_UNHEARD_OF = 10.0  # times the limit: distance of a row with something that the pool has nowhere
_ROUNDING = 0.02  # distance up to which single precision sees none


@dataclass(frozen=True, eq=False)
class Likeness:
    """Some rows of the pool, and how far from the nearest one a row may be.

    Attributes
    ----------
    references : (k, D') rows of the pool where distances mean something, see `RowEncoding.places`; both are padded
    limit : distance that is larger, by a margin, than that of nearly all held-out rows
    """

    references: Inputs
    limit: float

    @classmethod
    def learn(cls, pool: Inputs, held_out: Inputs) -> Likeness:
        """Learn from places (n, D') of the pool and of held-out rows like them."""
        chosen = np.unique(np.linspace(0, len(pool) - 1, min(len(pool), _REFERENCES)).round().astype(np.intp))
        missing = padded(len(chosen)) - len(chosen)
        raw = cls(widened(np.pad(pool[chosen], ((0, missing), (0, 0)), mode="edge")), np.inf)
        distances = np.sort(raw.distances(held_out, np.zeros(len(held_out), dtype=bool)))
        rank = min(len(distances), int(np.ceil((len(distances) + 1) * (1 - _USUAL))))
        return cls(raw.references, max(_MARGIN * float(distances[rank - 1]), _ROUNDING))

    def distances(self, places: Inputs, is_new: Masks) -> Floats:
        """Distances (n,) to the nearest reference; rows with something that the pool has nowhere are far from all."""
        references = torch.from_numpy(self.references)
        squares = (references**2).sum(dim=1)

        def nearest(tile: torch.Tensor) -> torch.Tensor:
            products = torch.addmm(squares, tile, references.T, alpha=-2.0)
            return products.min(dim=1).values + (tile**2).sum(dim=1)

        found = np.sqrt(np.maximum(by_tiles(nearest, places), 0.0))
        return np.where(is_new, _UNHEARD_OF * self.limit, found)

    def is_unlike(self, distances: Floats) -> Masks:
        """Rows (n,) that are further away than usual."""
        return np.asarray(distances > self.limit)

    def to_state(self) -> State:
        """All of it as arrays."""
        return State({"references": self.references, "limit": np.array(self.limit)}, {})

    @classmethod
    def from_state(cls, state: State) -> Likeness:
        """Inverse of `to_state`."""
        return cls(state.arrays["references"], float(state.arrays["limit"]))
