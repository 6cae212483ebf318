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
from condshap.tables.formats import TableFormat
from condshap.tables.reading import EXACT_INTEGERS, Column, Levels, read_columns, to_pandas
from condshap.types import Floats, Indices, Rows, Table

_MANY_ROWS, _LIKE_AN_ID = 30, 0.5  # from so many rows on, levels as a share of rows, beyond which they look like names
_FEW_VALUES = 10  # of a whole number that may be a code


class Kind(Enum):
    """What a feature holds."""

    CONTINUOUS = "continuous"
    CATEGORICAL = "categorical"


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature: its name, its kind, and the values it can take.

    `levels` are the categories in the training rows, in their order (categorical only). `support` is the smallest and the
    largest training value, and `is_integer` says whether all training values are whole numbers (continuous only).
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
        declared = _resolve_columns(categorical, list(frame.columns))
        columns = list(read_columns(frame))
        features = tuple(_learn_feature(column, j in declared) for j, column in enumerate(columns))
        _warn_constant(
            [feature for column, feature in zip(columns, features, strict=True) if _is_constant(column, feature)]
        )
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
        """Check a table against the schema and encode it, shape (n, M).

        Columns are found by name, in any order and any type of table. Arrays have no names, so columns are matched by
        position if the table, or the training rows, are an array.
        """
        frame = to_pandas(X)
        if len(frame) == 0:
            raise SchemaError(f"rows must not be empty, got a table of shape {frame.shape}. Pass the rows to explain.")
        if isinstance(X, np.ndarray):
            order = _find_by_position(frame.shape[1], len(self))
        else:
            names = [str(name) for name in frame.columns]
            order = _find_columns(names, self.names, may_be_nameless=self.table_format.backend == "numpy")
        columns = read_columns(frame.iloc[:, order])
        rows = [_encode(column, feature) for column, feature in zip(columns, self.features, strict=True)]
        return np.ascontiguousarray(np.column_stack(rows), dtype=np.float64)

    def decode(self, rows: Rows) -> Table:
        """Encoded rows (n, M) -> table of the type, column order, dtypes and categories of the training rows."""
        return self.table_format.write(rows)

    def decode_like(self, X: Table, rows: Rows) -> Table:
        """Encoded rows (n, M) -> table of the type, column order and, for pandas, index of the n rows in `X`.

        Dtypes are those of `X`. But if both tables are of the same type, integers, booleans and levels get the dtypes of the
        training rows, because gaps may have turned them into floating-point numbers or objects.
        """
        names = [str(name) for name in to_pandas(X).columns]
        order = (
            list(range(len(self)))
            if isinstance(X, np.ndarray)
            else _find_columns(names, self.names, may_be_nameless=self.table_format.backend == "numpy")
        )
        taken = np.argsort(order)  # feature behind each column of X
        own = TableFormat.of(X, [self.features[j].levels for j in taken])
        table = own.with_dtypes_of(self.table_format.reordered(taken.tolist()))
        written = table.write(np.ascontiguousarray(rows[:, taken]))
        return written.set_index(X.index) if isinstance(X, pd.DataFrame) else written


def suggest_categorical(schema: FeatureSchema, rows: Rows) -> None:
    """Warn of whole numbers in training rows (N, M) that may be codes, because they take few values."""
    few = [
        feature.name
        for feature, column in zip(schema.features, rows.T, strict=True)
        if feature.is_integer and 2 < len(np.unique(column[~np.isnan(column)])) <= _FEW_VALUES
    ]
    if few and len(rows) >= _MANY_ROWS:
        warnings.warn(
            f"columns {listing(few)} hold few different whole numbers and are treated as numbers. If some are codes, "
            "list them in categorical=[...]; if all are numbers, pass categorical=[].",
            CondShapWarning,
            stacklevel=2,
        )


def listed_columns(columns: Any) -> list[Any]:
    """Columns as a list, of which a single name or position is one."""
    if isinstance(columns, (str, int)):
        return [columns]
    try:
        return list(columns)
    except TypeError:
        raise SchemaError(
            f"categorical must be a list of columns, by name or position, got {columns!r}. Write e.g. ['colour']."
        ) from None


def _resolve_columns(columns: Iterable[str | int], labels: Sequence[Any]) -> set[int]:
    """Positions of columns given by name or, where no column has that name, by position."""
    names = [str(label) for label in labels]
    chosen = listed_columns(columns)
    found, unknown = set(), []
    for column in chosen:
        if str(column) in names and (isinstance(column, str) or column in labels):
            found.add(names.index(str(column)))
        elif isinstance(column, (int, np.integer)) and -len(names) <= column < len(names):
            found.add(int(column) % len(names))
        else:
            unknown.append(column)
    if unknown:
        raise SchemaError(
            f"categorical must name columns of the table, got {listing(unknown)}. The columns are {listing(names)}."
        )
    return found


def _find_by_position(n_columns: int, n_expected: int) -> list[int]:
    if n_columns != n_expected:
        raise SchemaError(
            f"rows must have {n_expected} columns as in training, got {n_columns}. An array has no column names, so its "
            "columns must be those of the training rows in their order."
        )
    return list(range(n_columns))


def _find_columns(names: Sequence[str], expected: Sequence[str], *, may_be_nameless: bool) -> list[int]:
    """Positions of the expected columns."""
    missing = [name for name in expected if name not in names]
    extra = [name for name in names if name not in expected]
    if may_be_nameless and missing:  # the expected names were made up for an array
        return _find_by_position(len(names), len(expected))
    if len(missing) == len(expected):
        raise SchemaError(
            f"rows must have the training columns {listing(expected)}, got {listing(extra)} instead. "
            "Pass the columns that the explainer was fitted on."
        )
    if missing:
        raise SchemaError(f"rows must have every training column, but lack {listing(missing)}. Add them.")
    if extra:
        raise SchemaError(
            f"rows must have only the training columns, but also have {listing(extra)}. Drop these columns."
        )
    return [names.index(name) for name in expected]


