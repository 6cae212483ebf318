"""Explained rows, training rows -> which rows have values that the training rows do not have."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from condshap.exceptions import SchemaError
from condshap.explanation import Explanation
from condshap.numerics.readable import feature_value
from condshap.tables.feature_columns import feature_columns
from condshap.tables.reading import Column, to_pandas
from condshap.types import Masks, Table


@dataclass(frozen=True, slots=True)
class Outside:
    """Rows with values outside the range of the training rows, or with levels or gaps that these do not have, by feature.

    Attributes
    ----------
    by_row : positions of rows, in order, and what is unusual about each: (feature, what the training rows have)
    by_feature : names of features and their number of such rows, the largest first
    n_train : number of training rows
    """

    by_row: dict[int, list[tuple[int, str]]]
    by_feature: dict[str, int]
    n_train: int


def find_outside(explanation: Explanation, train: Table) -> Outside:
    """Compare the explained rows with the training rows feature by feature; combinations of features are not checked."""
    n_train = len(to_pandas(train))
    if n_train == 0:
        raise SchemaError("train must have rows, got none. Pass the rows that the explainer was fitted on.")
    by_row, by_feature = defaultdict(list), {}
    pairs = zip(feature_columns(explanation), feature_columns(explanation, train), strict=True)
    for j, (ours, theirs) in enumerate(pairs):
        is_outside, shown = _compare(ours, theirs)
        for row in np.flatnonzero(is_outside).tolist():
            by_row[row].append((j, shown))
        if is_outside.any():
            by_feature[ours.name] = int(is_outside.sum())
    ranked = dict(sorted(by_feature.items(), key=lambda item: -item[1]))
    return Outside({row: by_row[row] for row in sorted(by_row)}, ranked, n_train)


def _compare(ours: Column, theirs: Column) -> tuple[Masks, str]:
    """Where (R,) our values lie outside theirs, and a text that describes theirs."""
    if ours.numbers is not None and theirs.numbers is not None:
        seen = theirs.numbers[~np.isnan(theirs.numbers)]
        gaps = np.isnan(ours.numbers)
        new_gaps = gaps & (len(seen) == len(theirs.numbers))
        if len(seen) == 0:
            return ~gaps, "only missing values"
        beyond = (ours.numbers < seen.min()) | (ours.numbers > seen.max())
        return beyond | new_gaps, f"{feature_value(seen.min(), 6)} to {feature_value(seen.max(), 6)}"
    ours_texts, theirs_texts = _texts(ours), set(_texts(theirs))
    n_levels = len(theirs_texts - {""})
    return np.array([text not in theirs_texts for text in ours_texts]), f"{n_levels} other levels"


def _texts(column: Column) -> list[str]:
    """Labels as text, numbers written like labels, missing values as empty text."""
    if column.codes is None:
        assert column.numbers is not None
        return ["" if np.isnan(value) else f"{value:.17g}" for value in column.numbers]
    levels = [f"{x:.17g}" if isinstance(x, (int, float)) and not isinstance(x, bool) else str(x) for x in column.levels]
    return ["" if code < 0 else levels[code] for code in column.codes]
