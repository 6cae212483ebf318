"""Explanation, unions of players -> Owen values: players stay single, but their unions enter the game together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

from condshap.exceptions import CoalitionError, listing
from condshap.games.exact_tables import require_exact, table_columns
from condshap.numerics.interactions import spread_of
from condshap.numerics.shapley import each_column, shapley_coefficients
from condshap.types import Floats, Masks

if TYPE_CHECKING:
    from condshap.explanation import Explanation

Unions: TypeAlias = Mapping[str, Any]
"""Names of unions with lists of players, or with unions inside them: a mapping in place of a list."""


@dataclass(frozen=True, slots=True)
class Union:
    """Players that enter together: a name, the positions of its players, and the unions inside, if any."""

    name: str
    players: tuple[int, ...]
    inside: tuple[Union, ...] = ()

    def parts(self) -> tuple[Union | int, ...]:
        """What it is made of: unions, or else positions of players."""
        return self.inside or self.players


@dataclass(frozen=True, slots=True, eq=False)
class OwenValues:
    """Owen values of R rows and P players, with the totals of their unions.

    Attributes
    ----------
    values : (R, P), or (R, P, O) when the model has several outputs
    std_errors : shape of `values`, Monte Carlo errors of v(S); NaN where they are not known
    union_values : for every union, those inside others included, the sum of its players' values, (R,) or (R, O): the
        Shapley values of the game in which unions are the players
    union_std_errors : the same unions; errors of the totals, which are smaller than those of their players added up
    unions : the outer unions, with those inside them
    explanation : whose values v(S) these are made of
    """

    values: Floats
    std_errors: Floats
    union_values: dict[str, Floats]
    union_std_errors: dict[str, Floats]
    unions: tuple[Union, ...]
    explanation: Explanation

    @property
    def base_values(self) -> Floats:
        """(R,) or (R, O); ``base_values + values.sum(1) == predictions``, as for Shapley values."""
        return self.explanation.base_values

    @property
    def predictions(self) -> Floats:
        """(R,) or (R, O)."""
        return self.explanation.predictions

    @property
    def player_names(self) -> tuple[str, ...]:
        """Names of the P players."""
        return self.explanation.player_names

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the outputs."""
        return self.explanation.output_names

    @property
    def row_labels(self) -> pd.Index[Any]:
        """Labels of the rows: the index of a pandas table, else their positions."""
        return self.explanation.row_labels

    def __len__(self) -> int:
        """Return the number of rows R."""
        return len(self.values)

    def __repr__(self) -> str:
        """Say what these are, in one line."""
        names = listing([union.name for union in self.unions])
        return f"OwenValues({len(self)} rows x {len(self.player_names)} players in {len(self.unions)} unions {names})"

    def to_explanation(self) -> Explanation:
        """The same values as an `Explanation`, for everything that takes one: plots, the report, `to_frame`, files.

        Its value table is that of the Shapley values, and a warning in its provenance names the unions.
        """
        note = f"These are Owen values with the unions {listing([union.name for union in self.unions])}, not Shapley values."
        about = self.explanation.provenance
        about = replace(about, warnings=(*about.warnings, note), model_errors_from=None)
        return replace(
            self.explanation,
            values=self.values,
            std_errors=self.std_errors,
            model_errors=np.zeros_like(self.values),
            provenance=about,
        )

    def to_frame(self, *, errors: bool = False) -> pd.DataFrame:
        """One line per row (and output): base value, the players' Owen values, prediction; as `Explanation.to_frame`."""
        return self.to_explanation().to_frame(errors=errors)


def find_owen(explanation: Explanation, unions: Unions) -> OwenValues:
    """Owen values of an explanation's players, from its value table; see `Explanation.owen`."""
    outer = read_unions(unions, explanation.player_names)
    require_exact(explanation, "Owen values", "")
    masks, v, variances = table_columns(explanation)
    P, shape = len(explanation.player_names), explanation.base_values.shape
    rows = _operator(masks, outer)
    found = {}
    for part, operator in rows.items():
        value, spread = (solve(operator[None], given)[0] for solve, given in ((each_column, v), (spread_of, variances)))
        found[part] = value.reshape(shape), np.sqrt(np.maximum(spread, 0.0)).reshape(shape)
    names = [part for part in rows if isinstance(part, str)]
    return OwenValues(
        values=np.stack([found[j][0] for j in range(P)], axis=1),
        std_errors=np.stack([found[j][1] for j in range(P)], axis=1),
        union_values={name: found[name][0] for name in names},
        union_std_errors={name: found[name][1] for name in names},
        unions=outer,
        explanation=explanation,
    )


