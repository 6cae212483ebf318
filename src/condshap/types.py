"""The vocabulary of arrays that pass between the stages."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

LARGEST = 1e70
"""Size of the largest numbers that are taken: errors of MSEv need their fourth powers, and sums of these."""

SMALLEST = 1e-70
"""Size that the largest prediction must have: fourth powers of smaller ones vanish, and the error of MSEv with them."""

SMALLEST_RANGE = 1e-150
"""Range that a column must have unless it is constant: squares of smaller differences vanish."""

Floats: TypeAlias = npt.NDArray[np.float64]
"""Any float64 array."""

Rows: TypeAlias = npt.NDArray[np.float64]
"""(n, M) encoded rows: numbers as they are, levels as codes 0, 1, ..., missing entries as NaN."""

Masks: TypeAlias = npt.NDArray[np.bool_]
"""(C, M) or (C, P) coalitions, True = known (in S)."""

RowKeys: TypeAlias = npt.NDArray[np.uint64]
"""(R,) identities of rows for random streams; see `condshap.seeding`."""

Indices: TypeAlias = npt.NDArray[np.intp]
"""Any array of positions."""

Outputs: TypeAlias = npt.NDArray[np.float64]
"""(n, O) model outputs."""

Values: TypeAlias = npt.NDArray[np.float64]
"""(C, R, O) contribution function v(S) for coalitions, rows and outputs."""

Model: TypeAlias = Any
"""Whatever the user calls a model; `condshap.models.predictor` finds out how to call it."""

Table: TypeAlias = Any
"""A pandas, Polars or PyArrow table, or a NumPy array; read at the gate, `condshap.schema`."""
