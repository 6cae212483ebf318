"""Native tables of the same columns -> one table with the rows of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from condshap.tables.backends import backend_of
from condshap.types import Table


def join_tables(tables: Sequence[Table]) -> Table:
    """Join tables of one library, in order; what has levels gets those of all tables."""
    backend = backend_of(tables[0])
    if backend == "numpy":
        return np.concatenate(list(tables))
    if backend == "pandas":
        return _join_frames(tables)
    if backend == "polars":
        import polars as pl

        return pl.concat(tables, how="vertical_relaxed")
    import pyarrow as pa

    return pa.concat_tables(tables, promote_options="permissive")


def _join_frames(frames: Sequence[Any]) -> Any:
    """Frames one below the other; a category has the levels of all of them."""
    import pandas as pd
    from pandas.api.types import union_categoricals

    together = {
        name: union_categoricals([frame[name] for frame in frames]).categories
        for name in frames[0].columns
        if all(isinstance(frame[name].dtype, pd.CategoricalDtype) for frame in frames)
    }
    dtypes = {name: pd.CategoricalDtype(levels) for name, levels in together.items()}
    is_numbered = all(isinstance(frame.index, pd.RangeIndex) for frame in frames)
    return pd.concat([frame.astype(dtypes) for frame in frames], ignore_index=is_numbered)
