"""Table -> feature schema and encoded rows, and back.

This is the gate: outside data is checked here, once. Behind it every stage sees float64 rows (n, M), with levels as
codes 0, 1, ... and missing entries as NaN.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import pandas as pd

from condshap.exceptions import CondShapWarning, SchemaError, listing
from condshap.tables import Column, TableFormat, read_columns, to_pandas
from condshap.types import Floats, Rows, Table


class Kind(Enum):
    """What a feature holds."""

    CONTINUOUS = "continuous"
    CATEGORICAL = "categorical"


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature: its name, its kind, and what may come.

    `levels` are the categories in their order (categorical only). `support` is the smallest and the largest training
    value, and `is_integer` tells whether all training values are whole numbers (continuous only).
    """

    name: str
    kind: Kind
    levels: tuple[Any, ...] | None = None
    support: tuple[float, float] | None = None
    is_integer: bool = False


@dataclass(frozen=True, slots=True)
class FeatureSchema:
    """Names, kinds and levels of M features, and how their encoded rows become a native table again."""

    features: tuple[Feature, ...]
    table_format: TableFormat

    @classmethod
    def learn(cls, X: Table, categorical: Iterable[str | int] = ()) -> FeatureSchema:
        """Learn the schema of training rows.

        Parameters
        ----------
        X : table with N rows and M columns
            Kinds come from the dtypes: category, string, bool and Enum are categorical, numbers are continuous.
        categorical : names (or positions) of further columns that hold levels, such as codes stored as integers.
        """
        frame = to_pandas(X)
        if frame.shape[0] == 0 or frame.shape[1] == 0:
            raise SchemaError(
                f"training rows must not be empty, got a table of shape {frame.shape}. Pass rows to learn from."
            )
        declared = _resolve_columns(categorical, [str(name) for name in frame.columns])
        features = tuple(_learn_feature(column, column.name in declared) for column in read_columns(frame))
        return cls(features, TableFormat.of(X, [feature.levels for feature in features]))

    @property
    def names(self) -> tuple[str, ...]:
        """Feature names in training order."""
        return tuple(feature.name for feature in self.features)

    def __len__(self) -> int:
        """Return the number of features M."""
        return len(self.features)

    def of_kind(self, kind: Kind) -> tuple[str, ...]:
        """Names of the features of one kind."""
        return tuple(feature.name for feature in self.features if feature.kind is kind)

    def encode(self, X: Table) -> Rows:
        """Check a table against the schema and encode it, shape (n, M); columns in another order are put right."""
        frame = to_pandas(X)
        if len(frame) == 0:
            raise SchemaError("a table to encode must have at least one row, got none. Pass the rows to explain.")
        names = [str(name) for name in frame.columns]
        _check_columns(names, self.names, is_array=isinstance(X, np.ndarray))
        position = {name: j for j, name in enumerate(names)}
        ordered = frame.iloc[:, [position[name] for name in self.names]]
        columns = read_columns(ordered)
        rows = [_encode(column, feature) for column, feature in zip(columns, self.features, strict=True)]
        return np.ascontiguousarray(np.column_stack(rows), dtype=np.float64)

    def decode(self, rows: Rows) -> Table:
        """Encoded rows (n, M) -> table of the type, column order, dtypes and categories of the training rows."""
        return self.table_format.write(rows)


def _resolve_columns(columns: Iterable[str | int], names: Sequence[str]) -> set[str]:
    if isinstance(columns, (str, int)):
        columns = [columns]
    found = {
        names[c] if isinstance(c, (int, np.integer)) and -len(names) <= c < len(names) else str(c) for c in columns
    }
    unknown = sorted(found - set(names))
    if unknown:
        raise SchemaError(
            f"categorical must name columns of the table, got {listing(unknown)}. The columns are {listing(names)}."
        )
    return found


