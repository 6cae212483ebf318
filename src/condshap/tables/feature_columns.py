"""Explained or training rows -> columns in the order of the features, under their names."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from condshap.exceptions import SchemaError, listing
from condshap.tables.reading import Column, read_columns, to_pandas
from condshap.types import Table

if TYPE_CHECKING:
    from condshap.explanation import Explanation


def feature_columns(explanation: Explanation, table: Table | None = None) -> list[Column]:
    """Columns of the explained rows, or of another table: by name, or by position where an array has none.

    Rows that were explained have passed the gate: where their names are not those of the features, training was on an array.
    """
    data = explanation.data if table is None else table
    is_nameless = table is None or isinstance(table, np.ndarray)
    frame, features = to_pandas(data), explanation.feature_names
    names = [str(name) for name in frame.columns]
    missing = [name for name in features if name not in names]
    if missing and not explanation.provenance.has_table and table is None:
        raise SchemaError(
            f"this needs the explained rows, but {listing(missing)} were not kept. Explain with values='full', or carry the "
            "features along with columns=."
        )
    if not missing:
        frame = frame.iloc[:, [names.index(name) for name in features]]
    elif not is_nameless or len(names) != len(features):
        raise SchemaError(
            f"train must have the {len(features)} explained features, got a table without {listing(missing)}. "
            "Pass the rows that the explainer was fitted on."
        )
    columns = zip(features, read_columns(frame), strict=True)
    return [replace(column, name=name) for name, column in columns]
