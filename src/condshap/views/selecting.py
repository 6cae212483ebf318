"""Explanation, a key as of an array -> explanation of some rows, players and outputs, as shap's users write it.

Rows and outputs are whole games of their own. Some of the players are not: what the others contribute is kept as one sum,
so that nothing seems to be missing from the prediction, and v(S), whose coalitions are of all players, is withheld.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from condshap.exceptions import OptionError, listing
from condshap.options import find_named
from condshap.tables.reading import take_rows
from condshap.types import Floats, Indices
from condshap.values.table import ValueTable
from condshap.views.rows import row_positions

if TYPE_CHECKING:
    from condshap.explanation import Explanation


@dataclass(frozen=True, slots=True, eq=False)
class Others:
    """Players that ``explanation[:, players]`` left out, added up.

    Attributes
    ----------
    names : of the players that were left out
    values : (R,) or (R, O), the sum of their Shapley values
    errors : same shape, upper bounds of the sum's error: how errors of players depend on each other is not known, but no
        sum errs by more than its terms together, nor by more than the players that are left, as all of them add up to
        a number without error
    """

    names: tuple[str, ...]
    values: Floats
    errors: Floats

    def __repr__(self) -> str:
        """Say who was left out."""
        return f"Others({listing(self.names)})"


class WithheldTable(ValueTable):
    """Value table of an explanation of some of the players: asking it for v(S) is an error."""

    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        """Refuse coalitions, values and their errors."""
        if name in {"coalitions", "values", "std_errors"}:
            raise OptionError(
                "v(S) needs all players, but this explanation has only some of them, selected by explanation[:, players]. "
                "Use the explanation from before the selection."
            )
        return object.__getattribute__(self, name)

    def __reduce__(self) -> tuple[Callable[[int], ValueTable], tuple[int]]:
        """Copy and pickle without looking inside."""
        return withheld, (self.n_evaluations,)

    def __repr__(self) -> str:
        """Say what it is not."""
        return "WithheldTable(of an explanation of some of the players)"


def withheld(n_evaluations: int) -> ValueTable:
    """Table without v(S)."""
    return WithheldTable(np.zeros((0, 0), dtype=bool), np.zeros((0, 0)), np.zeros((0, 0)), n_evaluations)


def select(explanation: Explanation, key: Any) -> Explanation:
    """Explanation of the rows, players and outputs that `key` names: ``[rows]``, ``[rows, players]``, ``[..., outputs]``."""
    rows, players, *outputs = _split(_without_only_output(key, explanation), explanation.values.ndim)
    found = explanation
    if not _is_all(rows):
        found = _take_rows(found, _row_positions(rows, explanation.row_labels))
    if not _is_all(players):
        chosen = np.atleast_1d(_positions("players", players, explanation.player_names))
        found = _take_players(found, chosen)
    if outputs and not _is_all(outputs[0]):
        found = _take_outputs(found, _positions("outputs", outputs[0], explanation.output_names))
    return found


def check_whole(explanation: Explanation, what: str) -> None:
    """Refuse what some of the players cannot give."""
    if explanation.others is not None:
        raise OptionError(
            f"{what} needs all players, got an explanation without {listing(explanation.others.names)}, selected by "
            "explanation[:, players]. Use the explanation from before the selection, and select afterwards."
        )


def _is_all(part: Any) -> bool:
    return isinstance(part, slice) and part == slice(None)


def _without_only_output(key: Any, explanation: Explanation) -> Any:
    """The key without the name of the only output, so that ``e[..., name]`` works for all of `output_names`.

    There is no axis of outputs then, and a player of that name comes first.
    """
    is_long = isinstance(key, tuple) and (len(key) == 3 or any(part is Ellipsis for part in key[:-1]))
    if not is_long or explanation.values.ndim == 3 or not isinstance(key[-1], str):
        return key
    players, outputs = explanation.player_names, explanation.output_names
    if find_named("players", key[-1], players) is not None:
        return key
    if key[-1] not in outputs:
        raise OptionError(
            f"players must be among {listing(players)}, and the only output is {outputs[0]!r}, got {key[-1]!r}."
        )
    return key[:-1]


def _split(key: Any, n_axes: int) -> list[Any]:
    """A part of the key for every axis, with what is not mentioned in full."""
    parts = list(key) if isinstance(key, tuple) else [key]
    dots = [i for i, part in enumerate(parts) if part is Ellipsis]
    if len(dots) > 1:
        raise OptionError(
            f"an index must have '...' at most once, got {len(dots)} times. Write explanation[..., 'yes']."
        )
    given = len(parts) - len(dots)
    if given > n_axes:
        axes = "rows, players and outputs" if n_axes == 3 else "rows and players, because there is one output only"
        raise OptionError(f"an index must have at most {n_axes} parts, {axes}, got {given}: {key!r}. Leave some out.")
    place = dots[0] if dots else len(parts)
    return [*parts[:place], *[slice(None)] * (n_axes - given), *parts[place + len(dots) :]]


def _row_positions(rows: Any, labels: pd.Index[Any]) -> Indices:
    """Positions of rows; one that is out of range is an IndexError, by which loops over rows end."""
    try:
        found = row_positions(labels, rows)
    except OptionError as error:
        raise OptionError(
            f"{error} For a player write explanation[:, 'name'], for an output of several explanation[..., 'name']."
        ) from None
    if found.ndim != 1:
        raise OptionError(
            f"rows must be a position, a label, a slice, or a list or mask of one dimension, got {rows!r}."
        )
    return found


def _positions(what: str, given: Any, names: Sequence[str]) -> Indices | int:
    """Position of one player or output, or positions of several, by name, position, slice or mask."""
    n = len(names)
    if isinstance(given, slice):
        if any(isinstance(end, str) for end in (given.start, given.stop)):
            raise OptionError(
                f"a slice of {what} must have positions as its ends, got {given!r}. Pass a list of names."
            )
        found = np.arange(n)[given]
    elif isinstance(given, str) or np.ndim(given) == 0:
        return _position(what, given, names)
    else:
        several = list(given)
        if several and all(isinstance(one, (bool, np.bool_)) for one in several):
            if len(several) != n:
                raise OptionError(f"a mask of {what} must have {n} entries, one for each, got {len(several)}.")
            found = np.flatnonzero(several)
        else:
            found = np.array([_position(what, one, names) for one in several], dtype=np.intp)
    if not len(found):
        raise OptionError(f"{what} must be at least one of {listing(names)}, got none with {given!r}.")
    repeated = [names[i] for i in np.unique(found) if np.count_nonzero(found == i) > 1]
    if repeated:
        raise OptionError(f"{what} must be different, got {listing(repeated)} more than once.")
    return found


def _position(what: str, given: Any, names: Sequence[str]) -> int:
    is_named = isinstance(given, str) or (hasattr(given, "__index__") and not isinstance(given, (bool, np.bool_)))
    found = find_named(what, given, names) if is_named else None
    if found is None:
        raise OptionError(f"{what} must be among {listing(names)} or positions below {len(names)}, got {given!r}.")
    return found


_OF_PLAYERS, _OF_ROWS = ("values", "std_errors", "model_errors"), ("base_values", "predictions")


def _each(explanation: Explanation, names: Sequence[str], pick: Callable[[Floats], Floats]) -> dict[str, Any]:
    """Arrays of an explanation by name, each with a part taken out of it."""
    return {name: pick(getattr(explanation, name)) for name in names}


def _table(explanation: Explanation, pick: Callable[[Floats], Floats]) -> ValueTable:
    """Value table with a part taken out of its values (C, R) or (C, R, O), unless it is withheld or was not kept."""
    table = explanation.value_table
    if explanation.others is not None or table is None:
        return table
    return replace(table, values=pick(table.values), std_errors=pick(table.std_errors))


def _others(explanation: Explanation, pick: Callable[[Floats], Floats]) -> Others | None:
    others = explanation.others
    return None if others is None else replace(others, values=pick(others.values), errors=pick(others.errors))


def _take_rows(explanation: Explanation, chosen: Indices) -> Explanation:
    return replace(
        explanation,
        **_each(explanation, _OF_PLAYERS + _OF_ROWS, lambda array: array[chosen]),
        value_table=_table(explanation, lambda array: array[:, chosen]),
        data=take_rows(explanation.data, chosen),
        others=_others(explanation, lambda array: array[chosen]),
        unlike_pool=None if explanation.unlike_pool is None else explanation.unlike_pool[chosen],
    )


def _take_outputs(explanation: Explanation, chosen: Indices | int) -> Explanation:
    """One output, whose axis goes, or several."""
    names = explanation.output_names
    return replace(
        explanation,
        **_each(explanation, _OF_PLAYERS + _OF_ROWS, lambda array: array[..., chosen]),
        value_table=_table(explanation, lambda array: array[..., chosen]),
        output_names=(names[chosen],) if isinstance(chosen, int) else tuple(names[i] for i in chosen),
        others=_others(explanation, lambda array: array[..., chosen]),
    )


def _take_players(explanation: Explanation, chosen: Indices) -> Explanation:
    """Some of the players with all others added up; or all of them in another order, with v(S) to match."""
    names, table, before = explanation.player_names, explanation.value_table, explanation.others
    left = np.setdiff1d(np.arange(len(names)), chosen)
    others = before
    if len(left):
        values, errors = explanation.values[:, left].sum(axis=1), explanation.errors[:, left].sum(axis=1)
        if before is not None:
            values, errors = values + before.values, errors + before.errors
        errors = np.minimum(errors, explanation.errors[:, chosen].sum(axis=1))
        others = Others((*(before.names if before else ()), *(names[i] for i in left)), values, errors)
        table = withheld(table.n_evaluations if table is not None else 0)
    elif before is None and table is not None:
        table = replace(table, coalitions=table.coalitions[:, chosen])
    return replace(
        explanation,
        **_each(explanation, _OF_PLAYERS, lambda array: array[:, chosen]),
        value_table=table,
        player_names=tuple(names[i] for i in chosen),
        membership=tuple(explanation.membership[i] for i in chosen),
        others=others,
    )