def _check_columns(names: Sequence[str], expected: Sequence[str], *, is_array: bool) -> None:
    if is_array and len(names) != len(expected):
        raise SchemaError(f"rows must have {len(expected)} columns as in training, got {len(names)}.")
    if is_array and set(names) != set(expected):
        raise SchemaError(
            f"rows must be a table with the training columns {listing(expected)}, got an array without names. "
            "Wrap it in a DataFrame with these columns."
        )
    missing = [name for name in expected if name not in names]
    extra = [name for name in names if name not in expected]
    if len(missing) == len(expected):
        raise SchemaError(
            f"rows must have the training columns {listing(expected)}, got none of them but {listing(extra)}."
        )
    if missing:
        raise SchemaError(f"rows must have every training column, missing are {listing(missing)}. Add them.")
    if extra:
        raise SchemaError(f"rows must have only the training columns, got also {listing(extra)}. Drop these columns.")


def _learn_feature(column: Column, declared: bool) -> Feature:
    if column.numbers is not None and not declared:
        return _learn_continuous(column.name, column.numbers)
    levels = column.declared if column.declared is not None else _sorted_levels(column)
    present = _present_labels(column)
    if not present:
        raise SchemaError(f"column '{column.name}' must have at least one value, all are missing. Drop this column.")
    if len(present) == 1:
        _warn_constant(column.name, next(iter(present)))
    return Feature(column.name, Kind.CATEGORICAL, levels=levels)


def _present_labels(column: Column) -> set[Any]:
    if column.labels is not None:
        return set(column.labels.tolist()) - {None}
    assert column.numbers is not None
    return set(column.numbers[~np.isnan(column.numbers)].tolist())


def _sorted_levels(column: Column) -> tuple[Any, ...]:
    levels = sorted(_present_labels(column))
    if column.numbers is not None and all(float(level).is_integer() for level in levels):
        return tuple(int(level) for level in levels)  # codes stored as 1.0 because a column had gaps are still codes
    return tuple(levels)


def _learn_continuous(name: str, numbers: Floats) -> Feature:
    _check_finite(name, numbers)
    present = numbers[~np.isnan(numbers)]
    if len(present) == 0:
        raise SchemaError(f"column '{name}' must have at least one value, all are missing. Drop this column.")
    low, high = float(present.min()), float(present.max())
    if low == high and len(numbers) > 1:
        _warn_constant(name, low)
    whole = bool(np.array_equal(present, np.rint(present)))
    return Feature(name, Kind.CONTINUOUS, support=(low, high), is_integer=whole)


def _warn_constant(name: str, value: object) -> None:
    warnings.warn(
        f"feature '{name}' is constant in the training rows (value {value!r}): nothing can be learned about how it "
        "varies with the others, and every sample has this value. Consider dropping it.",
        CondShapWarning,
        stacklevel=2,
    )


def _check_finite(name: str, numbers: Floats) -> None:
    infinite = np.flatnonzero(np.isinf(numbers))
    if len(infinite):
        raise SchemaError(
            f"column '{name}' must be finite or missing, got infinite values in rows {listing(infinite.tolist())}. "
            "Replace them by NaN or by a large number."
        )


def _encode(column: Column, feature: Feature) -> Floats:
    if feature.kind is Kind.CONTINUOUS:
        if column.numbers is None:
            raise SchemaError(
                f"column '{feature.name}' must hold numbers as in training, got labels such as "
                f"{listing(sorted(map(str, _present_labels(column))), limit=3)}. Convert it."
            )
        _check_finite(feature.name, column.numbers)
        return column.numbers
    assert feature.levels is not None
    labels = column.labels if column.labels is not None else column.numbers
    assert labels is not None
    code = {level: float(i) for i, level in enumerate(feature.levels)}
    missing = pd.isna(labels)
    encoded = np.array(
        [np.nan if gone else code.get(label, -1.0) for label, gone in zip(labels.tolist(), missing, strict=True)]
    )
    unseen = np.flatnonzero(encoded == -1.0)
    if len(unseen):
        names = dict.fromkeys(labels[unseen].tolist())
        raise SchemaError(
            f"column '{feature.name}' must hold the levels {listing(feature.levels)}, got the unseen {listing(names)} "
            f"in rows {listing(unseen.tolist())}. Add the level to the training rows or replace it."
        )
    return encoded
