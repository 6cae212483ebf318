"""Sums of leaf values -> predictions, rounded as the libraries round."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from condshap.types import Outputs

Link: TypeAlias = Literal["identity", "exp", "sigmoid", "softmax"]
Exponential: TypeAlias = Literal["numpy", "c"]
"""Whose exp a library calls: they differ in the last bit. scikit-learn takes NumPy's, LightGBM and XGBoost that of C."""


def finish(sums: npt.NDArray[Any], divisor: float, link: Link, exponential: Exponential) -> Outputs:
    """Turn sums (n, O), float32 or float64, that include the base into predictions; may write into `sums`.

    Returns
    -------
    (n, O), or (n, 2) after a sigmoid, computed in the type of the sums and given in float64
    """
    if divisor != 1.0:
        sums /= divisor
    if link == "sigmoid":
        from scipy.special import expit

        positive = expit(sums[:, 0])  # of C, in every library
        return np.stack([1 - positive, positive], axis=1).astype(np.float64, copy=False)
    if link != "identity":
        _apply(sums, link, exponential)
    return sums.astype(np.float64, copy=False)


def _apply(sums: npt.NDArray[Any], link: Link, exponential: Exponential) -> None:
    """Apply exp or softmax to sums (n, O), in place."""
    if exponential == "c":
        from condshap.trees.c_links import exp_rows, softmax_rows

        (exp_rows if link == "exp" else softmax_rows)(sums)
        return
    if link == "softmax":
        sums -= sums.max(axis=1, keepdims=True)
    np.exp(sums, out=sums)
    if link == "softmax":
        sums /= sums.sum(axis=1, keepdims=True)
