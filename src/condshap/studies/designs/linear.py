"""Additive linear models of factors and numbers: the models whose truth needs no sampling.

The paper explains a linear regression with one effect per level of a factor and one slope per number (Section 4.3 and
Appendix E). Whatever fitted it, its coefficients can be read off by asking for a few predictions, so nothing here looks
inside pipelines or encoders.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from condshap.exceptions import OptionError
from condshap.types import Floats, Rows, Table

if TYPE_CHECKING:
    from condshap.models.predictor import Predictor

_AGREEMENT = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class LinearModel:
    r"""The paper's f(x) = alpha + sum_j sum_l beta_jl 1(x_j = l) + sum_j gamma_j x_j, factors before numbers.

    Attributes
    ----------
    intercept : alpha
    level_effects : (M_cat, L), beta
    slopes : (M_cont,), gamma
    """

    intercept: float
    level_effects: Floats
    slopes: Floats

    @classmethod
    def of(cls, intercept: float, level_effects: Any, slopes: Any) -> LinearModel:
        """Take coefficients from nested sequences.

        >>> LinearModel.of(1.0, [[0.0, 2.0]], [3.0]).predict(np.array([[1.0, 0.5]])).tolist()
        [4.5]
        """
        slopes = np.asarray(slopes, dtype=np.float64).reshape(-1)
        effects = np.asarray(level_effects, dtype=np.float64)
        return cls(float(intercept), effects if effects.size else np.zeros((0, 0)), slopes)

    def contributions(self, rows: Rows) -> Floats:
        """What every feature adds to the prediction of encoded rows, shape (n, M)."""
        n_categorical = len(self.level_effects)
        parts = [self.level_effects[j, rows[:, j].astype(np.intp)] for j in range(n_categorical)]
        numbers = rows[:, n_categorical:] * self.slopes
        return np.concatenate([np.reshape(parts, (n_categorical, len(rows))).T, numbers], axis=1)

    def predict(self, X: Table) -> Floats:
        """Predict a pandas table, or encoded rows as an array; shape (n,). Columns are added up one by one, uncopied."""
        columns = _columns(X) if isinstance(X, pd.DataFrame) else list(np.asarray(X, dtype=np.float64).T)
        n_categorical = len(self.level_effects)
        total = np.zeros(len(X))
        for effects, column in zip(self.level_effects, columns[:n_categorical], strict=True):
            total += effects[column.astype(np.intp)]
        for slope, column in zip(self.slopes, columns[n_categorical:], strict=True):
            total += slope * column
        return self.intercept + total


def _columns(X: pd.DataFrame) -> list[Any]:
    """Columns of a table, codes of those whose dtype is category."""
    columns = [X.iloc[:, j] for j in range(X.shape[1])]
    return [c.cat.codes.to_numpy() if isinstance(c.dtype, pd.CategoricalDtype) else c.to_numpy() for c in columns]


def fit_linear(rows: Rows, y: Floats, n_categorical: int, n_levels: int) -> LinearModel:
    """Least squares of the paper's form (Section 4.3), the first level of each factor as its reference.

    Predictions do not depend on the reference. A level that no row has gets the reference's effect.

    Parameters
    ----------
    rows : (N, M) encoded, factors first
    y : (N,)
    """
    if len(rows) != len(y):
        raise OptionError(f"y must hold one response per row, {len(rows)} of them, got {len(y)}. Pass matching rows.")
    one_hot = [rows[:, [j]] == np.arange(1, n_levels) for j in range(n_categorical)]
    design = np.concatenate([np.ones((len(rows), 1)), *one_hot, rows[:, n_categorical:]], axis=1)
    found = np.linalg.lstsq(design, np.asarray(y, dtype=np.float64), rcond=None)[0]
    n_effects = n_categorical * max(n_levels - 1, 0)
    effects = np.zeros((n_categorical, n_levels))
    effects[:, 1:] = found[1 : 1 + n_effects].reshape(effects[:, 1:].shape)
    return LinearModel(float(found[0]), effects, found[1 + n_effects :])


def read_linear(predictor: Predictor, rows: Rows, n_categorical: int, n_levels: int) -> LinearModel | None:
    """Read the coefficients of an additive linear model off its predictions; None if the model is not of that form.

    The first row is changed in one feature at a time, which gives all effects; all rows must then be predicted by them.

    Parameters
    ----------
    rows : (n, M) encoded, factors first; many and different, as they are the proof of linearity
    """
    n_continuous = rows.shape[1] - n_categorical
    n_steps = n_categorical * n_levels
    probes = np.tile(rows[0], (1 + n_steps + n_continuous, 1))
    for j in range(n_categorical):
        probes[1 + j * n_levels + np.arange(n_levels), j] = np.arange(n_levels)
    for j in range(n_continuous):
        probes[1 + n_steps + j, n_categorical + j] += 1.0
    predicted = predictor(np.concatenate([probes, rows]))[:, 0]
    steps = predicted[: len(probes)] - predicted[0]
    effects, slopes = steps[1 : 1 + n_steps].reshape(n_categorical, n_levels), steps[1 + n_steps :]
    bare = LinearModel(0.0, effects, slopes)
    model = LinearModel(float(predicted[0] - bare.predict(rows[:1])[0]), effects, slopes)
    seen = predicted[len(probes) :]
    error = np.abs(model.predict(rows) - seen).max()
    return model if error <= _AGREEMENT * (1.0 + np.abs(seen).max()) else None
