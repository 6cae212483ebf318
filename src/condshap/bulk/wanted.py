"""Schema and options -> the columns that are read from a dataset, and what becomes of them: features, key, carried along."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from condshap.exceptions import OptionError, SchemaError, listing
from condshap.schema import FeatureSchema
from condshap.tables.arrow import arrow_to_native
from condshap.tables.reading import EXACT_INTEGERS
from condshap.types import Table

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Wanted:
    """Columns of a dataset.

    Attributes
    ----------
    schema : of the features, by which text of a CSV file gets its types
    features : names of the feature columns in the dataset, in the order of the schema
    carried : names of further columns, the key among them
    key : column that names rows, None where their position does
    here : of `features` and `carried`, those that a file has itself
    """

    schema: FeatureSchema
    features: tuple[str, ...]
    carried: tuple[str, ...]
    key: str | None
    here: tuple[str, ...]

    @classmethod
    def of(cls, schema: FeatureSchema, names: Sequence[str], columns: Any, key: Any) -> Wanted:
        """Find the columns among the `names` of a dataset's first piece."""
        carried = _listed(columns)
        if key is not None and not isinstance(key, str):
            raise OptionError(f"key must be the name of a column, got {key!r}.")
        own = tuple(dict.fromkeys([*([] if key is None else [key]), *carried]))
        unknown = [name for name in own if name not in names]
        if unknown:
            raise OptionError(
                f"columns and key must name columns of the source, got {listing(unknown)}, but it has {listing(names)}."
            )
        features = schema.names
        if schema.table_format.backend == "numpy" and not set(features) <= set(names):
            features = tuple(name for name in names if name not in own)  # training was on an array: by position
            if len(features) != len(schema):
                raise SchemaError(
                    f"rows must have {len(schema)} feature columns as in training, which was on an array without names, got "
                    f"{listing(features)}. Name the others in columns, or leave them out of the source."
                )
        return cls(schema, features, own, key, tuple(dict.fromkeys([*features, *own])))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns, each once."""
        return self.here

    def among(self, names: Sequence[str]) -> Wanted:
        """The same, of a file that has some of the columns."""
        return replace(self, here=tuple(name for name in self.here if name in names))

    def features_of(self, rows: pa.Table) -> Table:
        """Feature columns as a table of the library that the model was trained with, values and dtypes as they were read."""
        table = rows.select(list(self.features)).replace_schema_metadata(None)
        table_format = self.schema.table_format
        if table_format.backend not in {"polars", "pyarrow"}:
            _check_integers(table)
        is_object = getattr(table_format.columns[0].dtype, "kind", "f") in "OUS"  # an array has one dtype
        labels = None if self.key is None else rows.column(self.key)
        return arrow_to_native(table, table_format.backend, labels=labels, is_object=is_object)

    def carried_of(self, rows: pa.Table) -> pa.Table:
        """Columns that are carried along, the key among them."""
        return rows.select(list(self.carried)).replace_schema_metadata(None)


def _listed(columns: Any) -> list[str]:
    found = [] if columns is None else [columns] if isinstance(columns, str) else list(columns)
    wrong = [name for name in found if not isinstance(name, str)]
    if wrong:
        raise OptionError(f"columns must be names of columns to carry along, got {listing(wrong)}.")
    return found


def _check_integers(table: pa.Table) -> None:
    """Gaps make integers floats; those that floats cannot hold are refused before."""
    import pyarrow as pa

    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_integer(column.type) and column.null_count:
            check_exact(name, column, is_whole=True)


def check_exact(name: str, column: Any, *, is_whole: bool) -> None:
    """Refuse whole numbers of a text file that float64, as which they were read, cannot tell from their neighbours."""
    import pyarrow.compute as pc

    largest = pc.max(pc.abs(column)).as_py() if is_whole else None
    if largest is not None and EXACT_INTEGERS <= largest < float("inf"):
        raise SchemaError(
            f"column '{name}' must hold integers below 2**53, which float64 keeps exactly, as in training, got {largest:g}. "
            "Drop the column if it is an identifier."
        )
