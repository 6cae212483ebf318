"""Explanation -> sizes of its values, and their mean, largest, smallest or sum over rows, with errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from condshap.exceptions import OptionError
from condshap.types import Floats

if TYPE_CHECKING:
    from condshap.explanation import Explanation


@dataclass(frozen=True, slots=True, eq=False)
class Summary:
    """One number per player (and output): a mean, sum, largest or smallest value over rows.

    Attributes
    ----------
    values : (P,), or (P, O) when the explanation has several outputs
    std_errors, errors : shape of `values`; from `Explanation.std_errors` alone, and all errors together. For means and sums
        upper bounds, the mean or sum of the errors, because the errors of rows may depend on each other; for the largest and
        smallest value the error of that one. They say nothing about other rows that could have been explained
    player_names, output_names : names
    n_rows : rows that went into it
    what : name of the number, e.g. ``mean |Shapley value|``
    is_size : whether it is made of absolute values. Noise raises these: a value of 0 with standard error s has a mean size
        of 0.8 s, so a size near ``0.8 * std_errors`` is no evidence of an effect. A value above 2 s is hardly raised
    """

    values: Floats
    std_errors: Floats
    errors: Floats
    player_names: tuple[str, ...]
    output_names: tuple[str, ...]
    n_rows: int
    what: str
    is_size: bool

    def __len__(self) -> int:
        """Return the number of players P."""
        return len(self.values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """The values, for NumPy's functions."""
        return np.array(self.values, dtype=dtype)

    def to_frame(self) -> pd.DataFrame:
        """One line per player (and output): value, and all errors together."""
        several = self.values.ndim == 2
        index = (
            pd.MultiIndex.from_product([self.player_names, self.output_names], names=["player", "output"])
            if several
            else pd.Index(self.player_names, name="player")
        )
        return pd.DataFrame({"value": self.values.ravel(), "error": self.errors.ravel()}, index=index)


@dataclass(frozen=True, slots=True, eq=False)
class Sizes:
    """Absolute Shapley values of an explanation: what ``abs(explanation)`` gives.

    Their sums mean nothing, so this is not an explanation; ``mean(0)``, ``max(0)``, ``min(0)`` and ``sum(0)`` summarise
    them over rows.
    """

    explanation: Explanation

    @property
    def values(self) -> Floats:
        """Absolute values, (R, P) or (R, P, O)."""
        return np.abs(self.explanation.values)

    @property
    def player_names(self) -> tuple[str, ...]:
        """Names of the players."""
        return self.explanation.player_names

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the outputs."""
        return self.explanation.output_names

    def __len__(self) -> int:
        """Return the number of rows R."""
        return len(self.explanation)

    def __getitem__(self, key: Any) -> Sizes:
        """Sizes of some rows, players or outputs, see `Explanation`."""
        return Sizes(self.explanation[key])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """The absolute values, for NumPy's functions."""
        return np.array(self.values, dtype=dtype)

    def mean(self, axis: int = 0) -> Summary:
        """Mean size over rows: the usual importance of players."""
        return summarise(self.explanation, "mean", axis, is_size=True)

    def max(self, axis: int = 0) -> Summary:
        """Largest size over rows."""
        return summarise(self.explanation, "max", axis, is_size=True)

    def min(self, axis: int = 0) -> Summary:
        """Smallest size over rows."""
        return summarise(self.explanation, "min", axis, is_size=True)

    def sum(self, axis: int = 0) -> Summary:
        """Sum of the sizes over rows."""
        return summarise(self.explanation, "sum", axis, is_size=True)


_WORDS = {"mean": "mean", "max": "largest", "min": "smallest", "sum": "sum of"}


def summarise(explanation: Explanation, how: str, axis: Any, *, is_size: bool) -> Summary:
    """Mean, largest, smallest or sum over rows, of the values or of their sizes."""
    if isinstance(axis, bool) or axis != 0:
        raise OptionError(
            f"axis must be 0, over rows, got {axis!r}. Over players, values add up to predictions - base_values; use "
            "NumPy on explanation.values for anything else."
        )
    if not len(explanation):
        raise OptionError(f"{how} over rows needs at least one row, got none. Explain or select some.")
    values = np.abs(explanation.values) if is_size else explanation.values
    parts = (values, explanation.std_errors, explanation.errors)
    if how in ("mean", "sum"):
        found, std_errors, errors = (getattr(part, how)(axis=0) for part in parts)
    else:
        row = (np.argmax if how == "max" else np.argmin)(values, axis=0)[None]
        found, std_errors, errors = (np.take_along_axis(part, row, axis=0)[0] for part in parts)
    noun = "|Shapley value|" if is_size else "Shapley value"
    what = f"{_WORDS[how]} {noun}{'s' if how == 'sum' else ''}"
    names = (explanation.player_names, explanation.output_names)
    return Summary(found, std_errors, errors, *names, len(explanation), what, is_size)
