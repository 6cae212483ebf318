"""Explanations -> explanations that answer the same question, so that their MSEv may be ranked.

MSEv is the mean squared distance of v(S) from f(x) over rows and coalitions. Different rows, models or coalitions change it
more than a different approach does: a hundred coalitions, most of them small or large, give another MSEv than a thousand.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from condshap.exceptions import CondShapWarning, OptionError, listing
from condshap.explanation import Explanation
from condshap.numerics.row_means import shared_coalitions
from condshap.runtime.announcing import level_of_user
from condshap.tables.feature_columns import feature_columns
from condshap.tables.reading import Column
from condshap.types import Floats

COLUMNS = ["approach", "msev", "msev_se", "low", "high", "seconds", "model_rows"]
_SAME = 1e-6  # of the size of the numbers: rounding of models and machines is far below


def by_name(names: Sequence[str], explanations: Sequence[Explanation]) -> dict[str, Explanation]:
    """Explanations by name, with a number behind a name that comes again."""
    again: dict[str, int] = {}
    labels = []
    for name in names:
        again[name] = again.get(name, 0) + 1
        labels.append(name if again[name] == 1 else f"{name} ({again[name]})")
    return dict(zip(labels, explanations, strict=True))


def kept_explanations(given: Any) -> Any:
    """Explanations by name that a table of `compare` keeps; anything else as it is."""
    return getattr(given, "explanations", given)


def comparable(given: Mapping[str, Explanation]) -> dict[str, Explanation]:
    """Explanations by name, restricted to the coalitions that all of them share.

    Rows, features, players, outputs, predictions and base values must be the same. A warning says if coalitions were left
    out; the players' values and standard errors still come from all coalitions.
    """
    check_same_question(given)
    if any(one.value_table is None for one in given.values()):
        return dict(given)  # there is no MSEv to be compared
    (first_name, first), *others = given.items()
    shared = _usable(first)
    for name, other in others:
        shared = shared & _usable(other)
        if not shared and _usable(first) and _usable(other):
            raise OptionError(
                f"explanations must have coalitions in common for their MSEv to be compared, but '{name}' shares none "
                f"with '{first_name}'. Explain the rows with the same n_coalitions and seed."
            )
    is_all = all(len(_usable(one)) == len(shared) for one in given.values())
    if is_all or any(one.value_table is None for one in given.values()):  # without v(S) there is no MSEv to compare
        return dict(given)
    _announce(given, len(shared))
    return {name: _restricted(one, shared) for name, one in given.items()}


def check_same_question(given: Mapping[str, Explanation]) -> None:
    """Refuse explanations that differ in rows, features, players, outputs, model or base value, and say in what."""
    (first_name, first), *others = given.items()
    columns = feature_columns(first)
    for name, other in others:
        for what, ours, theirs in (
            ("numbers of rows", len(first), len(other)),
            ("features", first.feature_names, other.feature_names),
            ("players", first.player_names, other.player_names),
            ("groups of features", first.membership, other.membership),
            ("outputs", first.output_names, other.output_names),
        ):
            if ours != theirs:
                raise OptionError(
                    f"explanations to compare must have the same {what}, got {ours} in '{first_name}' and {theirs} in "
                    f"'{name}'. Explain the same rows with the same options."
                )
        pairs = zip(columns, feature_columns(other), strict=True)
        differ = [ours.name for ours, theirs in pairs if not _are_equal(ours, theirs)]
        if differ:
            raise OptionError(
                "explanations to compare must be of the same rows in the same order, got different values of "
                f"{listing(differ)} in '{first_name}' and '{name}'. Explain the same table with both."
            )
        _check_same_numbers("predictions", "model", first.predictions, other.predictions, (first_name, name))
        _check_same_numbers("base values", "training rows", first.base_values, other.base_values, (first_name, name))


def _are_equal(ours: Column, theirs: Column) -> bool:
    if ours.numbers is not None and theirs.numbers is not None:
        return np.array_equal(ours.numbers, theirs.numbers, equal_nan=True)
    return _texts(ours) == _texts(theirs)


def _texts(column: Column) -> list[str | None]:
    """Cells as text, None where one is missing."""
    if column.codes is None:
        assert column.numbers is not None
        return [None if np.isnan(value) else f"{value:.17g}" for value in column.numbers]
    return [None if code < 0 else str(column.levels[code]) for code in column.codes]


def _check_same_numbers(what: str, cause: str, ours: Floats, theirs: Floats, names: tuple[str, str]) -> None:
    scale = float(np.abs(ours).max(initial=0.0))
    if ours.shape != theirs.shape or not np.allclose(ours, theirs, rtol=_SAME, atol=_SAME * scale, equal_nan=True):
        is_same_shape = ours.shape == theirs.shape
        how = f"by up to {np.nanmax(np.abs(ours - theirs)):.3g}" if is_same_shape else "in shape"
        raise OptionError(
            f"explanations to compare must have the same {what}, but those of '{names[0]}' and '{names[1]}' differ {how}. "
            f"Explain the same rows of the same model, with the same {cause}."
        )


def _usable(explanation: Explanation) -> set[bytes]:
    """Interior coalitions that all rows have; none where v(S) was not kept."""
    table = explanation.value_table
    if table is None:
        return set()
    return {mask.tobytes() for mask in table.coalitions[shared_coalitions(table.values)]}


def _restricted(explanation: Explanation, shared: set[bytes]) -> Explanation:
    """The explanation with the empty coalition, those that are shared, and the grand one."""
    table = explanation.value_table
    kept = np.array([mask.tobytes() in shared for mask in table.coalitions])
    kept[[0, -1]] = True
    return replace(
        explanation,
        value_table=replace(
            table, coalitions=table.coalitions[kept], values=table.values[kept], std_errors=table.std_errors[kept]
        ),
    )


def _announce(given: Mapping[str, Explanation], n_shared: int) -> None:
    counts = ", ".join(f"{len(_usable(one))} of '{name}'" for name, one in given.items())
    warnings.warn(
        f"MSEv can only be compared over the same coalitions, got {counts}: it is computed over the {n_shared} that all "
        "of them share. Explain with the same n_coalitions and seed to use all coalitions.",
        CondShapWarning,
        stacklevel=level_of_user(),
    )


def compare_explanations(explanations: Iterable[Explanation], *, level: float = 0.95) -> pd.DataFrame:
    """MSEv of explanations with its confidence interval over rows, seconds, and rows predicted by the model.

    They must be of the same rows, model and base value; if coalitions differ, MSEv is over those that all of them share.
    """
    given = {f"{i}: {one.provenance.approach}": one for i, one in enumerate(explanations, start=1)}
    lines = []
    for explanation in comparable(given).values() if given else ():
        about, msev = explanation.provenance, explanation.msev
        low, high = msev.interval(level)
        seconds, model_rows = sum(about.seconds.values()), explanation.value_table.n_evaluations
        lines.append((about.approach, float(msev), msev.total_std_error(), low, high, seconds, model_rows))
    return pd.DataFrame(lines, columns=COLUMNS)
