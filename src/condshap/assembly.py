"""Game, arrays -> explanation and its provenance."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from condshap import __version__
from condshap.coalitions import CoalitionPlan
from condshap.explanation import Explanation, Provenance
from condshap.numerics.readable import estimate, typed
from condshap.runtime.announcing import announce
from condshap.solvers import ShapleyValues
from condshap.storage.digests import digest_of_maker
from condshap.tables.reading import snapshot
from condshap.trees.pipelines import split_pipeline
from condshap.types import Floats, Indices, Table
from condshap.values.assignments import Part
from condshap.values.table import ValueTable

if TYPE_CHECKING:
    from condshap.game import Game

_BLURRED = 0.5
"""Median standard error over mean absolute Shapley value from which on hardly any sign is sure."""
BLUR = "standard errors must be well below the Shapley values"
"""How the warning begins."""


def describe(
    game: Game,
    plan: CoalitionPlan,
    n_samples: Indices,
    *,
    seconds: float,
    device: str | None = None,
    warned: Sequence[str] = (),
    **precision: Any,
) -> Provenance:
    """How an explanation with the coalitions of `plan` and `n_samples` (C,) for each of them came about.

    Parameters
    ----------
    seconds : that explaining took
    device : on which samples were drawn, None for the host
    warned : what was said while explaining, beside what was said at fit
    precision : what ``n_coalitions="auto"`` reached, see `Provenance`
    """
    return Provenance(
        approach=" + ".join(part.approach.name for part in game.parts),
        options=_options_of(game.parts),
        seed=game.seed,
        n_samples=tuple(int(k) for k in np.unique(n_samples[plan.interior])),
        n_coalitions=len(plan.masks),
        is_exact=plan.has_all,
        n_repaired=plan.n_repaired,
        base_value_from="given" if game.is_base_given else "mean prediction",
        seconds={"fit": game.seconds, "explain": seconds},
        versions=_versions(game, device),
        warnings=(*game.warnings, *warned),
        draw_check=game.draw_check,
        made_by=digest_of_maker(game),
        **_order_of(game),
        link=game.link,
        n_learned=game.n_learned,
        **precision,
    )


def _order_of(game: Game) -> dict[str, Any]:
    """Facts about the causal order, where it counts."""
    order = game.ordering
    if order is None or not (order.is_causal or order.is_asymmetric):
        return {}
    return {
        "causal_ordering": tuple(tuple(names) for names in order.names(game.players)),
        "confounding": order.confounded if order.is_causal else None,
        "asymmetric": order.is_asymmetric,
    }


def assemble_explanation(
    game: Game,
    X: Table,
    table: ValueTable,
    solved: ShapleyValues,
    provenance: Provenance,
    model_errors: Floats | None = None,
) -> Explanation:
    """Explanation of the rows of `X` from arrays with an axis for outputs, which goes where there is only one.

    `model_errors` (R, P, O) are those that members of an ensemble show, None without members.
    """
    if model_errors is not None:
        provenance = replace(provenance, model_errors_from="members")
    squeeze = len(game.predictor.output_names) == 1

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
        feature_names=game.schema.names,
        player_names=game.players.names,
        output_names=game.predictor.output_names,
        membership=game.players.features,
        provenance=provenance,
    )


def warn_if_blurred(
    solved: ShapleyValues, plan: CoalitionPlan, outputs: Sequence[str], *, is_automatic: bool = False
) -> None:
    """Warn where standard errors are as large as the values.

    Parameters
    ----------
    solved : values and errors, both (R, P, O)
    outputs : names of the O outputs
    is_automatic : whether rows got coalitions until they were precise, or no more were allowed
    """
    found = blurred(solved.values, solved.std_errors, outputs)
    if found is None:
        return
    if plan.has_all:
        cure = "Raise n_samples."
    elif is_automatic:
        cure = "Lower the tolerance, raise max_coalitions or n_samples, or use groups."
    else:
        more = "" if plan.components else "set n_coalitions='auto', "
        cure = f"Raise n_coalitions ({len(plan.masks)} were used) or n_samples, {more}or use groups."
    announce(f"{found} {cure}")


def blurred(values: Floats, errors: Floats, outputs: Sequence[str]) -> str | None:
    """Say where the median error is over half of the mean absolute value, both (R, P, O); None if nowhere."""
    if not len(values):
        return None
    size, error = np.abs(values).mean(axis=(0, 1)), np.median(errors, axis=(0, 1))
    is_blurred = error > _BLURRED * size
    if not is_blurred.any():
        return None
    worst = int(np.argmax(np.where(is_blurred, error / np.maximum(size, 1e-300), 0.0)))
    where = f" of output {outputs[worst]!r}" if len(outputs) > 1 else ""
    return (
        f"{BLUR} for their signs and ranks to be trusted, but the median "
        f"error{where} is {typed(estimate(error[worst], error[worst]))} and the mean absolute value "
        f"{typed(estimate(size[worst], error[worst]))}."
    )


def _plain(value: Any) -> Any:
    """An option as JSON can hold it."""
    return value if isinstance(value, (bool, int, float, str, type(None))) else repr(value)


def _versions(game: Game, device: str | None) -> dict[str, str]:
    """Versions of what has a hand in the numbers: torch and libraries of models where they were used."""
    packages = ("numpy", "scipy", "pandas", "scikit-learn")
    own = {"python": platform.python_version(), "condshap": __version__}
    # asked of the module itself: a distribution may have another name, such as xgboost-cpu
    used = {name: str(import_module(name).__version__) for name in sorted(_packages_used(game, device))}
    return {**own, **{name: _version(name) for name in packages}, **used}


_version = lru_cache(version)  # reading it takes milliseconds, as long as explaining a row does


def _packages_used(game: Game, device: str | None) -> set[str]:
    model = game.predictor.model
    _, last = split_pipeline(model)
    classes = {base.__module__.split(".")[0] for kind in map(type, (model, last)) for base in kind.__mro__}
    used = classes & {"torch", "xgboost", "lightgbm"}
    for part in game.parts:
        used |= set(part.can.packages)
    return used if device is None else used | {"torch"}


def _options_of(parts: Sequence[Part]) -> dict[str, Any]:
    """Options of the approaches; with several, each name has the approach's in front."""
    options: dict[str, Any] = {}
    for part in parts:
        front = f"{part.approach.name}." if len(parts) > 1 else ""
        options |= {front + key: _plain(value) for key, value in part.options.items()}
    return options
