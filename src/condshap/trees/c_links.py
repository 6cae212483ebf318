"""Links as compiled loops, with the exponential function of C and in the order of LightGBM and XGBoost."""

from __future__ import annotations

import math
from typing import Any

import numpy.typing as npt

from condshap.numerics.jit import entry_kernel


@entry_kernel
def exp_rows(sums: npt.NDArray[Any]) -> None:
    """Replace sums (n, O) by their exponentials."""
    for row in range(sums.shape[0]):
        for k in range(sums.shape[1]):
            sums[row, k] = math.exp(sums[row, k])


@entry_kernel
def softmax_rows(sums: npt.NDArray[Any]) -> None:
    """Replace sums (n, O) by probabilities; their total is taken in float64, whatever the type of the sums."""
    for row in range(sums.shape[0]):
        top = sums[row, 0]
        for k in range(1, sums.shape[1]):
            top = max(top, sums[row, k])
        total = 0.0
        for k in range(sums.shape[1]):
            sums[row, k] = math.exp(sums[row, k] - top)
            total += sums[row, k]
        for k in range(sums.shape[1]):
            sums[row, k] /= sums.dtype.type(total)
