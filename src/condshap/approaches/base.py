"""Rows, masks -> conditional samples: what every approach must offer.

An approach is any object with these methods; nothing is registered and nothing is inherited by necessity. Every file in
this folder binds ``APPROACH`` to its class, and the file's name is the approach's name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from condshap.coalitions import CoalitionPlan
from condshap.exceptions import SchemaError, listing
from condshap.schema import FeatureSchema, Kind
from condshap.types import Floats, Indices, Masks, Outputs, RowKeys, Rows, Values

if TYPE_CHECKING:
    from typing_extensions import TypeIs


@dataclass(frozen=True, slots=True)
class DrawnRows:
    """Sampled rows for the full cross product of coalitions and explained rows.

    Attributes
    ----------
    rows : (C, R, K, M), known columns unchanged
    weights : (C, R, K), or None for equal weights
    error_factor : variance of the weighted mean over the variance that independent draws would have, a number or (C, R).
        1 for independent draws, 0 where nothing is random, None where it must be measured (quasi-Monte Carlo).
    """

    rows: Floats
    weights: Floats | None = None
    error_factor: float | Floats | None = 1.0


@dataclass(frozen=True, slots=True)
class Donors:
    """Rows of a table of the approach's own, usually the training rows, whose unknown columns are borrowed.

    The value engine splices them with the known columns of the explained rows.

    Attributes
    ----------
    indices : (C, R, K) positions in `table`
    table : (N, M) encoded rows
    weights : (C, R, K), or None for equal weights; zero-weight padding is never evaluated
    error_factor : as in `DrawnRows`
    may_repeat : an index may occur twice for the same coalition and row
    """

    indices: Indices
    table: Rows
    weights: Floats | None = None
    error_factor: float | Floats | None = 1.0
    may_repeat: bool = True


ConditionalSamples = DrawnRows | Donors


class ConditionalSampler(Protocol):
    """An approach that samples x_unknown given x_known."""

    name: ClassVar[str]
    supports: ClassVar[frozenset[Kind]]
    handles_missing: ClassVar[bool]
    needs_model: ClassVar[bool]

    def fit(self, X: Rows, schema: FeatureSchema, *, plan: CoalitionPlan, seed: int) -> ConditionalSampler:
        """Learn from training rows (N, M); returns self."""
        ...

    def sample(self, X: Rows, masks: Masks, n_samples: int, *, keys: RowKeys, seed: int) -> ConditionalSamples:
        """Sample for every coalition in `masks` (C, M) and every row of `X` (R, M); does not change the approach."""
        ...


class ValueRegressor(Protocol):
    """An approach that estimates E[f(X) | x_known] with no sampling."""

    name: ClassVar[str]
    supports: ClassVar[frozenset[Kind]]
    handles_missing: ClassVar[bool]

    def fit(
        self, X: Rows, predictions: Outputs, schema: FeatureSchema, *, plan: CoalitionPlan, seed: int
    ) -> ValueRegressor:
        """Learn from training rows (N, M) and the model's predictions for them (N, O); returns self."""
        ...

    def estimate(self, X: Rows, masks: Masks) -> Values:
        """Estimate v(S), shape (C, R, O), for every coalition in `masks` (C, M) and every row of `X` (R, M)."""
        ...


Approach = ConditionalSampler | ValueRegressor


def is_sampler(approach: Approach) -> TypeIs[ConditionalSampler]:
    """Tell an approach that samples from one that estimates E[f(X) | x_known] directly."""
    return hasattr(approach, "sample")


def fit_approach(
    approach: Any, X: Rows, schema: FeatureSchema, *, plan: CoalitionPlan, seed: int, predict: Callable[[Rows], Outputs]
) -> Any:
    """Fit a sampler or a regressor; one that says `needs_model` gets the model as ``predict(rows) -> (n, O)`` too."""
    model = {"predict": predict} if getattr(approach, "needs_model", False) else {}
    if is_sampler(approach):
        return approach.fit(X, schema, plan=plan, seed=seed, **model)
    predictions = predict(X.copy())  # a model may write into its rows
    return approach.fit(X, predictions, schema, plan=plan, seed=seed, **model)


ALL_KINDS = frozenset(Kind)
CONTINUOUS_ONLY = frozenset({Kind.CONTINUOUS})


def check_supported(approach: Approach, schema: FeatureSchema) -> None:
    """Refuse features of a kind that the approach cannot model."""
    for kind in Kind:
        refused = schema.of_kind(kind)
        if kind not in approach.supports and refused:
            needed = " or ".join(sorted(k.value for k in approach.supports))
            raise SchemaError(
                f"approach '{approach.name}' needs {needed} features, got {kind.value} columns {listing(refused)}. "
                f"Use {_alternatives(kind)}, or drop these columns."
            )


def check_missing(approach: Approach, X: Rows, schema: FeatureSchema, *, what: str) -> None:
    """Refuse missing values where the approach cannot handle them; `what` names the rows in the message."""
    gaps = np.asarray(np.isnan(X))
    if approach.handles_missing or not gaps.any():
        return
    columns = [name for name, gone in zip(schema.names, np.atleast_1d(gaps.any(axis=0)), strict=True) if gone]
    rows = np.flatnonzero(gaps.any(axis=1)).tolist()
    raise SchemaError(
        f"approach '{approach.name}' needs complete {what}, got missing values in columns {listing(columns)}, rows "
        f"{listing(rows)}. Impute or drop them, or use {_alternatives(None)}."
    )


def _alternatives(kind: Kind | None) -> str:
    """Names of approaches that support a kind, or missing values if `kind` is None, for error messages."""
    from condshap.approaches import available_approaches, find_approach

    classes = [find_approach(name) for name in available_approaches()]
    fitting = [c.name for c in classes if (c.handles_missing if kind is None else kind in c.supports)]
    return " or ".join(f"approach='{name}'" for name in fitting)
