"""Model, the explainer's table -> the table that the model was trained on: its type, its columns and their order."""

from __future__ import annotations

import re
from collections.abc import Iterable

from condshap.exceptions import ModelError, listing
from condshap.models.calling import describe_model, is_instance, is_lightgbm
from condshap.tables.column_formats import ColumnFormat
from condshap.tables.formats import TableFormat
from condshap.types import Model

_PLAIN_DTYPES = {"float64", "double", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))}
"""Of columns whose numbers reach the model as they are encoded; whole numbers are the same in both."""


def find_input_format(model: Model, table: TableFormat) -> tuple[TableFormat, tuple[int, ...] | None]:
    """Table that the model wants, and the order of its columns if that is another one.

    Most models tell what they were trained on: names, so they want a table in that order, or none, so they want an array.
    """
    if is_instance(model, "torch", "nn.Module"):
        return _array_for_torch(table), None
    trained = _trained_names(model)
    if trained is None:
        return _without_names(model, table), None
    if table.backend == "numpy":
        fits = len(trained) == len(table.columns)
        return (table.as_pandas(trained) if fits else table), None
    order = _match_order(model, trained, [str(name) for name in table.names])
    if _needs_pandas(model, table):
        table = table.as_pandas([str(name) for name in table.names])
    return (table, None) if order is None else (table.reordered(order), order)


def holds_plain_numbers(columns: Iterable[ColumnFormat]) -> bool:
    """Whether columns of a table hold the same numbers as the encoded rows."""
    return all(column.levels is None and str(column.dtype).lower() in _PLAIN_DTYPES for column in columns)


def _needs_pandas(model: Model, table: TableFormat) -> bool:
    """LightGBM takes no labels from Polars or PyArrow; scikit-learn cannot select columns of PyArrow tables."""
    if is_lightgbm(model):
        return table.backend != "pandas"
    return table.backend == "pyarrow" and is_instance(model, "sklearn.base", "BaseEstimator")


def _trained_names(model: Model) -> list[str] | None:
    """Column names that the model was trained with, None if it does not tell or had none."""
    if is_instance(model, "xgboost", "Booster"):
        names = model.feature_names
    elif is_instance(model, "lightgbm", "Booster"):
        names = model.feature_name()
        names = None if all(re.fullmatch(r"Column_\d+", name) for name in names) else names
    else:
        names = getattr(model, "feature_names_in_", None)
    return [str(name) for name in names] if isinstance(names, Iterable) else None


def _match_order(model: Model, trained: list[str], names: list[str]) -> tuple[int, ...] | None:
    """Positions of the trained columns among `names`; None if the order is right, or for the model itself to judge."""
    if is_lightgbm(model):  # it renames columns, and never looks at the names of what it predicts
        names = [re.sub(r"[\s\[\]{}\",:]", "_", name) for name in names]
        trained = [re.sub(r"[\s\[\]{}\",:]", "_", name) for name in trained]
        if set(names) != set(trained):
            raise ModelError(
                f"model {describe_model(model)} must be explained with the columns that it was trained on, "
                f"{listing(trained)}, got {listing(names)}. Fit the explainer on these columns."
            )
    if trained == names or set(trained) != set(names):
        return None
    return tuple(names.index(name) for name in trained)


def _without_names(model: Model, table: TableFormat) -> TableFormat:
    """Array for a scikit-learn model that was trained on one, else the table as it is.

    With column names that are not text scikit-learn remembers none, so their absence means nothing.
    """
    knows_nothing = table.backend == "numpy" or not all(isinstance(name, str) for name in table.names)
    is_sklearn = is_instance(model, "sklearn.base", "BaseEstimator") and hasattr(model, "n_features_in_")
    if knows_nothing or not (is_sklearn or is_lightgbm(model) or is_instance(model, "xgboost", "Booster")):
        return table
    return table.as_array() or table


def _array_for_torch(table: TableFormat) -> TableFormat:
    array = table.as_array()
    if array is None:
        text = [c.name for c in table.columns if c.levels and not isinstance(c.levels[0], (bool, int, float))]
        raise ModelError(
            f"a torch module needs numeric columns, got levels in {listing(text)}. "
            "Pass a function that encodes the levels and calls the module."
        )
    return array
