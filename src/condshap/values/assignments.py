"""Approach, or a list with one per coalition size -> parts: which approach answers for which coalitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from condshap.approaches import find_approach
from condshap.approaches.base import Approach, Capabilities, capabilities_of
from condshap.coalitions import CoalitionPlan
from condshap.exceptions import ApproachError
from condshap.schema import FeatureSchema
from condshap.seeding import generator
from condshap.types import Indices, Rows


@dataclass(frozen=True, slots=True)
class Part:
    """An approach and the positions, in the plan, of the interior coalitions that it answers for."""

    approach: Any
    positions: Indices

    @property
    def can(self) -> Capabilities:
        """What the approach declares."""
        return capabilities_of(self.approach)

    @property
    def options(self) -> dict[str, Any]:
        """Options by name, as scikit-learn's estimators know them; none of other objects."""
        return dict(self.approach.get_params()) if hasattr(self.approach, "get_params") else {}


@dataclass(frozen=True, slots=True)
class Wrapped:
    """An approach inside of another one that answers in its place, under its name."""

    approach: Any

    @property
    def name(self) -> str:
        """Of the approach."""
        return str(self.approach.name)


def make_parts(approach: str | Approach | Sequence[str | Approach], plan: CoalitionPlan) -> tuple[Part, ...]:
    """One part for a single approach, one per different approach for a list over coalition sizes 1, ..., P-1.

    Entries that are the same name or the same object share one fit.
    """
    interior = np.arange(len(plan.masks))[plan.interior]
    if isinstance(approach, str) or not isinstance(approach, Sequence):
        return (Part(new_approach(approach), interior),)
    if len(approach) != plan.n_players - 1 or not approach:
        raise ApproachError(
            f"a list of approaches must have one entry per coalition size 1 to {plan.n_players - 1}, "
            f"got {len(approach)} entries. Use one name for all sizes, or complete the list."
        )
    sizes_of: dict[str | int, list[int]] = {}
    first: dict[str | int, str | Approach] = {}
    for size, entry in enumerate(approach, start=1):
        key = entry if isinstance(entry, str) else id(entry)
        sizes_of.setdefault(key, []).append(size)
        first[key] = entry
    of_size = plan.sizes[interior]
    return tuple(Part(new_approach(first[key]), interior[np.isin(of_size, sizes)]) for key, sizes in sizes_of.items())


def restrict_parts(parts: Sequence[Part], positions: Indices) -> tuple[Part, ...]:
    """Parts of the coalitions at `positions` (c,), ascending, alone; positions in the new parts count among these."""
    restricted = ((part.approach, np.flatnonzero(np.isin(positions, part.positions))) for part in parts)
    return tuple(Part(approach, found) for approach, found in restricted if len(found))


def learning_rows(parts: Sequence[Part], rows: Rows, schema: FeatureSchema, *, seed: int) -> Indices | None:
    """Positions of the training rows of (N, M) that approaches learn from, ascending; None if these are all.

    They are a random part as large as the approach that takes fewest allows, and one more row for every level, and every
    gap of a column, that no row of that part has.
    """
    most = min((part.can.most_rows or len(rows) for part in parts), default=len(rows))
    if most >= len(rows):
        return None
    rng = generator(seed, "learning rows")
    chosen = rng.permutation(len(rows))
    kept, others = chosen[:most], chosen[most:]
    missed = [others[:0]]
    for j, feature in enumerate(schema.features):
        code = np.isnan(rows[:, j]) if feature.levels is None else np.nan_to_num(rows[:, j], nan=-1.0)
        found, first = np.unique(code[others], return_index=True)
        missed.append(others[first[~np.isin(found, code[kept])]])
    return np.unique(np.concatenate([kept, *missed]))


def new_approach(approach: str | Approach) -> Any:
    """Unfitted approach of the explainer's own, so that fitting never changes the user's object."""
    if isinstance(approach, str):
        return find_approach(approach)()
    is_object = not isinstance(approach, type) and hasattr(approach, "fit")
    if not is_object or not (hasattr(approach, "sample") or hasattr(approach, "estimate")):  # no approach at all
        raise ApproachError(
            f"approach must be a name, an object with fit and sample (or estimate), or a list of these, got {approach!r}. "
            "condshap.available_approaches() lists the names."
        )
    capabilities_of(approach)  # refused here, if at all
    return clone(approach, safe=False)  # a deep copy, where scikit-learn cannot clone it
