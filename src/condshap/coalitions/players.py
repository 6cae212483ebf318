"""Features, or groups of features, as the players of the game."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from condshap.exceptions import CoalitionError, listing
from condshap.tables.reading import check_unicode
from condshap.types import Masks


@dataclass(frozen=True, slots=True)
class Players:
    """P players over M features: their names and `membership` (P, M), True where a feature belongs to a player."""

    names: tuple[str, ...]
    membership: Masks

    @classmethod
    def of(cls, features: Sequence[str], groups: Mapping[str, Sequence[str | int]] | None = None) -> Players:
        """Every feature is a player, or every group is.

        Members of groups are names of features or, where no feature has that name, positions.

        >>> Players.of(["a", "b", "c"], {"first": ["a", "c"], "rest": ["b"]}).membership.astype(int)
        array([[1, 0, 1],
               [0, 1, 0]])
        """
        if groups is None:
            return cls(tuple(features), np.eye(len(features), dtype=bool))
        if not _is_groups(groups):
            raise CoalitionError(
                f"groups must map a name to a list of columns, got {groups!r}. Write e.g. {{'size': ['height', 'width']}}."
            )
        check_unicode(groups, "names of groups")
        named = {str(name): [_feature_name(m, features) for m in members] for name, members in groups.items()}
        _check_partition(features, named, n_groups=len(groups))
        position = {name: j for j, name in enumerate(features)}
        membership = np.zeros((len(named), len(features)), dtype=bool)
        for i, members in enumerate(named.values()):
            membership[i, [position[name] for name in members]] = True
        return cls(tuple(named), membership)

    def __len__(self) -> int:
        """Return the number of players P."""
        return len(self.names)

    @property
    def features(self) -> tuple[tuple[int, ...], ...]:
        """Positions of every player's features."""
        return tuple(tuple(np.flatnonzero(row).tolist()) for row in self.membership)

    def feature_masks(self, masks: Masks) -> Masks:
        """Coalitions of players (C, P) -> known features (C, M)."""
        if np.array_equal(self.membership, np.eye(len(self.names), dtype=bool)):
            return masks
        return (masks.astype(np.uint8) @ self.membership.astype(np.uint8)).astype(bool)


def _is_groups(groups: object) -> bool:
    if not isinstance(groups, Mapping):
        return False
    return all(isinstance(members, Iterable) and not isinstance(members, str) for members in groups.values())


def _feature_name(member: str | int, features: Sequence[str]) -> str:
    if isinstance(member, (int, np.integer)) and str(member) not in features and 0 <= member < len(features):
        return features[member]
    return str(member)


def _check_partition(features: Sequence[str], groups: Mapping[str, Sequence[str]], *, n_groups: int) -> None:
    if len(groups) < n_groups:
        raise CoalitionError(
            f"groups must have different names, got {listing(groups)} for {n_groups} groups. Rename some of them."
        )
    members = [name for group in groups.values() for name in group]
    repeated = {name for name in members if members.count(name) > 1}
    for problem, names in (
        ("have at least one feature each, but these have none:", [name for name, group in groups.items() if not group]),
        (f"name features among {listing(features)}, but these are unknown:", sorted(set(members) - set(features))),
        ("not overlap, but these features appear more than once:", sorted(repeated)),
        ("cover every feature, but these are in no group:", [name for name in features if name not in members]),
    ):
        if names:
            raise CoalitionError(f"groups must {problem} {listing(names)}. Put every feature into exactly one group.")
