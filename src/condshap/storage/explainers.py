"""Fitted explainer <-> one file, without the model and without pickle.

What the explainer learned is taken apart into arrays and facts, see `condshap.storage.state_file` for the file and
`condshap.approaches.base.Storable` for the approaches' own part. The model comes from the user, and a few training rows with
its predictions tell whether it is the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from condshap.approaches import available_approaches, find_approach
from condshap.approaches.base import State, restore_approach
from condshap.coalitions import CoalitionPlan, Players
from condshap.coalitions.ordering import Ordering
from condshap.draw_check.result import DrawCheck
from condshap.exceptions import CondShapWarning, ModelError, NotFittedError, StorageError, listing
from condshap.explainer import Explainer
from condshap.game import Game
from condshap.models.predictor import Predictor
from condshap.models.read_additive import kind_of_reading, read_function
from condshap.numerics.additive import AdditiveFunction
from condshap.options import as_path
from condshap.runtime.announcing import level_of_user
from condshap.runtime.devices import find_accelerator
from condshap.schema import FeatureSchema
from condshap.storage.digests import with_other_model
from condshap.storage.file_kinds import EXPLAINER
from condshap.storage.plain_values import restore_values, store_values
from condshap.storage.schemas import schema_from_json, schema_to_json
from condshap.storage.state_file import read_state, write_state
from condshap.types import Model, Outputs
from condshap.values.assignments import Part, new_approach

if TYPE_CHECKING:
    from condshap.amortised.fast_explainer import FastExplainer

_OPTIONS_APART = {"model", "approach", "coalitions"}
_LEARNED_APART = {
    "schema", "players", "plan", "masks", "parts", "predictor", "function", "draw_check", "training_rows",
    "ordering",
}  # fmt: skip
_CLEARLY = 1e-4  # of the largest prediction; rounding on another machine or device stays far below


def save_explainer(explainer: Explainer, path: Path) -> None:
    """Write a fitted explainer, see `Explainer.save`."""
    if not explainer.__sklearn_is_fitted__():
        raise NotFittedError("an Explainer must be fitted before it is saved. Call fit(X_train) first.")
    write_state(_take_apart(explainer, explainer.game_), path)


def save_fast_explainer(fast: FastExplainer, path: Path) -> None:
    """Write a fast explainer, see `FastExplainer.save`: an explainer with a further part."""
    state = _take_apart(fast.explainer, fast.game)
    write_state(state.joined(fast.to_state().named("fast")), path)


def load_explainer(path: str | Path, model: Model, *, approaches: Sequence[Any] = ()) -> Any:
    """Load an explainer that `Explainer.save` or `FastExplainer.save` wrote; it gives the same numbers, bit for bit.

    Parameters
    ----------
    path : the file
    model : the model that the explainer was fitted with; it is not in the file.
        A model with other outputs raises an error. If its predictions on a few training rows clearly differ from the saved
        ones, a `CondShapWarning` says that the base value and whatever else was learned belong to another model. A fast
        explainer, whose network has learned the values of one model only, raises an error.
    approaches : classes of your own approaches that the explainer uses; those of condshap are found by name

    Notes
    -----
    Nothing in the file is run as code. The trees of `ctree` and the regressions of `regression_separate` are rebuilt from
    the stored training rows when first needed, exactly as they were; all other approaches are loaded as they are.
    """
    path = as_path(path)
    state = read_state(path)
    with EXPLAINER.clear_damage(path):
        options, learned = restore_values(state.part("options")), restore_values(state.part("learned"))
        schema = schema_from_json(state.facts["schema"])
        players = Players(**restore_values(state.part("players")))
        plan = CoalitionPlan(**restore_values(state.part("plan")))
        about_model = restore_values(state.part("model"))
        predictor = Predictor.of(
            model,
            schema,
            learned["example_rows"],
            options["output"],
            fast_trees=options["fast_trees"],
            device=find_accelerator(options["device"]),
        )
        predictor = replace(predictor, units=about_model["units"])
        _check_outputs(predictor, about_model["output_names"])
        parts = tuple(_restore_part(state.part(name), approaches, predictor) for name in state.facts["parts"])
        check = state.facts["draw_check"]
        game = Game(
            **learned,
            schema=schema,
            players=players,
            plan=plan,
            masks=players.feature_masks(plan.masks),
            parts=parts,
            predictor=predictor,
            function=None,
            ordering=Ordering.of(players, options["causal_ordering"], options["confounding"], options["asymmetric"]),
            draw_check=None if check is None else DrawCheck.from_json(check),
            training_rows=None,
        )
        game = replace(game, function=_read_again(game, options["additive"]))
        _check_shapes(game)
        given_plan = plan if state.facts["plan_was_given"] else None
        approach = _restore_choice(state.facts["approach"], parts)
        explainer = Explainer(model, approach=approach, coalitions=given_plan, **options)
        if "fast" in state.facts:
            from condshap.amortised.fast_explainer import FastExplainer

            explainer.game_ = game
            return FastExplainer.from_state(explainer, game, state.part("fast"))
        explainer.game_ = _compare_predictions(game, about_model["outputs"])
    return explainer


def _read_again(game: Game, additive: bool | str) -> AdditiveFunction | None:
    """Read an additive model as it was read at fit, whose proof is not repeated: the training rows are not there."""
    if game.reading is None:
        return None

    def is_same(function: AdditiveFunction) -> bool:
        return kind_of_reading(function) == game.reading

    return read_function(game.predictor, game.schema, game.example_rows, additive, game.knots, is_same)


def _take_apart(explainer: Explainer, game: Game) -> State:
    """Everything but the model; plain options and fields that are added later are stored by themselves."""
    options = {k: v for k, v in explainer.get_params(deep=False).items() if k not in _OPTIONS_APART}
    if game.ordering is not None:  # in whatever lists or arrays it was given
        order = game.ordering
        options |= {"causal_ordering": order.names(game.players), "confounding": order.confounded}
    learned = {name: value for name, value in _fields(game).items() if name not in _LEARNED_APART}
    outputs = game.predictor(game.example_rows.copy())
    about_model = {"output_names": game.predictor.output_names, "outputs": outputs, "units": game.predictor.units}
    owner = "the explainer"
    parts = {f"part_{i}": _store_part(part) for i, part in enumerate(game.parts)}
    all_parts = {
        "options": store_values(options, owner),
        "learned": store_values(learned, owner),
        "schema": _store_schema(game.schema),
        "players": store_values(_fields(game.players), owner),
        "plan": store_values(_fields(game.plan), owner),
        "model": store_values(about_model, owner),
        **parts,
    }
    facts = {
        "parts": list(parts),
        "approach": _store_choice(explainer.approach, len(game.parts)),
        "plan_was_given": explainer.coalitions is game.plan,
        "draw_check": None if game.draw_check is None else game.draw_check.to_json(),
    }
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
            f"{dtypes}. Fit on a table with text names and common dtypes."
        )
    return State({}, stored)


def _is_same(a: FeatureSchema, b: FeatureSchema) -> bool:
    ours, theirs = a.table_format.header, b.table_format.header
    return a == b and (theirs is None or (ours.equals(theirs) and ours.dtype == theirs.dtype))


def _store_part(part: Part) -> State:
    approach = part.approach
    if not part.can.is_storable:
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


def _store_choice(given: Any, n_parts: int) -> dict[str, Any]:
    """Store the option `approach`: names as they are, objects as the number of the part that was made of them."""
    is_list = isinstance(given, Sequence) and not isinstance(given, str)
    entries = list(given) if is_list else [given]
    keys = [entry if isinstance(entry, str) else id(entry) for entry in entries]
    parts = list(dict.fromkeys(keys))  # in the order of `make_parts`
    if len(parts) != n_parts:
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


def _check_shapes(game: Game) -> None:
    plan, n_outputs = game.plan, len(game.predictor.output_names)
    n, M = len(plan.masks), len(game.schema)
    found = (game.masks.shape, plan.weights.shape, plan.inclusion.shape, game.n_samples.shape)
    learned = (game.base_value.shape, game.error_factors.shape)
    if found != ((n, M), (n,), (n,), (n,)) or learned != ((n_outputs,), (n, n_outputs)):
        raise ValueError(f"arrays of shapes {(*found, *learned)} do not belong together")
    of_features = (game.constants.shape, game.unread.shape, game.example_rows.shape[1:])
    if of_features != ((M,), (M,), (M,)) or game.asked_samples.shape != (n,):
        raise ValueError(f"arrays of shapes {(*of_features, game.asked_samples.shape)} do not belong together")
    if any(((part.positions >= n) | (part.positions < 0)).any() for part in game.parts):
        raise ValueError(f"positions beyond the {n} coalitions")


def _compare_predictions(game: Game, outputs: Outputs) -> Game:
    """Announce a model that predicts other than the one that the explainer was fitted with."""
    found = game.predictor(game.example_rows.copy())
    apart, scale = np.abs(found - outputs).max(), np.abs(outputs).max()
    if apart <= _CLEARLY * scale:
        return game
    message = (
        f"the model must be the one that the explainer was fitted with, but its predictions for {len(outputs)} training "
        f"rows differ from the saved ones by up to {apart:.3g}, where the largest is {scale:.3g}. The base value, and "
        "whatever else was learned from the model, belong to the other one: fit a new explainer unless you mean this."
    )
    warnings.warn(message, CondShapWarning, stacklevel=level_of_user())
    return replace(game, warnings=(*game.warnings, message), made_by=with_other_model(game.made_by, found))
