"""v(S) of coalitions and rows -> value table: values with standard errors; moments and settings on the way there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from condshap.types import Floats, Masks, Values


@dataclass(frozen=True, slots=True, eq=False)
class ValueTable:
    """The contribution function for C coalitions and the explained rows.

    Attributes
    ----------
    coalitions : (C, P) bool, True = in S; empty first, grand last
    values : (C, R), or (C, R, O) when the model has several outputs
    std_errors : Monte Carlo standard errors of `values`, same shape; NaN if a single sample leaves them unknown
    n_evaluations : number of rows that the model predicted
    """

    coalitions: Masks
    values: Floats
    std_errors: Floats
    n_evaluations: int


@dataclass(frozen=True, slots=True)
class Settings:
    """How to compute: memory in bytes, joblib workers, whether to show a bar; none affects the numbers.

    `device` is a torch device on which samples are drawn, evaluated and averaged where approach and model can, None for
    NumPy alone. Its numbers differ by rounding, like those of another machine.
    """

    memory_budget: int = 2**30
    n_jobs: int = 1
    progress: bool | None = None
    device: str | None = None


@dataclass(frozen=True, slots=True)
class Moments:
    """Means (C, R, O) over samples and their variances (C, R, O).

    Where `is_nominal` (C,) is True, the variances are those of independent blocks of samples, see
    `condshap.numerics.blocks`: a measured factor has yet to turn them into honest ones.
    """

    means: Values
    variances: Values
    is_nominal: Masks
    n_evaluations: int
    members: Values | None = None
    """How far means of the members of an ensemble are from that of all, (E, C, R, O), where that was asked for."""

    def scale(self, factors: Floats) -> Values:
        """What turns the variances into honest ones, (C, 1, O): measured `factors` (C, O) where they are nominal."""
        return np.where(self.is_nominal[:, None], factors, 1.0)[:, None, :]

    def honest(self, factors: Floats) -> Values:
        """Variances (C, R, O) with measured `factors` (C, O) where they are nominal."""
        return self.variances * self.scale(factors)


def join_rows(tables: Sequence[tuple[Masks, ValueTable]]) -> ValueTable:
    """One value table of tables (C, r, O) for parts of the rows, each with where its rows are, (R,)."""
    first = tables[0][1]
    shape = (len(first.values), len(tables[0][0]), first.values.shape[2])
    values, errors = np.empty(shape), np.empty(shape)
    for some, table in tables:
        values[:, some], errors[:, some] = table.values, table.std_errors
    return ValueTable(first.coalitions, values, errors, sum(table.n_evaluations for _, table in tables))
