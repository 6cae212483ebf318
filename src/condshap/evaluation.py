"""Explanations, truth -> evaluation criteria of the paper's Section 4.1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from condshap.exceptions import OptionError
from condshap.numerics.row_means import half_width, not_below_zero, over_rows
from condshap.options import check_level
from condshap.types import Floats


@dataclass(frozen=True, slots=True, eq=False)
class Criterion:
    """A criterion averaged over rows; smaller is better.

    Attributes
    ----------
    value : (), or (O,) for several outputs; ``float(criterion)`` is the sum over outputs
    std_error : same shape, from the spread over rows; NaN for a single row. If the rows are all cells of a categorical
        design, nothing was sampled and only the spread over repetitions is meaningful.
    per_row : (R,) or (R, O)
    weights : (R,) weights of the rows, which sum to 1
    """

    value: Floats
    std_error: Floats
    per_row: Floats
    weights: Floats

    def __float__(self) -> float:
        """Sum over outputs."""
        return float(np.sum(self.value))

    def total_std_error(self) -> float:
        """Standard error of ``float(criterion)``; NaN for a single row."""
        return float(over_rows(self.per_row.reshape(len(self.per_row), -1).sum(axis=1), self.weights)[1])

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval of ``float(criterion)`` over rows, by Student's t, not below 0; NaN for a single row."""
        half = half_width(self.total_std_error(), len(self.per_row), check_level(level))
        return not_below_zero(float(self) - half, float(self) + half)


@dataclass(frozen=True, slots=True, eq=False)
class MSEv(Criterion):
    """Mean squared difference between v(S, x) and f(x), EC3, or v_true(S, x), EC2, over interior coalitions and rows.

    Only differences in EC3 between approaches are meaningful: part of it is the spread of f given x_S.

    Attributes
    ----------
    value : (), or (O,) for several outputs; ``float(msev)`` is the sum over outputs
    std_error : same shape, from the spread over rows; NaN for a single row
    per_row : (R,) or (R, O)
    weights : (R,) weights of the rows, which sum to 1
    per_coalition : (C - 2,) or (C - 2, O)
    """

    per_coalition: Floats


def ec1(phi_true: Floats, phi: Floats, *, weights: Floats | None = None) -> Criterion:
    """Mean absolute error of Shapley values, eq. (8) of the paper.

    Parameters
    ----------
    phi_true, phi : (R, P) or (R, P, O), without the base value; in the sampled studies both from the same coalitions
    weights : (R,) on any scale, the probabilities p(x) in the categorical study; None for equal weights

    Examples
    --------
    >>> float(ec1(np.array([[1.0, 2.0]]), np.array([[2.0, 2.0]])))
    0.5
    """
    _check_shapes("phi", phi_true.shape, phi.shape)
    per_row = np.abs(phi_true - phi).mean(axis=1)
    row_weights = _row_weights(len(per_row), weights)
    return Criterion(*over_rows(per_row, row_weights), per_row, row_weights)


def ec2(
    v_true: Floats,
    v: Floats,
    *,
    std_errors: Floats | float = 0.0,
    coalition_weights: Floats | None = None,
    weights: Floats | None = None,
) -> MSEv:
    """Mean squared error of contribution functions, eq. (9) of the paper; options as in `mean_squared_error`.

    Parameters
    ----------
    v_true, v : (C, R) or (C, R, O), interior coalitions only
    std_errors : of v_true - v, e.g. ``np.hypot(std_errors_true, std_errors)``; 0 gives the criterion as printed
    coalition_weights, weights : (C,) and (R,); None for equal weights
    """
    _check_shapes("v", v_true.shape, v.shape)
    return mean_squared_error(v_true, v, std_errors, coalition_weights=coalition_weights, weights=weights)


def ec3(
    predictions: Floats,
    v: Floats,
    *,
    std_errors: Floats | float = 0.0,
    coalition_weights: Floats | None = None,
    weights: Floats | None = None,
) -> MSEv:
    """Mean squared difference between f(x) and contribution functions, eq. (10) of the paper.

    `Explanation.msev` computes it for an explanation.

    Parameters
    ----------
    predictions : (R,) or (R, O), f(x)
    v : (C, R) or (C, R, O), interior coalitions only
    std_errors : of v; 0 gives the criterion as printed
    coalition_weights, weights : (C,) and (R,); None for equal weights
    """
    _check_shapes("v", (len(v), *predictions.shape), v.shape)
    return mean_squared_error(predictions, v, std_errors, coalition_weights=coalition_weights, weights=weights)


def mean_squared_error(
    target: Floats,
    v: Floats,
    std_errors: Floats | float,
    *,
    coalition_weights: Floats | None = None,
    weights: Floats | None = None,
) -> MSEv:
    """EC2 or EC3, minus the Monte Carlo variance of the differences so that few samples are not penalised.

    Parameters
    ----------
    target : what v is compared with, (R,) or (R, O) for f(x), shape of `v` for the truth
    v : (C, R) or (C, R, O), interior coalitions only
    std_errors : shape of `v`, or one number
    coalition_weights : (C,) on any scale, e.g. how often each coalition was drawn; None for equal weights
    weights : (R,) on any scale; None for equal weights
    """
    row_weights = _row_weights(v.shape[1], weights)
    if len(v) == 0:  # a single player has no interior coalition
        nothing = np.zeros(v.shape[1:])
        return MSEv(nothing.sum(axis=0), nothing.sum(axis=0), nothing, row_weights, np.zeros((0, *v.shape[2:])))
    squares = (target - v) ** 2 - np.square(std_errors)
    by_row = np.ascontiguousarray(squares.reshape(len(v), -1).T)  # sums along the memory do not depend on other rows
    per_row = np.average(by_row, axis=1, weights=coalition_weights).reshape(squares.shape[1:])
    per_coalition = np.average(squares, axis=1, weights=row_weights)
    return MSEv(*over_rows(per_row, row_weights), per_row, row_weights, per_coalition)


def _check_shapes(name: str, true: tuple[int, ...], estimated: tuple[int, ...]) -> None:
    if true != estimated or len(true) not in (2, 3) or 0 in true:
        raise OptionError(
            f"true and estimated {name} must be non-empty tables of the same shape, got {true} and {estimated}. "
            "Explain the same rows with the same coalitions."
        )


def _row_weights(n: int, weights: Floats | None) -> Floats:
    """Weights of n rows as given, or equal ones, on the scale where they sum to 1."""
    given = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
    if given.shape != (n,) or not np.isfinite(given).all() or (given < 0).any() or not given.any():
        raise OptionError(
            f"weights must be {n} finite numbers, none negative and not all 0, got {given.tolist()[:5]} of shape "
            f"{given.shape}. Pass one per row."
        )
    return np.asarray(given / given.sum())
