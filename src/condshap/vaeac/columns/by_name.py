"""What a user asks of a table, by names of columns -> arrays over features: coalitions, groups, support."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from condshap.exceptions import CoalitionError, OptionError, SchemaError, listing
from condshap.options import floats_or_nan
from condshap.types import Floats, Masks, Rows

Known: TypeAlias = npt.ArrayLike | Sequence[Collection[str]]
"""(C, M) array, True = known, or a list with C collections of names of known columns."""

_BOOLEANS = (bool, np.bool_)


def as_masks(masks: Known, names: Sequence[str]) -> Masks:
    """Coalitions as an array (C, M), True = known.

    >>> as_masks([["a"], []], ["a", "b"]).tolist()
    [[True, False], [False, False]]
    """
    if isinstance(masks, (list, tuple)) and not _are_booleans(masks):
        return _by_names(masks, names)
    array = np.asarray(masks)
    is_boolean = array.dtype == bool or (array.dtype.kind in "iuf" and bool(np.isin(array, (0, 1)).all()))
    if array.ndim != 2 or array.shape[1] != len(names) or len(array) == 0 or not is_boolean:
        what = f"shape {array.shape}" if is_boolean else f"values of type {array.dtype} that are not 0 or 1"
        raise SchemaError(
            f"masks must be an array of booleans of shape (C, {len(names)}) with C >= 1, True = known, or a list of "
            f"collections of column names, got {what}. A single coalition is masks[None], or [['{names[0]}']]."
        )
    return array.astype(bool)


def _are_booleans(masks: Sequence[Any]) -> bool:
    """Tell rows of booleans (or 0 and 1) from collections of names."""
    rows = [list(row) if isinstance(row, (list, tuple, np.ndarray)) else [row] for row in masks]
    numbers = all(isinstance(value, (*_BOOLEANS, int, float, np.number)) for row in rows for value in row)
    return numbers and (len(rows) == 0 or any(rows))


def _by_names(masks: Sequence[Any], names: Sequence[str]) -> Masks:
    strays = [one for one in masks if isinstance(one, str) or not isinstance(one, Collection)]
    if strays:
        raise SchemaError(
            f"masks must be a list of collections of column names, one per coalition, got {listing(strays)} among them. "
            "For a single coalition write [['a', 'b']]."
        )
    position = {name: j for j, name in enumerate(names)}
    unknown = list(dict.fromkeys(name for one in masks for name in one if str(name) not in position))
    if unknown:
        raise SchemaError(f"masks must name columns of the table, {listing(names)}, got {listing(unknown)}.")
    known = np.zeros((len(masks), len(names)), dtype=bool)
    for c, one in enumerate(masks):
        known[c, [position[str(name)] for name in one]] = True
    return known


def as_probabilities(probabilities: npt.ArrayLike, n_coalitions: int) -> Floats:
    """How often each of C coalitions is asked for (C,), on any scale."""
    if n_coalitions == 0:
        raise CoalitionError(
            "probabilities need the coalitions that they belong to, got none. Pass coalitions as well."
        )
    given = floats_or_nan(probabilities)
    if given.shape != (n_coalitions,) or not np.isfinite(given).all() or (given < 0).any() or given.sum() == 0:
        raise CoalitionError(
            f"probabilities must be {n_coalitions} non-negative numbers with a positive sum, one for each of `coalitions`, "
            f"got {probabilities!r}."
        )
    return given


def as_membership(groups: Mapping[str, Sequence[str | int]], names: Sequence[str]) -> tuple[int, ...]:
    """Group of each feature (M,), 0, 1, ...; features in no group stand alone.

    >>> as_membership({"first": ["a", "c"]}, ["a", "b", "c"])
    (0, 1, 0)
    """
    if not isinstance(groups, Mapping) or any(isinstance(members, str) for members in groups.values()):
        raise CoalitionError(f"groups must map a name to a list of columns, got {groups!r}.")
    members = [[str(name) for name in group] for group in groups.values()]
    named = [name for group in members for name in group]
    unknown, repeated = set(named) - set(names), {name for name in named if named.count(name) > 1}
    if unknown or repeated:
        problem = f"name columns among {listing(names)}, but" if unknown else "not overlap, but"
        problem += " these are unknown:" if unknown else " these columns appear more than once:"
        raise CoalitionError(f"groups must {problem} {listing(sorted(unknown or repeated))}.")
    labels = {name: i for i, group in enumerate(members) for name in group}
    labels |= {name: len(members) + j for j, name in enumerate(names) if name not in labels}
    used = {label: i for i, label in enumerate(dict.fromkeys(labels[name] for name in names))}
    return tuple(used[labels[name]] for name in names)


def as_support(support: Mapping[str, tuple[float, float]], names: Sequence[str], is_level: Masks, X: Rows) -> Floats:
    """Least and largest values (2, M) that draws may take: declared ones, which hold the rows (N, M), or NaN."""
    bounds = np.full((2, X.shape[1]), np.nan)
    for name, given in support.items():
        if str(name) not in names or is_level[names.index(str(name))]:
            continuous = [name for name, level in zip(names, is_level, strict=True) if not level]
            raise OptionError(f"support must name continuous columns, {listing(continuous)}, got {name!r}.")
        j = names.index(str(name))
        low, high = _interval(name, given)
        outside = np.flatnonzero((X[:, j] < low) | (X[:, j] > high))
        if len(outside):
            raise SchemaError(
                f"column '{name}' must lie in its support {(low, high)}, got {X[outside[0], j]:.6g} and others in rows "
                f"{listing(outside.tolist())}. Widen the support, or correct these rows."
            )
        bounds[:, j] = low, high
    return bounds


def _interval(name: str, given: Any) -> tuple[float, float]:
    try:
        low, high = (float(bound) for bound in given)
    except (TypeError, ValueError):
        low, high = np.nan, np.nan
    if not low <= high:
        raise OptionError(f"support of column '{name}' must be (least, largest), got {given!r}.")
    return low, high
