"""Fitted explainer <-> one file, without the model and without pickle.

What the explainer learned is taken apart into arrays and facts, see `condshap.storage.state_file` for the file and
`condshap.approaches.base.Storable` for the approaches' own part. The model comes from the user, and a few training rows with
its predictions tell whether it is the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from condshap.approaches import available_approaches, find_approach
from condshap.approaches.base import State, restore_approach
from condshap.coalitions import CoalitionPlan, Players
from condshap.draw_check.result import DrawCheck
from condshap.exceptions import CondShapError, CondShapWarning, ModelError, NotFittedError, StorageError, listing
from condshap.explainer import Explainer
from condshap.models.predictor import Predictor
from condshap.models.read_additive import kind_of_reading, read_function
from condshap.numerics.affine import AdditiveFunction
from condshap.options import as_path
from condshap.runtime.devices import find_accelerator
from condshap.schema import FeatureSchema
from condshap.storage.digests import with_other_model
from condshap.storage.plain_values import restore_values, store_values
from condshap.storage.schemas import schema_from_json, schema_to_json
from condshap.storage.state_file import damaged, read_state, write_state
from condshap.types import Model, Outputs
from condshap.values.assignments import Part, new_approach

_OPTIONS_APART = {"model", "approach", "coalitions"}
_LEARNED_APART = {
    "schema_", "players_", "plan_", "masks_", "parts_", "predictor_", "function_", "draw_check_", "training_rows_",
}  # fmt: skip
_CLEARLY = 1e-4  # of the largest prediction; rounding on another machine or device stays far below


def save_explainer(explainer: Explainer, path: Path) -> None:
    """Write a fitted explainer, see `Explainer.save`."""
    if not hasattr(explainer, "error_factors_"):
        raise NotFittedError("an Explainer must be fitted before it is saved. Call fit(X_train) first.")
    write_state(_take_apart(explainer), path)


def load_explainer(path: str | Path, model: Model, *, approaches: Sequence[Any] = ()) -> Explainer:
    """Read an explainer that `Explainer.save` wrote; it explains as the saved one did, bit for bit.

    Parameters
    ----------
    path : the file
    model : the model that the explainer was fitted with; it is not in the file.
        One with other outputs is an error. One whose predictions on a few training rows clearly differ from the saved ones
        raises a `CondShapWarning`, because the base value, and whatever else was learned from the model, are not its own.
    approaches : classes of approaches of your own that the explainer uses; those of condshap are found by name

    Notes
    -----
    Nothing in the file is run. Trees of `ctree` and regressions of `regression_separate` are made again from the stored
    training rows when they are first needed, and are the same; all other approaches learn nothing anew.
    """
    path = as_path(path)
    state = read_state(path)
    with _clear_damage(path):
        options, learned = restore_values(state.part("options")), restore_values(state.part("learned"))
        options.setdefault("additive", False)  # files from before there was a choice hold errors of plain samples
        before = {"reading_": "any", "read_limit_": None, "units_": None}  # files from before there were such things
        nothing = np.full(len(state.facts["schema"]["features"]), np.nan)
        learned = before | {"constants_": nothing, "unread_": nothing > 0} | learned
        schema = schema_from_json(state.facts["schema"])
        players = Players(**restore_values(state.part("players")))
        plan = CoalitionPlan(**restore_values(state.part("plan")))
        output, rows = options["output"], learned["example_rows_"]
        names, outputs = (restore_values(state.part("model"))[name] for name in ("output_names", "outputs"))
        predictor = Predictor.of(
            model,
            schema,
            rows,
            output,
            fast_trees=options.get("fast_trees", True),
            device=find_accelerator(options.get("device", "auto")),
        )
        predictor = replace(predictor, units=learned["units_"])
        _check_outputs(predictor, names)
        parts = tuple(_restore_part(state.part(name), approaches, predictor) for name in state.facts["parts"])
        given_plan = plan if state.facts["plan_was_given"] else None
        approach = _restore_choice(state.facts["approach"], parts)
        explainer = Explainer(model, approach=approach, coalitions=given_plan, **options)
        for name, value in learned.items():
            setattr(explainer, name, value)
        explainer.schema_, explainer.players_, explainer.plan_ = schema, players, plan
        explainer.parts_, explainer.predictor_ = parts, predictor
        check = learned.get("draw_check_")  # files from before there was one have none
        explainer.draw_check_ = None if check is None else DrawCheck.from_json(check)
        explainer.knots_ = learned.get("knots_")  # files from before curves were read have none
        explainer.function_ = _read_again(explainer)
        explainer.masks_ = players.feature_masks(plan.masks)
        _check_shapes(explainer)
        _compare_predictions(explainer, outputs)
    return explainer


def _read_again(explainer: Explainer) -> AdditiveFunction | None:
    """Read an additive model as it was read at fit, whose proof is not repeated: the training rows are not there."""
    if explainer.reading_ is None:
        return None
    rows, additive, knots = explainer.example_rows_, explainer.additive, explainer.knots_

    def is_same(function: AdditiveFunction) -> bool:
        return explainer.reading_ in ("any", kind_of_reading(function))

    return read_function(explainer.predictor_, explainer.schema_, rows, additive, knots, is_same)


@contextmanager
def _clear_damage(path: Path) -> Iterator[None]:
    """Turn what goes wrong with a damaged file into a StorageError."""
    try:
        yield
    except (CondShapError, Warning, MemoryError):
        raise
    except Exception as error:  # facts that were changed by hand can fail in any way
        raise damaged(path, error) from error


def _take_apart(explainer: Explainer) -> State:
    """Everything but the model; plain options and attributes that are added later are stored by themselves."""
    options = {k: v for k, v in explainer.get_params(deep=False).items() if k not in _OPTIONS_APART}
    learned = {k: v for k, v in vars(explainer).items() if k.endswith("_") and k not in _LEARNED_APART}
    learned["draw_check_"] = None if explainer.draw_check_ is None else explainer.draw_check_.to_json()
    outputs = explainer.predictor_(explainer.example_rows_.copy())
    about_model = {"output_names": explainer.predictor_.output_names, "outputs": outputs}
    owner = "the explainer"
    parts = {f"part_{i}": _store_part(part) for i, part in enumerate(explainer.parts_)}
    all_parts = {
        "options": store_values(options, owner),
        "learned": store_values(learned, owner),
        "schema": _store_schema(explainer.schema_),
        "players": store_values(_fields(explainer.players_), owner),
        "plan": store_values(_fields(explainer.plan_), owner),
        "model": store_values(about_model, owner),
        **parts,
    }
    choice = _store_choice(explainer)
    facts = {"parts": list(parts), "approach": choice, "plan_was_given": explainer.coalitions is explainer.plan_}
    state = State({}, facts)
    for name, one in all_parts.items():
        state = state.joined(one.named(name))
    return state


def _fields(record: Any) -> dict[str, Any]:
    return {field.name: getattr(record, field.name) for field in fields(record)}


def _store_schema(schema: FeatureSchema) -> State:
    stored = schema_to_json(schema)
    if not _is_same(schema_from_json(stored), schema):
        dtypes = listing(str(column.dtype) for column in schema.table_format.columns)
        raise StorageError(
            f"the training rows must have column names and dtypes that can be stored, got {listing(schema.names)} of dtypes "
            f"{dtypes}. Fit on a table with text as names and common dtypes."
        )
    return State({}, stored)


def _is_same(a: FeatureSchema, b: FeatureSchema) -> bool:
    ours, theirs = a.table_format.header, b.table_format.header
    return a == b and (theirs is None or (ours.equals(theirs) and ours.dtype == theirs.dtype))


def _store_part(part: Part) -> State:
    approach = part.approach
    if not hasattr(approach, "to_state") or not hasattr(approach, "from_state"):
        raise StorageError(
            f"an approach must have to_state and from_state for its explainer to be saved, got '{approach.name}' "
            f"({type(approach).__name__}) without them. Add these methods, see condshap.approaches.base.Storable, or fit "
            "again instead of saving."
        )
    state = approach.to_state()
    if not isinstance(state, State):
        raise StorageError(
            f"to_state must return a condshap.approaches.base.State, got {type(state).__name__} from approach "
            f"'{approach.name}' ({type(approach).__name__}). Return arrays and facts in a State."
        )
    is_ours = approach.name in available_approaches() and type(approach) is find_approach(approach.name)
    return state.named("state").extended({"positions": part.positions}, {"name": approach.name, "is_ours": is_ours})


def _restore_part(state: State, approaches: Sequence[Any], predictor: Predictor) -> Part:
    name = state.facts["name"]
    if state.facts["is_ours"]:
        kind = find_approach(name)
    else:
        own = [one for one in approaches if getattr(one, "name", None) == name]
        if not own:
            raise StorageError(
                f"the saved explainer uses an approach '{name}' that is not one of condshap's, so its class must be given, "
                f"got {listing(getattr(one, 'name', one) for one in approaches)}. Call load_explainer(path, model, "
                "approaches=[ItsClass])."
            )
        kind = own[0]
    return Part(restore_approach(kind, state.part("state"), predict=predictor), state.arrays["positions"])


def _store_choice(explainer: Explainer) -> dict[str, Any]:
    """Store the option `approach`: names as they are, objects as the number of the part that was made of them."""
    given: Any = explainer.approach
    is_list = isinstance(given, Sequence) and not isinstance(given, str)
    entries = list(given) if is_list else [given]
    keys = [entry if isinstance(entry, str) else id(entry) for entry in entries]
    parts = list(dict.fromkeys(keys))  # in the order of `make_parts`
    if len(parts) != len(explainer.parts_):
        raise StorageError(
            f"an explainer must be saved with the approach that it was fitted with, got {given!r}, which was set after the "
            f"fit. Fit again, or set it back."
        )
    choices = [key if isinstance(key, str) else parts.index(key) for key in keys]
    return {"is_list": is_list, "choices": choices}


def _restore_choice(stored: dict[str, Any], parts: Sequence[Part]) -> Any:
    entries: dict[Any, Any] = {}
    for choice in stored["choices"]:
        if choice not in entries:
            entries[choice] = choice if isinstance(choice, str) else new_approach(parts[choice].approach)
    restored = [entries[choice] for choice in stored["choices"]]
    return restored if stored["is_list"] else restored[0]


def _check_outputs(predictor: Predictor, names: tuple[str, ...]) -> None:
    if predictor.output_names != names:
        raise ModelError(
            f"the model must have the outputs of the one that the explainer was fitted with, {listing(names)}, got "
            f"{listing(predictor.output_names)}. Pass that model, or fit a new explainer."
        )


def _check_shapes(explainer: Explainer) -> None:
    plan, n_outputs = explainer.plan_, len(explainer.predictor_.output_names)
    n, M = len(plan.masks), len(explainer.schema_)
    found = (explainer.masks_.shape, plan.weights.shape, plan.inclusion.shape, explainer.n_samples_.shape)
    learned = (explainer.base_value_.shape, explainer.error_factors_.shape)
    if found != ((n, M), (n,), (n,), (n,)) or learned != ((n_outputs,), (n, n_outputs)):
        raise ValueError(f"arrays of shapes {(*found, *learned)} do not belong together")
    of_features = (explainer.constants_.shape, explainer.unread_.shape, explainer.example_rows_.shape[1:])
    if of_features != ((M,), (M,), (M,)) or explainer.asked_samples_.shape != (n,):
        raise ValueError(f"arrays of shapes {(*of_features, explainer.asked_samples_.shape)} do not belong together")
    if any(((part.positions >= n) | (part.positions < 0)).any() for part in explainer.parts_):
        raise ValueError(f"positions beyond the {n} coalitions")


def _compare_predictions(explainer: Explainer, outputs: Outputs) -> None:
    """Announce a model that predicts other than the one that the explainer was fitted with."""
    found = explainer.predictor_(explainer.example_rows_.copy())
    apart, scale = np.abs(found - outputs).max(), np.abs(outputs).max()
    if apart <= _CLEARLY * scale:
        return
    message = (
        f"the model must be the one that the explainer was fitted with, but its predictions for {len(outputs)} training "
        f"rows differ from the saved ones by up to {apart:.3g}, where the largest is {scale:.3g}. The base value, and "
        "whatever else was learned from the model, belong to the other one: fit a new explainer unless this is meant."
    )
    explainer.warnings_ = (*explainer.warnings_, message)
    explainer.made_by_ = with_other_model(explainer.made_by_, found)
    warnings.warn(message, CondShapWarning, stacklevel=3)
