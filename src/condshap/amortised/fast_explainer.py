"""Explainer that has taught a network -> explanations in microseconds a row, with intervals and flags of unlike rows."""

from __future__ import annotations

import time
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from condshap.amortised.calibration import RelativeError
from condshap.amortised.labels import Teacher, by_output
from condshap.amortised.learned import Learned
from condshap.amortised.learning import Options, ask_network, learn_pool
from condshap.approaches.base import State
from condshap.assembly import describe
from condshap.bulk.options import Options as RunOptions
from condshap.exceptions import ModelError, listing
from condshap.explaining import encode_rows
from condshap.explanation import Explanation, Provenance
from condshap.learning import settings_of
from condshap.options import as_path, check_choice, known_options, spell_out
from condshap.runtime.announcing import announce, overheard
from condshap.schema import FeatureSchema
from condshap.storage.digests import digest_of_maker
from condshap.tables.reading import snapshot
from condshap.types import Floats, Masks, Outputs, Rows, Table
from condshap.values.links import check_probabilities, linked
from condshap.values.predictions import check_scale, predict_rows
from condshap.views.rows import in_index

if TYPE_CHECKING:
    from condshap.bulk.opening import ExplanationSet
    from condshap.explainer import Explainer
    from condshap.game import Game

_ROWS_PER_PART = 20_000
_CLEARLY = 1e-5  # of the largest prediction: what is further apart is no rounding of a model


