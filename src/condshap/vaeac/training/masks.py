"""Which features are masked in training: distributions over subsets, with 1 = masked, as in the paper.

Coalitions come in as everywhere in the library, True = known; a mask is the complement of a coalition, m = 1 - S.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from condshap.exceptions import CoalitionError
from condshap.types import Floats, Masks


class MaskScheme(Protocol):
    """A distribution over masks."""

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        """Draw n masks, (n, M) float32 on the generator's device, 1 = masked."""
        ...


@dataclass(frozen=True, slots=True)
class UniformMasks:
    """All 2^M masks alike: every feature is masked with probability 1/2."""

    n_features: int

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        """Draw n masks (n, M)."""
        coins = torch.rand(n, self.n_features, generator=generator, device=generator.device)
        return (coins < 0.5).float()


@dataclass(frozen=True, slots=True)
class MasksBySize:
    """A number of masked features with probabilities (M + 1,) for 0, ..., M, then a uniform subset of that size."""

    probabilities: tuple[float, ...]

    def __post_init__(self) -> None:
        p = np.asarray(self.probabilities)
        if len(p) < 2 or not np.isfinite(p).all() or (p < 0).any() or p.sum() <= 0:
            raise CoalitionError("size_probabilities must be M + 1 non-negative numbers with a positive sum.")

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        """Draw n masks (n, M)."""
        device = generator.device
        p = torch.tensor(self.probabilities, device=device)
        sizes = torch.multinomial(p, n, replacement=True, generator=generator)
        ranks = torch.rand(n, len(p) - 1, generator=generator, device=device).argsort(1).argsort(1)
        return (ranks < sizes[:, None]).float()


@dataclass(frozen=True, slots=True, eq=False)
class MasksOfCoalitions:
    """Complements of given coalitions with given probabilities (VAEAC_C, section 3.4 of the paper), plus a floor.

    Attributes
    ----------
    known : (C, M) coalitions S, True = known
    probabilities : (C,)
    floor : with this probability a mask comes from `base` instead, which keeps full support
    """

    known: Masks
    probabilities: Floats
    floor: float
    base: MaskScheme

    def __post_init__(self) -> None:
        p = np.asarray(self.probabilities)
        if len(p) == 0 or p.shape != (len(self.known),) or not np.isfinite(p).all() or (p < 0).any() or p.sum() <= 0:
            raise CoalitionError(
                f"mask probabilities must be {len(self.known)} non-negative numbers with a positive sum, one per "
                f"coalition, got shape {p.shape}."
            )

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        """Draw n masks (n, M)."""
        device = generator.device
        table = torch.from_numpy(~np.asarray(self.known, dtype=bool)).float().to(device)
        edges = torch.from_numpy(np.cumsum(self.probabilities / np.sum(self.probabilities))).to(device)
        uniform = torch.rand(n, generator=generator, device=device, dtype=torch.float64)
        masks = table[torch.searchsorted(edges, uniform, right=True).clamp_(max=len(table) - 1)]
        if self.floor == 0:
            return masks
        other = torch.rand(n, 1, generator=generator, device=device) < self.floor
        return torch.where(other, self.base.draw(n, generator), masks)


@dataclass(frozen=True, slots=True, eq=False)
class GroupedMasks:
    """Masks over P groups, handed on to their features: those of a group are masked together."""

    groups: MaskScheme
    membership: tuple[int, ...]  # (M,) group of each feature

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        """Draw n masks (n, M)."""
        columns = torch.tensor(self.membership, device=generator.device)
        return self.groups.draw(n, generator).index_select(1, columns)


@dataclass(frozen=True, slots=True, eq=False)
class OrderedMasks:
    """Masks with their columns in another order."""

    masks: MaskScheme
    order: tuple[int, ...]

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        """Draw n masks (n, M)."""
        return self.masks.draw(n, generator)[:, torch.tensor(self.order, device=generator.device)]


def in_order(scheme: MaskScheme, order: Sequence[int]) -> MaskScheme:
    """Hand out the columns in another order (M,), as positions in the given one."""
    return scheme if list(order) == list(range(len(order))) else OrderedMasks(scheme, tuple(order))


def make_scheme(
    masking: str,
    n_features: int,
    *,
    known: Masks | None = None,
    probabilities: Floats | None = None,
    floor: float = 0.0,
    size_probabilities: Sequence[float] | None = None,
    membership: Sequence[int] | None = None,
) -> MaskScheme:
    """Build the scheme named `masking`.

    Parameters
    ----------
    known, probabilities : coalitions (C, M), True = known, and (C,) how often each is needed; used by "coalitions", which
        is uniform without them
    membership : (M,) group of each feature, 0, ..., P - 1; uniform and by-size masks are then masks of groups
    """
    n_players = n_features if membership is None else max(membership) + 1
    base: MaskScheme = UniformMasks(n_players)
    if masking == "by_size":
        sizes = tuple(size_probabilities or (1.0,) * (n_players + 1))
        if len(sizes) != n_players + 1:
            raise CoalitionError(f"size_probabilities must have {n_players + 1} entries, got {len(sizes)}.")
        base = MasksBySize(sizes)
    if membership is not None:
        base = GroupedMasks(base, tuple(membership))
    if masking != "coalitions" or known is None:
        return base
    table = np.asarray(known, dtype=bool)
    if table.ndim != 2 or table.shape[1] != n_features:
        raise CoalitionError(f"coalitions to train on must have shape (C, {n_features}), got {table.shape}.")
    weights = np.full(len(table), 1.0) if probabilities is None else np.asarray(probabilities, dtype=np.float64)
    return MasksOfCoalitions(table, weights, floor, base)
