"""Explained parts -> one line per player over all rows, with the memory of one part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from condshap.bulk.part_files import read_numbers
from condshap.types import Floats

if TYPE_CHECKING:
    from condshap.bulk.opening import ExplanationSet


def summarise(given: ExplanationSet) -> pd.DataFrame:
    """See `ExplanationSet.summary`."""
    sums: Any = 0.0
    low: Any = np.inf
    high: Any = -np.inf
    for done in given.parts:
        names, values, errors = read_numbers(given.folder, done)  # (R, P, O) each
        sums = sums + np.stack([np.abs(values).sum(axis=0), values.sum(axis=0), errors.sum(axis=0)])
        low, high = np.minimum(low, values.min(axis=0)), np.maximum(high, values.max(axis=0))
    sizes, means, mean_errors = sums / len(given)
    columns: dict[str, Floats] = {
        "mean |value|": sizes,
        "mean value": means,
        "smallest": low,
        "largest": high,
        "mean error": mean_errors,
    }
    players, outputs = names
    index = (
        pd.MultiIndex.from_product([players, outputs], names=["player", "output"])
        if len(outputs) > 1
        else pd.Index(players, name="player")
    )
    return pd.DataFrame({name: values.ravel() for name, values in columns.items()}, index=index)