@dataclass(frozen=True, eq=False, repr=False)
class FastExplainer:
    """Explain rows with a network that has learned the values of an explainer, see `Explainer.amortise`.

    Attributes
    ----------
    explainer : the one whose values were learned; values add up to the predictions of its model
    learned : networks, calibration and error
    game : what the explainer knew when the network learned from it
    known_outputs : (k, O) what the model then predicted for the game's example rows
    """

    explainer: Explainer
    learned: Learned
    game: Game
    known_outputs: Outputs

    @property
    def error(self) -> RelativeError:
        """Mean absolute error over mean absolute value, on held-out rows that the explainer explained at full precision.

        ``float(error)`` is the ratio, ``error.interval()`` its 95 % interval over rows, `by_output` that of every output.
        """
        return self.learned.error

    @property
    def schema_(self) -> FeatureSchema:
        """Schema of the features, as that of the explainer."""
        return self.game.schema

    def __repr__(self) -> str:
        """Say what it learned, and how well."""
        facts, (low, high) = self.learned.facts, self.error.interval()
        return (
            f"FastExplainer({self.explainer.approach!r}, {facts['labels']} labels of {facts['rows']} rows, relative error "
            f"{float(self.error):.3g} ({low:.3g} to {high:.3g}))"
        )

    def explain(self, X: Table, *, fallback: str | None = None) -> Explanation:
        """Explain rows (R, M): values from the network, with errors estimated from its errors on held-out rows.

        Parameters
        ----------
        fallback : "exact" to let the explainer itself explain rows that are unlike the pool; None to leave their values,
            and a warning. `Explanation.unlike_pool` tells which rows these are, in both cases
        """
        check_choice("fallback", fallback, (None, "exact"))
        start, game = time.perf_counter(), self.game
        rows = encode_rows(game, X)
        outputs = self._predict(rows)
        with overheard() as warned:
            asked = ask_network(game, self.learned.network.hints, rows, outputs, settings_of(self.explainer))
            values, errors, is_unlike = self.learned.explain(asked)
            if fallback == "exact":
                values[is_unlike], errors[is_unlike] = self._explain_exactly(rows[is_unlike], outputs[is_unlike])
            else:
                _announce_unlike(X, is_unlike)
        device, seconds = settings_of(self.explainer).device, time.perf_counter() - start
        about = describe(game, game.plan, game.n_samples, seconds=seconds, device=device, warned=warned)
        about = replace(about, has_table=False, amortised=self.learned.facts | {"fallback": fallback})
        return self._assemble(X, values, errors, linked(game.link, outputs), is_unlike, about)

    __call__ = explain

    def explain_dataset(
        self,
        source: Any,
        out: str | Path,
        *,
        fallback: str | None = None,
        **options: Any,
    ) -> ExplanationSet:
        """Explain all rows of a dataset, part by part, into a folder, as `Explainer.explain_dataset` does.

        The options are the same. With "full" values parts keep the rows; neither kind has v(S). `fallback` is that of
        `explain`.
        """
        from condshap.bulk.maker import Maker
        from condshap.bulk.running import explain_dataset

        chosen = RunOptions(**known_options(FastExplainer.explain_dataset, options))
        check_choice("fallback", fallback, (None, "exact"))
        facts = {
            "approach": self.explainer.approach if isinstance(self.explainer.approach, str) else "several",
            "made_by": digest_of_maker(self.game),
            "amortised": self.learned.digest,
            "fallback": fallback,
        }
        explain = partial(self._quiet().explain, fallback=fallback)
        maker = Maker(explain, self.game.schema, facts, _ROWS_PER_PART, self.explainer.progress)
        return explain_dataset(maker, source, out, chosen)

    def _quiet(self) -> FastExplainer:
        """The same without bars and warnings of its own, which a run of many parts does not want."""
        quiet = copy(self.explainer)
        quiet.progress, quiet.n_jobs = False, 1
        return replace(self, explainer=quiet)

    def save(self, path: str | Path) -> None:
        """Save networks and explainer to one file, without the model and without pickle; `load_explainer` reads it."""
        from condshap.storage.explainers import save_fast_explainer

        save_fast_explainer(self, as_path(path))

    def to_state(self) -> State:
        """What the network has learned, and what identifies the explainer that it learned from."""
        made_by = digest_of_maker(self.game)
        state = State({"known_outputs": self.known_outputs}, {"made_by": made_by})
        return state.joined(self.learned.to_state().named("learned"))

    @classmethod
    def from_state(cls, explainer: Explainer, game: Game, state: State) -> FastExplainer:
        """Inverse of `to_state`; refuses a model with other predictions."""
        fast = cls(explainer, Learned.from_state(state.part("learned")), game, state.arrays["known_outputs"])
        fast._check_model(game.predictor(game.example_rows.copy()))
        if digest_of_maker(game) != state.facts["made_by"]:
            raise ValueError("the explainer in it is not the one that taught the network")
        return fast

    def _predict(self, rows: Rows) -> Outputs:
        """Predictions (n, O), after a look at whether the model is still the one whose values were learned."""
        game, settings = self.game, settings_of(self.explainer)
        asked = np.concatenate([game.example_rows, rows])
        outputs = predict_rows(game.predictor, game.parts, asked, settings, seed=game.seed)
        known, own = outputs[: len(self.known_outputs)], outputs[len(self.known_outputs) :]
        self._check_model(known)
        check_scale(own, game.base_value)
        check_probabilities(game.link, own, what="rows")
        return own

    def _check_model(self, outputs: Outputs) -> None:
        apart, scale = np.abs(outputs - self.known_outputs).max(), np.abs(self.known_outputs).max()
        if not apart <= _CLEARLY * scale:
            raise ModelError(
                "the model must be the one whose Shapley values the network has learned, but its predictions for "
                f"{len(outputs)} training rows differ by up to {apart:.3g}, where the largest is {scale:.3g}. "
                "Pass the original model, or fit and amortise again."
            )

    def _explain_exactly(self, rows: Rows, outputs: Outputs) -> tuple[Floats, Floats]:
        """Values and standard errors (n, P, O) of rows as the explainer gives them."""
        shape = (len(rows), len(self.game.players), outputs.shape[1])
        if not len(rows):
            return np.empty(shape), np.empty(shape)
        teacher = teacher_of(self.explainer, self.game)
        found = teacher.explain(rows, outputs)
        return by_output(found), found.std_errors.reshape(shape)

    def _assemble(
        self, X: Table, values: Floats, errors: Floats, outputs: Outputs, is_unlike: Masks, about: Provenance
    ) -> Explanation:
        game, squeeze = self.game, values.shape[2] == 1

        def shaped(array: Floats) -> Floats:
            return np.ascontiguousarray(array[..., 0] if squeeze else array)

        base = np.broadcast_to(linked(game.link, game.base_value), outputs.shape)
        return Explanation(
            values=shaped(values),
            base_values=shaped(base),
            predictions=shaped(outputs),
            std_errors=shaped(errors),
            value_table=None,  # type: ignore[arg-type]
            data=snapshot(X),
            feature_names=game.schema.names,
            player_names=game.players.names,
            output_names=game.predictor.output_names,
            membership=tuple(tuple(np.flatnonzero(row).tolist()) for row in game.players.membership),
            provenance=about,
            unlike_pool=is_unlike,
        )


def teacher_of(explainer: Explainer, game: Game) -> Teacher:
    """How an explainer is asked."""
    return Teacher(game, settings_of(explainer), explainer.tolerance if explainer.n_coalitions == "auto" else None)


def amortise(explainer: Explainer, game: Game, X_pool: Table, given: tuple[Any, Any, Any, Any]) -> FastExplainer:
    """Teach a network; `given` are budget, target, calibration_rows and seed of `Explainer.amortise`."""
    options = Options.of(*given)
    learned = learn_pool(teacher_of(explainer, game), encode_rows(game, X_pool), options)
    return FastExplainer(explainer, learned, game, game.predictor(game.example_rows.copy()))


def _announce_unlike(X: Table, is_unlike: Masks) -> None:
    """Warn of rows that are unlike the pool."""
    if is_unlike.any():
        rows = np.flatnonzero(is_unlike).tolist()
        announce(
            f"{len(rows)} of {len(is_unlike)} rows are unlike the pool, at positions {listing(rows)}: they lie further from "
            f"it than held-out rows do.{in_index(X, rows)} The network extrapolates there, and its errors may be too small. "
            "explanation.unlike_pool marks these rows; fallback='exact' explains them with the explainer itself.",
        )


spell_out(FastExplainer.explain_dataset, RunOptions)
