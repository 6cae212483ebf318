"""Fitted explainer, arrays -> explanation and its provenance."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from condshap import __version__
from condshap.coalitions import CoalitionPlan
from condshap.combination import Part
from condshap.exceptions import CondShapWarning
from condshap.explanation import Explanation, Provenance
from condshap.maker import digest_of_maker
from condshap.members import MemberSpread
from condshap.solvers import ShapleyValues
from condshap.tables import snapshot
from condshap.types import Floats, Indices, Table
from condshap.values import ValueTable

if TYPE_CHECKING:
    from condshap.explainer import Explainer

_BLURRED = 0.5
"""Median standard error over mean absolute Shapley value from which on hardly any sign is sure."""


def describe(
    explainer: Explainer,
    plan: CoalitionPlan,
    n_samples: Indices,
    *,
    seconds: float,
    warned: Sequence[str] = (),
    **precision: Any,
) -> Provenance:
    """How an explanation with the coalitions of `plan` and `n_samples` (C,) for each of them came about.

    Parameters
    ----------
    seconds : that explaining took
    warned : what was said while explaining, beside what was said at fit
    precision : what ``n_coalitions="auto"`` reached, see `Provenance`
    """
    return Provenance(
        approach=" + ".join(part.approach.name for part in explainer.parts_),
        options=_options_of(explainer.parts_),
        seed=int(explainer.seed),
        n_samples=tuple(int(k) for k in np.unique(n_samples[plan.interior])),
        n_coalitions=len(plan.masks),
        is_exact=plan.is_exact,
        n_repaired=plan.n_repaired,
        base_value_from="mean prediction" if explainer.base_value is None else "given",
        seconds={"fit": explainer.seconds_, "explain": seconds},
        versions=_versions(),
        warnings=(*explainer.warnings_, *warned),
        draw_check=explainer.draw_check_,
        made_by=digest_of_maker(explainer),
        **precision,
    )


def assemble_explanation(
    explainer: Explainer,
    X: Table,
    table: ValueTable,
    solved: ShapleyValues,
    provenance: Provenance,
    spread: MemberSpread | None = None,
) -> Explanation:
    """Explanation of the rows of `X` from arrays with an axis for outputs, which goes where there is only one."""
    model_errors = None if spread is None else spread.errors()
    if model_errors is not None:
        provenance = replace(provenance, model_errors_from="members")
    squeeze = len(explainer.predictor_.output_names) == 1

    def shaped(array: Floats) -> Floats:
        return array[..., 0] if squeeze else array

    return Explanation(
        values=shaped(solved.values),
        base_values=shaped(table.values[0].copy()),
        predictions=shaped(table.values[-1].copy()),
        std_errors=shaped(solved.std_errors),
        model_errors=shaped(np.zeros_like(solved.values) if model_errors is None else model_errors),
        value_table=replace(table, values=shaped(table.values), std_errors=shaped(table.std_errors)),
        data=snapshot(X),
        feature_names=explainer.schema_.names,
        player_names=explainer.players_.names,
        output_names=explainer.predictor_.output_names,
        membership=tuple(tuple(np.flatnonzero(row).tolist()) for row in explainer.players_.membership),
        provenance=provenance,
    )


def warn_if_blurred(solved: ShapleyValues, plan: CoalitionPlan, outputs: Sequence[str]) -> tuple[str, ...]:
    """Warn where standard errors are as large as the values: median error over half of the mean absolute value.

    Parameters
    ----------
    solved : values and errors, both (R, P, O)
    outputs : names of the O outputs

    Returns
    -------
    What was said, for the provenance.
    """
    size, error = np.abs(solved.values).mean(axis=(0, 1)), np.median(solved.std_errors, axis=(0, 1))
    is_blurred = error > _BLURRED * size
    if not len(solved.values) or not is_blurred.any():
        return ()
    worst = int(np.argmax(np.where(is_blurred, error / np.maximum(size, 1e-300), 0.0)))
    where = f" of output {outputs[worst]!r}" if len(outputs) > 1 else ""
    cure = (
        "Raise n_samples."
        if plan.is_exact
        else f"Raise n_coalitions ({len(plan.masks)} were used) or n_samples, set n_coalitions='auto', or use groups."
    )
    text = (
        "standard errors must be well below the Shapley values for their signs and ranks to be trusted, but the median "
        f"error{where} is {error[worst]:.3g} and the mean absolute value {size[worst]:.3g}. {cure}"
    )
    warnings.warn(text, CondShapWarning, stacklevel=3)
    return (text,)


def _plain(value: Any) -> Any:
    """An option as JSON can hold it."""
    return value if isinstance(value, (bool, int, float, str, type(None))) else repr(value)


def _versions() -> dict[str, str]:
    packages = ("numpy", "scipy", "pandas", "scikit-learn")
    own = {"python": platform.python_version(), "condshap": __version__}
    return {**own, **{name: version(name) for name in packages}}


def _options_of(parts: Sequence[Part]) -> dict[str, Any]:
    """Options of the approaches; with several, each name has the approach's in front."""
    options: dict[str, Any] = {}
    for part in parts:
        front = f"{part.approach.name}." if len(parts) > 1 else ""
        given = part.approach.get_params() if hasattr(part.approach, "get_params") else {}
        options |= {front + key: _plain(value) for key, value in given.items()}
    return options