def _learn_feature(column: Column, declared: bool) -> Feature:
    if column.numbers is not None and not declared:
        return _learn_continuous(column.name, column.numbers)
    codes, levels = _as_levels(column)
    present = np.unique(codes[codes >= 0])
    if len(present) == 0:
        raise _all_missing(column.name)
    if len(codes) >= _MANY_ROWS and len(present) > _LIKE_AN_ID * (codes >= 0).sum():
        _warn_id(column.name, len(present), len(codes))
    seen = tuple(levels[code] for code in present)  # a dtype may declare more, of which rows say nothing
    return Feature(column.name, Kind.CATEGORICAL, levels=seen)


def _as_levels(column: Column) -> tuple[Indices, Levels]:
    """Codes (n,), -1 for missing, and the levels that they stand for; numbers become levels in ascending order."""
    if column.codes is not None:
        return column.codes, column.levels
    assert column.numbers is not None
    _check_finite(column.name, column.numbers)
    codes, found = pd.factorize(column.numbers, sort=True)
    large = found[np.abs(found) >= EXACT_INTEGERS]
    if large.size:
        raise SchemaError(
            f"column '{column.name}' must hold levels below 2**53 if they are numbers, because float64 cannot tell "
            f"larger ones apart, got {listing(large.tolist())}. Read the column as text."
        )
    whole = np.array_equal(found, np.rint(found))  # codes stored as 1.0 because a column had gaps are still codes
    return codes.astype(np.intp), tuple((found.astype(np.int64) if whole else found).tolist())


def _all_missing(name: str) -> SchemaError:
    return SchemaError(f"column '{name}' must have at least one value, but all are missing. Drop this column.")


def _learn_continuous(name: str, numbers: Floats) -> Feature:
    _check_finite(name, numbers)
    present = numbers[~np.isnan(numbers)]
    if len(present) == 0:
        raise _all_missing(name)
    whole = bool(np.array_equal(present, np.rint(present)))
    return Feature(name, Kind.CONTINUOUS, support=(float(present.min()), float(present.max())), is_integer=whole)


def _warn_id(name: str, n_levels: int, n_rows: int) -> None:
    warnings.warn(
        f"column '{name}' should hold levels that rows share, got {n_levels} different ones in {n_rows} rows. Nothing can "
        "be learned about levels that occur once, and training takes long. If the column identifies rows, train the model "
        "without it.",
        CondShapWarning,
        stacklevel=2,
    )


def _is_constant(column: Column, feature: Feature) -> bool:
    """Whether all of several rows have the same value; a gap is another one."""
    if feature.levels is not None:
        codes, _ = _as_levels(column)
        return len(feature.levels) == 1 and len(codes) > 1 and bool((codes >= 0).all())
    assert column.numbers is not None
    assert feature.support is not None
    low, high = feature.support
    return low == high and len(column.numbers) > 1 and not np.isnan(column.numbers).any()


def _warn_constant(features: Sequence[Feature]) -> None:
    """One warning, however many features are constant."""
    if not features:
        return
    if len(features) == 1:
        (one,) = features
        (value, *_) = one.levels or one.support or (None,)
        text = (
            f"feature '{one.name}' is constant in the training rows (value {value!r}): nothing can be learned about how "
            "it varies with the others, and every sample has this value. Consider dropping it."
        )
    else:
        text = (
            f"features {listing([one.name for one in features])} are constant in the training rows: nothing can be "
            "learned about how they vary with the others, and every sample has these values. Consider dropping them."
        )
    warnings.warn(text, CondShapWarning, stacklevel=2)


def _check_finite(name: str, numbers: Floats) -> None:
    infinite = np.flatnonzero(np.isinf(numbers))
    if len(infinite):
        raise SchemaError(
            f"column '{name}' must be finite or missing, got infinite values in rows {listing(infinite.tolist())}. "
            "Replace them with NaN or a large number.",
            rows=infinite.tolist(),
        )


def _encode(column: Column, feature: Feature) -> Floats:
    if feature.kind is Kind.CATEGORICAL:
        return _encode_levels(column, feature)
    if column.numbers is None:
        raise SchemaError(
            f"column '{feature.name}' must hold numbers as in training, got levels such as "
            f"{listing(column.levels[:3])}. Convert it to numbers."
        )
    _check_finite(feature.name, column.numbers)
    return column.numbers


def _encode_levels(column: Column, feature: Feature) -> Floats:
    """Codes of the schema's levels (n,), NaN for missing: a look-up per level, not per row."""
    assert feature.levels is not None
    codes, levels = _as_levels(column)
    position = {level: float(i) for i, level in enumerate(feature.levels)}
    lookup = np.array([*(position.get(level, -1.0) for level in levels), np.nan])  # code -1 is the last one: missing
    encoded = lookup[codes]
    unseen = np.flatnonzero(encoded == -1.0)
    if len(unseen):
        names = [levels[code] for code in dict.fromkeys(codes[unseen].tolist())]
        raise SchemaError(
            f"column '{feature.name}' must hold the levels {listing(feature.levels)}, got unseen levels {listing(names)} in "
            f"rows {listing(unseen.tolist())}. Add rows with such a level to the training rows, or replace it. A level "
            "that the column's type declares but no training row has counts as unseen.",
            rows=unseen.tolist(),
        )
    return np.asarray(encoded)
