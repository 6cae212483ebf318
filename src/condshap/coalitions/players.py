"""Features, or groups of features, as the players of the game."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from condshap.exceptions import CoalitionError, listing
from condshap.types import Masks


@dataclass(frozen=True, slots=True)
class Players:
    """P players over M features: their names and `membership` (P, M), True where a feature belongs to a player."""

    names: tuple[str, ...]
    membership: Masks

    @classmethod
    def of(cls, features: Sequence[str], groups: Mapping[str, Sequence[str]] | None = None) -> Players:
        """Every feature is a player, or every group is.

        >>> Players.of(["a", "b", "c"], {"first": ["a", "c"], "rest": ["b"]}).membership.astype(int)
        array([[1, 0, 1],
               [0, 1, 0]])
        """
        if groups is None:
            return cls(tuple(features), np.eye(len(features), dtype=bool))
        _check_partition(features, groups)
        position = {name: j for j, name in enumerate(features)}
        membership = np.zeros((len(groups), len(features)), dtype=bool)
        for i, members in enumerate(groups.values()):
            membership[i, [position[str(name)] for name in members]] = True
        return cls(tuple(str(name) for name in groups), membership)

    def __len__(self) -> int:
        """Return the number of players P."""
        return len(self.names)

    def feature_masks(self, masks: Masks) -> Masks:
        """Coalitions of players (C, P) -> known features (C, M)."""
        if np.array_equal(self.membership, np.eye(len(self.names), dtype=bool)):
            return masks
        return (masks.astype(np.uint8) @ self.membership.astype(np.uint8)).astype(bool)


def _check_partition(features: Sequence[str], groups: Mapping[str, Sequence[str]]) -> None:
    if not isinstance(groups, Mapping) or any(isinstance(members, str) for members in groups.values()):
        raise CoalitionError(f"groups must map a name to a list of columns, got {groups!r}.")
    members = [str(name) for group in groups.values() for name in group]
    empty = [name for name, group in groups.items() if not list(group)]
    unknown = sorted(set(members) - set(features))
    repeated = sorted({name for name in members if members.count(name) > 1})
    missed = [name for name in features if name not in members]
    for problem, names in (
        ("have at least one feature each, empty are", empty),
        (f"name features among {listing(features)}, unknown are", unknown),
        ("not overlap, in more than one are", repeated),
        ("cover every feature, missing are", missed),
    ):
        if names:
            raise CoalitionError(
                f"groups must {problem} {listing(names)}. Make the groups a partition of the features."
            )
