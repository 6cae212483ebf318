"""Column of a native table -> how its encoded values go back to what they were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from condshap.tables.arrow import dictionary_levels
from condshap.tables.reading import Levels, generated_names


@dataclass(frozen=True, slots=True)
class ColumnFormat:
    """How one encoded column goes back.

    Attributes
    ----------
    name : as the table spells it
    levels : None for numbers
    dtype : of the native table
    missing : what stood for a missing value, where the dtype leaves a choice (objects, floats of Polars and PyArrow)
    is_integer : Python objects were integers
    declared : levels of a category, whether rows have them or not, None for other columns; a model may know them all
    """

    name: Any
    levels: Levels | None
    dtype: Any
    missing: Any = field(default=None, compare=False)
    is_integer: bool = False
    declared: Levels | None = None

    @property
    def is_float(self) -> bool:
        """Whether it holds floating-point numbers."""
        return self.levels is None and any(word in str(self.dtype).lower() for word in ("float", "double"))

    @property
    def has_text(self) -> bool:
        """Whether some of its levels are no numbers."""
        return self.levels is not None and not _are_numbers(self.levels)

    def as_pandas(self, name: Any) -> ColumnFormat:
        """The same column in a pandas frame, under another name; text becomes 'category', which every model reads."""
        dtype: Any
        if self.levels is None:
            own = isinstance(self.dtype, np.dtype) and self.dtype != object
            dtype = self.dtype if own else np.dtype(np.float64)
        elif self.has_text:
            dtype = pd.CategoricalDtype(list(self.declared or self.levels))
        else:
            dtype = np.array(self.levels).dtype
        return replace(self, name=name, dtype=dtype)


def _are_numbers(levels: Levels) -> bool:
    return all(isinstance(level, (bool, int, float, np.number, np.bool_)) for level in levels)


def array_formats(X: np.ndarray[Any, Any], levels: Sequence[Levels | None]) -> tuple[ColumnFormat, ...]:
    """Formats of the columns of an array, which all have its dtype."""
    names = generated_names(X.shape[1])
    if X.dtype != object:
        return tuple(ColumnFormat(name, lv, X.dtype) for name, lv in zip(names, levels, strict=True))
    objects = pd.DataFrame(X, dtype=object)
    return tuple(pandas_format(objects.iloc[:, j], name, levels[j]) for j, name in enumerate(names))


def pandas_format(series: pd.Series[Any], name: Any, levels: Levels | None) -> ColumnFormat:
    """Format of a column of a pandas frame."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        return ColumnFormat(name, levels, series.dtype, declared=tuple(series.dtype.categories.tolist()))
    if series.dtype != object:
        return ColumnFormat(name, levels, series.dtype)
    gaps = series[series.isna()]
    missing = gaps.iloc[0] if len(gaps) else None
    is_integer = pd.api.types.infer_dtype(series.dropna(), skipna=True) == "integer"
    return ColumnFormat(name, levels, series.dtype, missing, is_integer)


def arrow_like_format(values: Any, name: str, levels: Levels | None) -> ColumnFormat:
    """Format of a Polars or PyArrow column; both have null and NaN, and we give back what we saw."""
    dtype = getattr(values, "dtype", None) or values.type
    n_null = values.null_count() if callable(values.null_count) else values.null_count
    uses_nan = levels is None and n_null == 0 and bool(np.isnan(np.asarray(values, dtype=np.float64)).any())
    return ColumnFormat(name, levels, dtype, np.nan if uses_nan else None, declared=_declared_levels(values, dtype))


def _declared_levels(values: Any, dtype: Any) -> Levels | None:
    """Levels of a Polars Enum or a PyArrow dictionary, None for other columns."""
    if hasattr(dtype, "index_type"):
        return tuple(dictionary_levels(values))
    is_enum = str(dtype).startswith("Enum")  # Polars' Categorical belongs to the process, not to the column
    return tuple(dtype.categories.to_list()) if is_enum else None
