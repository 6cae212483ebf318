"""Native table -> the library that it is of, and what its columns are called."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from condshap.exceptions import SchemaError
from condshap.types import Table


def backend_of(X: Table) -> str:
    """Library of a table: "numpy", "pandas", "polars" or "pyarrow".

    >>> backend_of(np.zeros((2, 3))), backend_of(pd.DataFrame({"a": [1]}))
    ('numpy', 'pandas')
    """
    if isinstance(X, np.ndarray):
        return "numpy"
    if isinstance(X, pd.DataFrame):
        return "pandas"
    import narwhals as nw  # not needed for pandas and NumPy

    backend = str(nw.from_native(X, eager_only=True).implementation)
    if backend not in {"polars", "pyarrow"}:
        raise SchemaError(
            f"a table must be pandas, Polars, PyArrow or NumPy, got {backend}. Convert it to one of these."
        )
    return backend


def column_names(X: Any) -> list[str]:
    """Names of the columns of a Polars or PyArrow table."""
    return list(X.column_names if backend_of(X) == "pyarrow" else X.columns)
