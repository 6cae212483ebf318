"""Abalone (Section 5 of the paper) as a cell: real rows, so nobody knows the truth and only EC3 is measured."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from condshap.coalitions import all_coalitions
from condshap.datasets import Dataset, load_abalone
from condshap.exceptions import OptionError
from condshap.schema import Kind
from condshap.studies.problems.cells import FACTORS, NUMBERS, Problem, fit_forest
from condshap.types import Floats, Indices

ROWS_VARIABLE = "CONDSHAP_ABALONE"
"""Environment variable that names a CSV file of the rows, where scikit-lego is not installed."""


def load_rows() -> Dataset:
    """Abalone with the authors' split, from scikit-lego or from the file that `ROWS_VARIABLE` names."""
    return load_abalone(os.environ.get(ROWS_VARIABLE) or None)


@dataclass(frozen=True, slots=True, eq=False)
class CodedForest:
    """A forest that reads the raw table: levels of Sex become codes, in the first column.

    Attributes
    ----------
    forest : of numbers
    factor : name of the factor; its categories are numbered in their order
    """

    forest: Any
    factor: str = "Sex"

    def predict(self, X: pd.DataFrame) -> Floats:
        """Predict rows (n, M); returns (n,)."""
        return np.asarray(self.forest.predict(self.encode(X)))

    def encode(self, X: pd.DataFrame) -> Floats:
        """Numbers (n, M) that the forest compares."""
        codes = X[self.factor].cat.codes.to_numpy(dtype=np.float64)
        return np.column_stack([codes, X.drop(columns=self.factor).to_numpy(dtype=np.float64)])

    def with_forest(self, change: Callable[[Any], Any]) -> CodedForest:
        """Return the same model with its forest changed."""
        return replace(self, forest=change(self.forest))


def fit_abalone(data: Dataset, n_trees: int, *, seed: int, n_train: int | None = None) -> CodedForest:
    """Fit the forest of Section 5 to the first `n_train` training rows, or to all.

    Notes
    -----
    The authors used ranger's defaults. It, too, takes the levels of a factor as ordered, tries floor(sqrt(M)) features
    per split, and splits nodes of more than five rows.
    """
    rows = CodedForest(None).encode(data.X_train.iloc[:n_train])
    return CodedForest(fit_forest(rows, data.y_train.iloc[:n_train].to_numpy(), n_trees, seed=seed))


@dataclass(frozen=True, slots=True)
class AbaloneCell:
    """Abalone with the authors' split; the repetition seeds the forest and the methods, never the rows.

    Attributes
    ----------
    n_train, n_rows : the first so many of the 4077 training rows and of the authors' 100 test rows
    n_trees : of the forest
    """

    n_train: int = 4077
    n_rows: int = 100
    n_trees: int = 500

    @property
    def key(self) -> str:
        """Name of the cell.

        >>> AbaloneCell().key
        'abalone N=4077 rows=100 trees=500'
        """
        return f"abalone N={self.n_train} rows={self.n_rows} trees={self.n_trees}"

    @property
    def truth_key(self) -> None:
        """There is no truth."""
        return

    @property
    def setting(self) -> Mapping[str, float]:
        """M and N."""
        return {"M": 8, "N": self.n_train}

    @property
    def kinds(self) -> frozenset[Kind]:
        """Numbers and a factor."""
        return NUMBERS | FACTORS

    def make_problem(self, repetition: int) -> Problem:
        """Load the rows and fit the forest with the repetition as its seed."""
        data = load_rows()
        model = fit_abalone(data, self.n_trees, seed=repetition, n_train=self.n_train)
        X_train, X = data.X_train.iloc[: self.n_train], data.X_test.iloc[: self.n_rows]
        base_value = float(data.y_train.iloc[: self.n_train].mean())
        return Problem(None, X_train, X, None, model, base_value, all_coalitions(X.shape[1]))

    def quick(self) -> AbaloneCell:
        """A cell of 20 rows, 50 trees and 500 training rows."""
        return AbaloneCell(n_train=500, n_rows=20, n_trees=50)


def choose_three(distance: Floats, sexes: npt.NDArray[Any]) -> Indices:
    """Positions (3,) of rows far below, close to and far above 0, each of another sex; `distance` and `sexes` are (R,)."""
    below = int(distance.argmin())
    above = int(np.where(sexes != sexes[below], distance, -np.inf).argmax())
    allowed = (sexes != sexes[below]) & (sexes != sexes[above])
    if not allowed.any():
        raise OptionError(
            f"rows to explain must hold all three sexes, got {sorted(set(sexes))} in {len(sexes)} rows. Explain more."
        )
    close = int(np.where(allowed, np.abs(distance), np.inf).argmin())
    return np.array([below, close, above], dtype=np.intp)
