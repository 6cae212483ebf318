"""Boosting with categories -> encoded rows as the numbers that its trees compare, without a table of labels in between.

The model's own encoder is asked about every level once, and its answers are looked up: for a table of labels it would take a
large part of the time that the trees take.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from condshap.models.input_format import holds_plain_numbers
from condshap.tables.formats import TableFormat
from condshap.trees.pipelines import dense_numbers, encoder_of
from condshap.types import Floats, Model, Rows


@dataclass(frozen=True, slots=True, eq=False)
class LevelCodes:
    """What the encoder of a model does to rows.

    Attributes
    ----------
    places : (M,) which column of the rows comes where
    codes : per column, in the new order, what K levels become and, at the end, a missing value (K + 1,); None for numbers
    """

    places: tuple[int, ...]
    codes: tuple[Floats | None, ...]

    @classmethod
    def learn(cls, model: Model, table_format: TableFormat) -> LevelCodes | None:
        """Ask the encoder of a model about tables of one format.

        None if there is no encoder, or if tables change numbers, have other columns or categories without levels.
        """
        columns = table_format.columns
        if encoder_of(model) is None or len(model.is_categorical_) != len(columns):
            return None
        places = np.argsort(~model.is_categorical_, kind="stable").tolist()
        numbers = [j for j, column in enumerate(columns) if column.levels is None]
        if model.is_categorical_[numbers].any() or not holds_plain_numbers(columns[j] for j in numbers):
            return None
        n_levels = np.array([len(column.levels or ()) for column in columns])
        every = np.arange(n_levels.max() + 1)[:, None]
        asked = np.where(every < n_levels, every, np.nan)  # each level, then nothing but gaps
        asked[:, numbers] = numbers

        def encode(rows: Rows) -> Floats | None:
            return dense_numbers(table_format.write(rows.copy()), model, np.float64)

        found = encode(asked)
        if found is None:
            return None
        codes = (None if j in numbers else found[[*range(n_levels[j]), -1], i] for i, j in enumerate(places))
        learned = cls(tuple(places), tuple(codes))
        mixed = np.stack([np.roll(asked[:, j], j) for j in range(len(places))], axis=1)
        again = encode(mixed)
        return learned if again is not None and np.array_equal(learned.look_up(mixed), again, equal_nan=True) else None

    def look_up(self, rows: Rows) -> Floats:
        """Numbers (n, M) that trees compare, for rows (n, M) in the model's order of columns."""
        found = rows.take(self.places, axis=1)
        for i, codes in enumerate(self.codes):
            if codes is not None:
                own = found[:, i]
                found[:, i] = codes[np.where(np.isnan(own), -1.0, own).astype(np.intp)]
        return found
