"""Game -> a digest of all that its numbers depend on, by which an explanation knows what made it.

Two explainers have the same digest if they were fitted with the same rows, approach, seed, options and model, whatever the
jobs, memory, bars and devices. Of the model, its predictions for some training rows and their mean count, to nine digits,
because the last ones may depend on the batch or on the order in which jobs add.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from condshap import __version__
from condshap.approaches.base import State
from condshap.exceptions import OptionError
from condshap.explanation import Explanation
from condshap.types import Floats, Outputs, Rows
from condshap.values.assignments import Part

if TYPE_CHECKING:
    from condshap.game import Game

_OF_APPROACHES_APART = {"device", "progress", "n_jobs"}
_ZIP = b"PK\x03\x04"  # packed estimators hold times and addresses; rows, seed and options tell what they are
_DIGITS = 9
_EXAMPLES = 8  # more would sooner have one whose rounding hangs on its last bit
_CLEARLY = 1e-5
"""Of the largest prediction: what is further apart is no rounding of a model."""


def digest_of_fit(game: Game, rows: Rows, outputs: Outputs, **options: Any) -> str:
    """Digest of what was learned from training rows (N, M).

    `outputs` (n, O) are what the model predicts for training rows, NaN where that is not known, for a few of which it is
    asked if none is; `options` are others that count.
    """
    plan = game.plan
    facts = {
        "version": __version__,
        "options": {"seed": game.seed, "target_error": repr(game.target_error)} | options | _link_of(game),
        "features": [repr(feature) for feature in game.schema.features],
        "players": game.players.names,
        "outputs": game.predictor.output_names,
        "samples": sorted(set(zip(plan.sizes.tolist(), game.n_samples.tolist(), strict=True))),
        "is_additive": game.function is not None,
        "approaches": [_facts_of(part) for part in game.parts],
    }
    known = outputs[~np.isnan(outputs).any(axis=1)][:_EXAMPLES]
    if game.is_base_given or not len(known):
        known = game.predictor(game.example_rows.copy())
    if game.ordering is not None:
        facts["order"] = repr(game.ordering)
    found = hashlib.sha256(json.dumps(facts, sort_keys=True, default=repr).encode())
    _add(found, game.players.membership, rows, _rounded(known), _rounded(game.base_value))
    for part in game.parts:
        _add(found, *_arrays_of(part))
    return found.hexdigest()


def _link_of(game: Game) -> dict[str, str]:
    return {} if game.link is None else {"link": game.link}


def digest_of_maker(game: Game) -> str:
    """Digest of a game as it is now: its seed may be another one than that of the fit."""
    return hashlib.sha256(f"{game.made_by} {game.seed}".encode()).hexdigest()


def with_other_model(digest: str, outputs: Outputs) -> str:
    """Digest of an explainer that was loaded with another model, by that one's outputs (n, O) for some rows."""
    found = hashlib.sha256(digest.encode())
    _add(found, _rounded(outputs))
    return found.hexdigest()


def check_explanation(explanation: Any) -> None:
    """Refuse to refine what is no explanation."""
    if not isinstance(explanation, Explanation):
        raise OptionError(
            f"refine needs an explanation, got {type(explanation).__name__}. Pass what explain(X) returned."
        )
    if explanation.value_table is None:
        raise OptionError(
            f"refine needs v(S) of the coalitions so far, got an explanation without it: {explanation!r}. Explain the "
            "rows again."
        )


def check_maker(explanation: Explanation, game: Game, predictions: Outputs) -> None:
    """Refuse an explanation that another explainer has made, or whose model now predicts (R, O) otherwise."""
    if explanation.provenance.made_by != digest_of_maker(game):
        raise OptionError(
            "the explanation must come from this explainer with n_coalitions='auto', or from one with the same training "
            f"rows, approach, options, seed and model, but was made by another one: {explanation!r}. Explain the rows again."
        )
    known = explanation.predictions.reshape(predictions.shape)
    apart, scale = np.abs(known - predictions).max(initial=0.0), np.abs(predictions).max(initial=0.0)
    if not apart <= _CLEARLY * scale:
        raise OptionError(
            "the explanation must come from this explainer and its model, but the model's predictions for the explained "
            f"rows differ from those in the explanation by up to {apart:.3g}. Explain the rows again."
        )


def _facts_of(part: Part) -> dict[str, Any]:
    options = {key: repr(value) for key, value in part.options.items() if key not in _OF_APPROACHES_APART}
    return {"name": part.approach.name, "type": type(part.approach).__qualname__, "options": options}


def _arrays_of(part: Part) -> list[npt.NDArray[Any]]:
    """What an approach has learned, where it can be stored; else rows, options and seed must do."""
    try:
        state = part.approach.to_state() if part.can.is_storable else None
    except Exception:  # an approach of somebody's own, which saving will complain about
        return []
    arrays = [array for _, array in sorted(state.arrays.items())] if isinstance(state, State) else []
    return [array for array in map(np.atleast_1d, arrays) if array.ravel()[:4].tobytes() != _ZIP]


def _rounded(values: Floats) -> Floats:
    """Values to so many significant digits."""
    with np.errstate(divide="ignore"):
        size = np.floor(np.log10(np.abs(np.where(values == 0, 1.0, values))))
    factor = 10.0 ** (_DIGITS - 1 - np.maximum(size, -280))  # numbers near zero have fewer digits
    return np.asarray(np.round(values * factor) / factor)


def _add(found: Any, *arrays: npt.NDArray[Any]) -> None:
    for array in arrays:
        found.update(f"{array.dtype.str} {array.shape}".encode())
        found.update(np.ascontiguousarray(array).tobytes())