def _operator(masks: Masks, outer: Sequence[Union]) -> dict[str | int, Floats]:
    """Coefficients (C,) of all v(S), in any order, in the value of every union, by name, and player, by position.

    A coalition counts for a part if, on every level above it, the neighbours are there completely or not at all; each
    level gives the Shapley coefficient of as many neighbours.
    """
    found: dict[str | int, Floats] = {}

    def enter(parts: Sequence[Union | int], factor: Floats) -> None:
        members = [list(part.players) if isinstance(part, Union) else [part] for part in parts]
        full = np.stack([masks[:, some].all(axis=1) for some in members])
        none = np.stack([~masks[:, some].any(axis=1) for some in members])
        broken = ~(full | none)
        inside = shapley_coefficients(len(parts))[0]
        for k, part in enumerate(parts):
            others = np.arange(len(parts)) != k
            weight = factor * inside[full[others].sum(axis=0) + 1] * ~broken[others].any(axis=0)
            name = part.name if isinstance(part, Union) else part
            found[name] = weight * (full[k].astype(np.float64) - none[k])
            if isinstance(part, Union):
                enter(part.parts(), weight)

    enter(outer, np.ones(len(masks)))
    return found


def read_unions(unions: Any, players: Sequence[str]) -> tuple[Union, ...]:
    """Unions as given -> outer unions, whose players are all of them, each once."""
    outer = tuple(_read(name, members, players, level=1) for name, members in _items(unions))
    names = [one.name for union in outer for one in (union, *union.inside)]
    members = [players[j] for union in outer for j in union.players]
    for problem, wrong in (
        ("have different names, used more than once are", sorted({name for name in names if names.count(name) > 1})),
        ("not overlap, named more than once are", sorted({name for name in members if members.count(name) > 1})),
        ("cover every player, missing are", [name for name in players if name not in members]),
    ):
        if wrong:
            raise CoalitionError(f"unions must {problem} {listing(wrong)}. Put every player into exactly one union.")
    return outer


def _items(unions: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(unions, Mapping) and unions:
        return unions.items()
    raise CoalitionError(
        f"unions must map names to lists of players, got {unions!r}. Write e.g. {{'size': ['height', 'width'], 'rest': "
        "['age']}."
    )


def _read(name: Any, members: Any, players: Sequence[str], *, level: int) -> Union:
    if isinstance(members, Mapping):
        if level == 2:
            raise CoalitionError(
                f"unions must have at most two levels, but {name!r} is inside another union and has unions itself. Give it "
                "a list of players."
            )
        inside = tuple(_read(inner, some, players, level=2) for inner, some in _items(members))
        return Union(str(name), tuple(j for union in inside for j in union.players), inside)
    if isinstance(members, str) or not isinstance(members, Iterable):
        raise CoalitionError(f"union {name!r} must be a list of players, got {members!r}. Write [{members!r}].")
    given = list(members)
    if not given:
        raise CoalitionError(f"unions must have at least one player each, but {name!r} is empty. Leave it out.")
    unknown = [one for one in given if _position(one, players) is None]
    if unknown:
        raise CoalitionError(
            f"unions must name players among {listing(players)}, got {listing(unknown)} in {name!r}. Use names or "
            "positions of players."
        )
    return Union(str(name), tuple(j for one in given if (j := _position(one, players)) is not None))


def _position(member: Any, players: Sequence[str]) -> int | None:
    """Position of a player given by name or, where no player has that name, by position; as groups name their columns."""
    if str(member) in players:
        return list(players).index(str(member))
    is_position = isinstance(member, int | np.integer) and not isinstance(member, bool) and 0 <= member < len(players)
    return int(member) if is_position else None
