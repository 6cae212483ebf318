"""Training rows, options -> Game: first whatever can be refused, then training, then a look at what was learned."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from condshap.approaches.base import (
    check_approach_options,
    check_missing,
    check_supported,
    check_training_rows,
    fit_approach,
    is_sampler,
)
from condshap.coalitions import CoalitionPlan, Players, make_plan
from condshap.coalitions.nested import beginning, learning_pairs, nested_plan
from condshap.coalitions.ordering import Ordering, chain_of, drawing_plan, ordered_plan
from condshap.draw_check import DrawCheck
from condshap.draw_check.checking import announce_departures, check_draws
from condshap.exceptions import CoalitionError, CondShapWarning, OptionError
from condshap.game import Game, Setup
from condshap.models.additive_proof import TrainingProof
from condshap.models.predictor import Predictor
from condshap.models.read_additive import find_knots, kind_of_reading, read_function
from condshap.numerics.chains import Chain
from condshap.options import (
    check_choice,
    check_coalitions,
    check_device,
    check_integer,
    check_jobs,
    check_target,
    parse_memory,
)
from condshap.precision.sample_sizes import share_samples
from condshap.precision.target_error import choose_samples
from condshap.runtime.announcing import level_of_user
from condshap.runtime.compiling import show_compiling
from condshap.runtime.devices import find_accelerator
from condshap.runtime.progress import progress_line
from condshap.schema import FeatureSchema, suggest_categorical
from condshap.seeding import column_sizes
from condshap.storage.digests import digest_of_fit
from condshap.types import Indices, Outputs, Rows, Table
from condshap.values.assignments import Part, learning_rows, make_parts
from condshap.values.engine import ValueEngine
from condshap.values.interventions import check_intervenes, intervene
from condshap.values.links import check_link, check_training
from condshap.values.null_players import find_constants, find_unread
from condshap.values.outcomes import without_model
from condshap.values.predictions import check_scale, given_base, predict_early, predict_rows, without_gaps
from condshap.values.table import Settings
from condshap.values.valuation import aim_of, answering, error_factors
from condshap.views.rows import with_labels

if TYPE_CHECKING:
    from condshap.explainer import Explainer

Result = TypeVar("Result")
_FEW_ROWS = 50


@dataclass(frozen=True, eq=False)
class Prepared:
    """A fit up to training: everything that can be refused has been.

    Attributes
    ----------
    rows : (N, M) encoded training rows
    outputs : (N, O) predictions for them, NaN where gaps are yet to be filled; or (1, O) a base value that was given
    warnings, seconds : what was said so far, and how long it took
    """

    setup: Setup
    rows: Rows
    outputs: Outputs
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0


def prepare(
    explainer: Explainer, X: Table, categorical: Iterable[str | int] | None, encoded: Rows | None = None
) -> Prepared:
    """Do all of a fit that comes before training.

    `encoded` (N, M) are the rows of `X` if another explainer has encoded them already.
    """
    with with_labels(X):
        prepared, said, seconds = record(lambda: _prepare(explainer, X, categorical, encoded))
    return replace(prepared, warnings=said, seconds=seconds)


def learn(explainer: Explainer, prepared: Prepared) -> Game:
    """Do the rest of a fit: train, and look at what was learned."""
    game, said, seconds = record(lambda: _train(explainer, prepared))
    return replace(game, warnings=(*prepared.warnings, *said), seconds=prepared.seconds + seconds)


def record(work: Callable[[], Result]) -> tuple[Result, tuple[str, ...], float]:
    """Do a part of a fit, with what was said and how long it took; warnings go to the caller of `fit` as well."""
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = work()
    seconds = time.perf_counter() - start
    for w in caught:
        warnings.warn(w.message, w.category, stacklevel=level_of_user())
    return result, tuple(str(w.message) for w in caught), seconds


def _prepare(explainer: Explainer, X: Table, categorical: Iterable[str | int] | None, encoded: Rows | None) -> Prepared:
    check_options(explainer)
    schema = FeatureSchema.learn(X, () if categorical is None else categorical)
    rows = schema.encode(X) if encoded is None else encoded
    if categorical is None and encoded is None:
        suggest_categorical(schema, rows)
    _check_training(rows, schema)
    players = Players.of(schema.names, explainer.groups)
    ordering = read_ordering(explainer, players)
    plan, pairs = _make_plan(explainer, len(players), ordering)
    usual = _learning_plan(plan, pairs)
    parts = make_parts(explainer.approach, plan)
    chain = chain_of(ordering, players)
    if chain is not None:
        check_intervenes(parts)
    for part in parts:
        check_supported(part.approach, schema)
        check_missing(part.approach, rows, schema, what="training rows")
        check_approach_options(part.approach, rows, schema, plan=_of_features(usual, players, chain))
    examples = without_gaps(rows)
    settings = settings_of(explainer)
    predictor = _find_predictor(explainer, schema, rows, examples)
    knots = find_knots(predictor, schema, rows, explainer.additive)
    proof = TrainingProof(lambda some: predict_early(predictor, some, settings), rows, examples)
    function = read_function(predictor, schema, examples, explainer.additive, knots, proof)

    def samples(asked: Sequence[Part]) -> Indices:
        _check_sampling(explainer, asked)
        return share_samples(asked, plan, usual, explainer.n_samples, len(rows))

    asked = intervene(parts, chain, is_fitted=False)
    setup = Setup(
        schema=schema,
        players=players,
        plan=plan,
        pairs=pairs,
        masks=players.feature_masks(plan.masks),
        parts=parts,
        predictor=predictor,
        example_rows=examples,
        function=function,
        reading=kind_of_reading(function),
        knots=knots,
        read_limit=None if function is None else proof.limit,
        n_samples=samples(without_model(asked, function)),
        asked_samples=samples(asked),
        ordering=ordering,
        seed=int(explainer.seed),
        target_error=explainer.target_error,
        is_base_given=explainer.base_value is not None,
        link=explainer.link,
    )
    if setup.is_base_given:
        base = given_base(explainer.base_value, len(predictor.output_names))[None]
        check_training(setup.link, base)
        return Prepared(setup, rows, base)
    is_known = function is not None and proof.covers_all
    outputs = proof.predictions if is_known else predict_early(predictor, rows, settings)
    check_scale(outputs)
    check_training(setup.link, outputs)
    return Prepared(setup, rows, outputs)


def _train(explainer: Explainer, prepared: Prepared) -> Game:
    setup, rows = prepared.setup, prepared.rows
    learned = learning_rows(setup.parts, rows, setup.schema, seed=setup.seed)
    some = rows if learned is None else rows[learned]
    parts = fit_parts(explainer, setup, setup.parts, some, setup.seed)
    outputs, settings = prepared.outputs, settings_of(explainer)
    if not setup.is_base_given:
        outputs = predict_rows(setup.predictor, parts, rows, settings, seed=setup.seed, known=outputs)
    base_value = np.asarray(outputs.mean(axis=0))
    known = {field.name: getattr(setup, field.name) for field in fields(setup)} | {"parts": parts}
    game = Game(
        **known,
        base_value=base_value,
        error_factors=np.ones((len(setup.masks), len(base_value))),
        constants=find_constants(rows),
        unread=find_unread(setup.predictor, setup.schema, setup.function, parts, setup.chain),
        draw_check=_check_draws(explainer, setup, parts, some),
        training_rows=some,
        n_learned=None if learned is None else len(some),
        made_by="",
        warnings=(),
        seconds=0.0,
    )
    game = replace(game, error_factors=error_factors(game, rows, settings))
    if game.target_error is not None:
        game = replace(game, n_samples=_samples_for_target(game, rows, settings))
        game = replace(game, error_factors=error_factors(game, rows, settings))
    return replace(game, made_by=digest_of_fit(game, rows, prepared.outputs, n_samples=explainer.n_samples))


def fit_parts(explainer: Explainer, setup: Setup, parts: Sequence[Part], rows: Rows, seed: int) -> tuple[Part, ...]:
    """Fit the approaches to training rows (N, M); what they leave open, the explainer decides."""
    plan = _of_features(_learning_plan(setup.plan, setup.pairs), setup.players, setup.chain)
    for part in parts:
        for option in part.can.leaves_open:
            if getattr(part.approach, option) == "auto":
                setattr(part.approach, option, getattr(explainer, option))
        with progress_line("training", show=settings_of(explainer).progress):
            fit_approach(part.approach, rows, setup.schema, plan=plan, seed=seed, predict=setup.predictor)
    return tuple(parts)


def refit(explainer: Explainer, game: Game, rows: Rows, *, seed: int) -> Game:
    """Copy of a game, its approaches fitted to other encoded rows (n, M) with another seed; coalitions and model stay."""
    settings = replace(settings_of(explainer), progress=False)
    parts = fit_parts(explainer, game, make_parts(explainer.approach, game.plan), rows, seed)
    other = replace(game, parts=parts, seed=seed)
    if not game.is_base_given:
        outputs = predict_rows(game.predictor, parts, rows, settings, seed=seed)
        other = replace(other, base_value=np.asarray(outputs.mean(axis=0)))
    return replace(other, error_factors=error_factors(other, rows, settings))


def settings_of(explainer: Explainer) -> Settings:
    """How to compute, by the options of an explainer."""
    progress = None if explainer.progress == "auto" else bool(explainer.progress)
    show_compiling(progress)
    memory, n_jobs = parse_memory(explainer.memory_budget), check_jobs(explainer.n_jobs)
    return Settings(memory, n_jobs, progress, find_accelerator(explainer.device))


def check_options(explainer: Explainer) -> None:
    """Refuse options outside their range."""
    check_integer("seed", explainer.seed, least=0)
    check_jobs(explainer.n_jobs)
    parse_memory(explainer.memory_budget)
    check_device(explainer.device)
    check_choice("progress", explainer.progress, ("auto", True, False))
    check_choice("fast_trees", explainer.fast_trees, (True, False))
    check_choice("additive", explainer.additive, ("auto", True, False))
    check_choice("check_draws", explainer.check_draws, (True, False))
    n_samples, n_coalitions, coalitions = explainer.n_samples, explainer.n_coalitions, explainer.coalitions
    if n_samples is not None:
        check_integer("n_samples", n_samples, least=1, most=2**31 - 1)
    if explainer.target_error is not None:
        check_target(explainer.target_error, n_samples, n_coalitions)
    check_coalitions(n_coalitions, explainer.tolerance, explainer.max_coalitions)
    check_link(explainer.link, explainer.model, n_samples=n_samples, target_error=explainer.target_error)
    if n_coalitions == "auto" and n_samples == 1:
        raise OptionError(
            "n_samples must be at least 2 with n_coalitions='auto', which relies on standard errors, got 1. A single "
            "sample has none. Raise n_samples, or leave it out."
        )
    if coalitions is not None and not isinstance(coalitions, CoalitionPlan):
        raise OptionError(
            f"coalitions must be a CoalitionPlan, got {type(coalitions).__name__}. Make one with CoalitionPlan.given."
        )
    if coalitions is not None and n_coalitions is not None:
        raise OptionError("n_coalitions and coalitions cannot be combined, got both. Leave n_coalitions out.")


def read_ordering(explainer: Explainer, players: Players) -> Ordering | None:
    """Read the causal order of an explainer, or refuse it together with its other options."""
    ordering = Ordering.of(players, explainer.causal_ordering, explainer.confounding, explainer.asymmetric)
    if ordering is not None and ordering.is_asymmetric:
        for name, is_given in (
            ("coalitions", explainer.coalitions is not None),
            ("n_coalitions='auto'", explainer.n_coalitions == "auto"),
        ):
            if is_given:
                raise OptionError(
                    f"asymmetric=True cannot be combined with {name}: only coalitions that respect causal_ordering count, "
                    "and they lack the complements that errors are judged by. Leave it out, or set n_coalitions to a number."
                )
    if ordering is not None and ordering.changes_nothing:
        warnings.warn(
            "causal_ordering changes nothing without confounding or asymmetric=True. Set confounding=False for causal "
            "values without hidden causes, or leave causal_ordering out.",
            CondShapWarning,
            stacklevel=2,
        )
    return ordering


def _check_training(rows: Rows, schema: FeatureSchema) -> None:
    check_training_rows(rows, schema)
    if len(rows) < _FEW_ROWS:
        warnings.warn(
            f"there should be at least {_FEW_ROWS} training rows, got {len(rows)}. With so few, how features depend on "
            "each other is little more than a guess, and standard errors do not show that. Pass more rows if you can.",
            CondShapWarning,
            stacklevel=2,
        )


def _make_plan(explainer: Explainer, n_players: int, ordering: Ordering | None) -> tuple[CoalitionPlan, Indices]:
    """Coalitions that may be used, and for ``n_coalitions="auto"`` the order (n, 2) in which pairs of them are."""
    no_order = np.zeros((0, 2), dtype=np.intp)
    if ordering is not None and ordering.is_asymmetric:
        assert not isinstance(explainer.n_coalitions, str)
        return ordered_plan(ordering, explainer.n_coalitions, seed=explainer.seed), no_order
    if explainer.coalitions is not None:
        if explainer.coalitions.n_players != n_players:
            raise CoalitionError(
                f"coalitions must be for {n_players} players, got coalitions for {explainer.coalitions.n_players}. Make "
                "them with one column per feature, or per group if there are groups."
            )
        return explainer.coalitions, no_order
    if explainer.n_coalitions == "auto":
        return nested_plan(n_players, explainer.max_coalitions, seed=explainer.seed)
    assert not isinstance(explainer.n_coalitions, str)
    return make_plan(n_players, explainer.n_coalitions, seed=explainer.seed), no_order


def _learning_plan(plan: CoalitionPlan, pairs: Indices) -> CoalitionPlan:
    """Coalitions to learn with: with "auto" a usual number of those that may be asked for."""
    if not len(pairs):
        return plan
    return beginning(plan, pairs, learning_pairs(plan.n_players, len(pairs)))[0]


def _of_features(plan: CoalitionPlan, players: Players, chain: Chain | None) -> CoalitionPlan:
    """What approaches are asked for: coalitions of features, not of groups, or single steps of a causal chain."""
    own = replace(plan, masks=players.feature_masks(plan.masks), components=())
    return own if chain is None else drawing_plan(chain, own)


def _find_predictor(explainer: Explainer, schema: FeatureSchema, rows: Rows, examples: Rows) -> Predictor:
    predictor = Predictor.of(
        explainer.model,
        schema,
        examples,
        explainer.output,
        fast_trees=explainer.fast_trees,
        device=find_accelerator(explainer.device),
    )
    return replace(predictor, units=column_sizes(rows, np.array([f.levels is not None for f in schema.features])))


def _check_sampling(explainer: Explainer, parts: Sequence[Part]) -> None:
    """Refuse options of sampling where no approach samples."""
    given: dict[str, Any] = {"n_samples": explainer.n_samples, "target_error": explainer.target_error}
    for option, value in given.items():
        if value is not None and not any(is_sampler(part.approach) for part in parts):
            raise OptionError(
                f"approach '{parts[0].approach.name}' uses no samples, so {option} must be None, got {value}. Leave it "
                "out."
            )


def _check_draws(explainer: Explainer, setup: Setup, parts: Sequence[Part], rows: Rows) -> DrawCheck | None:
    """Compare training rows (N, M) with draws, and warn if they do not look alike."""
    if not explainer.check_draws:
        return None
    plan, masks = setup.plan, setup.masks
    if setup.chain is not None:
        plan = _of_features(plan, setup.players, setup.chain)
        masks, every = plan.masks, np.arange(len(plan.masks))[plan.interior]
        parts = [replace(part, positions=every) for part in parts]
    found = check_draws(parts, rows, setup.schema, plan, masks, seed=setup.seed)
    announce_departures(found, parts)
    return found


def _samples_for_target(game: Game, rows: Rows, settings: Settings) -> Indices:
    """Samples per coalition (C,) with which a typical training row of (N, M) reaches `target_error`."""
    parts, aim = answering(game, game.parts, game.function), aim_of(game, game.error_factors)
    return choose_samples(
        parts, ValueEngine(game.predictor, replace(settings, progress=False)), rows, game.masks, aim, seed=game.seed
    )
