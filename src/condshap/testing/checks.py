"""Case -> AssertionError if an approach breaks a promise: one function per promise."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from condshap.approaches.base import (
    State,
    capabilities_of,
    check_missing,
    check_supported,
    is_sampler,
    restore_approach,
)
from condshap.exceptions import SchemaError
from condshap.numerics.additive import AffineFunction
from condshap.numerics.chains import Chain
from condshap.numerics.curves import Curve, CurvedFunction
from condshap.schema import FeatureSchema, Kind
from condshap.seeding import row_keys
from condshap.testing.cases import N_SAMPLES, Case, cases, example_table, fresh_copy, interior, outputs
from condshap.types import Floats, Indices, Masks
from condshap.values.assignments import Part
from condshap.values.interventions import intervene

Check = Callable[[Case], None]


def check_approach(approach: Any) -> None:
    """Run all checks on all kinds of table that the approach supports.

    >>> from condshap.approaches import Gaussian
    >>> check_approach(Gaussian())
    """
    for case in cases(approach):
        for name, check in approach_checks():
            try:
                check(case)
            except AssertionError as error:
                raise AssertionError(
                    f"approach '{approach.name}' breaks the promise '{name}' on {case.kind} features: {error}"
                ) from error
            except Exception as error:
                raise AssertionError(
                    f"approach '{approach.name}' breaks the promise '{name}' on {case.kind} features: it raised "
                    f"{type(error).__name__} on a table of {len(case.train)} rows: {error}"
                ) from error


def approach_checks() -> Iterator[tuple[str, Check]]:
    """All checks with their names, in order."""
    for name, check in list(globals().items()):
        if name.startswith("check_") and getattr(check, "is_contract", False):
            yield name.removeprefix("check_").replace("_", " "), check


def contract(check: Check) -> Check:
    """Mark a function as part of the contract."""
    check.is_contract = True  # type: ignore[attr-defined]
    return check


@contract
def check_says_who_it_is(case: Case) -> None:
    """Name, supported kinds and whether missing values are handled are class attributes."""
    approach = case.approach
    assert isinstance(approach.name, str), f"name must be a text, got {approach.name!r}"
    assert approach.name, "name must not be empty"
    assert set(approach.supports) <= set(Kind), f"supports must be a set of Kind, got {approach.supports!r}"
    assert isinstance(approach.handles_missing, bool), "handles_missing must be True or False"


@contract
def check_can_do_what_it_declares(case: Case) -> None:
    """Every capability that is declared has its method, and every such method is declared."""
    approach = case.approach
    can = capabilities_of(approach)
    methods = {
        "sample": can.samples,
        "estimate": not can.samples,
        "sample_on": can.draws_on_device,
        "along": can.follows_chains,
        "sample_each": can.draws_each,
        "sample_start": can.starts_chains,
        "expect": can.expects,
        "estimate_members": can.has_members,
        "to_state": can.is_storable,
        "from_state": can.is_storable,
        "check_options": can.checks_options,
    }
    lacking = [name for name, declared in methods.items() if declared and not hasattr(approach, name)]
    silent = [name for name, declared in methods.items() if not declared and hasattr(approach, name)]
    assert not lacking, f"capabilities declare {lacking}, which are not there"
    assert not silent, f"capabilities must declare {silent}, which are there"
    assert can.expects or not can.expects_exactly, "expects_exactly needs expects"


@contract
def check_fit_returns_the_approach_itself(case: Case) -> None:
    """``fit`` returns self, so that calls can be chained."""
    fresh = fresh_copy(case.approach)
    assert case.fit(fresh) is fresh, "fit must return self"


@contract
def check_fit_and_sample_leave_their_inputs_alone(case: Case) -> None:
    """Arrays that come in are not written to."""
    train, rows, masks = case.train.copy(), case.rows.copy(), interior(case).copy()
    case.answer(case.fitted(), case.rows, masks)
    assert np.array_equal(train, case.train, equal_nan=True), "fit must not change the training rows"
    assert np.array_equal(rows, case.rows, equal_nan=True), "the rows to explain must not be changed"
    assert np.array_equal(masks, interior(case)), "the masks must not be changed"


@contract
def check_answers_for_every_coalition_and_row(case: Case) -> None:
    """The result is the full cross product of coalitions and rows, in float64."""
    masks = interior(case)
    answer = case.answer(case.fitted(), case.rows, masks)
    assert answer.shape[:2] == (len(masks), len(case.rows)), f"got shape {answer.shape}"
    assert answer.dtype == np.float64, f"must be float64, got {answer.dtype}"
    if not case.approach.handles_missing:
        assert np.isfinite(answer).all(), "must be finite"


@contract
def check_known_columns_stay_as_they_are(case: Case) -> None:
    """A sample has the explained row's own values in the known columns."""
    fitted = case.fitted()
    if not is_sampler(fitted):
        return
    masks = interior(case)
    answer = case.answer(fitted, case.rows, masks)
    samples = answer[..., :-1]
    known = masks[:, None, None, :] & (answer[..., -1:] != 0)
    wanted = np.broadcast_to(case.rows[None, :, None, :], samples.shape)
    is_same = (samples == wanted) | np.isnan(wanted)  # a missing known value may stay missing or be imputed
    assert is_same[known].all(), "known columns must be unchanged"


@contract
def check_knows_its_error_if_it_says_so(case: Case) -> None:
    """Samples have an error factor where ``knows_error`` is declared: nothing measures it then."""
    fitted, masks = case.fitted(), interior(case)
    if capabilities_of(fitted).samples and capabilities_of(fitted).knows_error:
        samples = fitted.sample(case.rows, masks, N_SAMPLES, keys=row_keys(case.rows), seed=0)
        assert samples.error_factor is not None, "samples must have an error factor, because knows_error is declared"


@contract
def check_expects_what_it_knows(case: Case) -> None:
    """What is expected of an additive function of known features is its value, if the approach offers ``expect``."""
    fitted, masks = case.fitted(), interior(case)
    can = capabilities_of(fitted)
    if not can.expects or np.isnan(case.train).any():
        return  # what donors with gaps would make of a function is not asked: many models refuse gaps
    rows, keys = case.rows, row_keys(case.rows)
    n_expected = 1 if can.expects_exactly else N_SAMPLES
    for c, mask in enumerate(masks):
        for function in (_line_of(case, mask), _curves_of(case, mask)):
            found = fitted.expect(rows, masks[c : c + 1], N_SAMPLES, function=function, keys=keys, seed=0)
            assert found.values.shape == (1, len(rows), n_expected, 1), f"got shape {found.values.shape}"
            assert _close(found.values[0], np.repeat(function(rows)[:, None], n_expected, axis=1)), "must be its value"


def _line_of(case: Case, mask: Masks) -> AffineFunction:
    """Every number itself, a sine of every level, for features in the mask (M,); 0 for the others."""
    slopes = [[float(known and f.levels is None)] for known, f in zip(mask, case.schema.features, strict=True)]
    return AffineFunction(np.ones(1), np.array(slopes), _levels_of(case, mask))


def _curves_of(case: Case, mask: Masks) -> CurvedFunction:
    """A step and a square of every number, a sine of every level, for features in the mask (M,); 0 for the others."""

    def beyond(features: Indices, values: Floats) -> Floats:
        return np.where(mask[features] & (values > 0), 1.0, 0.0)[:, None]

    curves: list[Curve | None] = []
    for j, feature in enumerate(case.schema.features):
        both = np.concatenate([case.train[:, j], case.rows[:, j]])
        low, high = both.min() - 1.0, both.max() + 1.0
        pieces = np.array([[[0.0, 1.0, 0.0, 0.0]], [[0.0, 1.0, 0.0, 3.0]]]) * mask[j]
        edges = np.array([low, (low + high) / 2, high])
        curves.append(Curve.of(edges, pieces) if feature.levels is None else None)
    missing = np.zeros((len(mask), 1))
    return CurvedFunction(np.ones(1), tuple(curves), _levels_of(case, mask), missing, beyond, np.zeros(1))


def _levels_of(case: Case, mask: Masks) -> tuple[Floats | None, ...]:
    """Terms (L, 1) of the levels of features in the mask (M,), zeros for other features, None for numbers."""
    return tuple(
        None if f.levels is None else np.sin(1.0 + np.arange(len(f.levels)))[:, None] * known
        for known, f in zip(mask, case.schema.features, strict=True)
    )


@contract
def check_levels_are_levels(case: Case) -> None:
    """Categorical columns hold codes of existing levels."""
    fitted = case.fitted()
    if not is_sampler(fitted):
        return
    samples = case.answer(fitted, case.rows, interior(case))[..., :-1]
    for j, feature in enumerate(case.schema.features):
        if feature.levels is not None:
            codes = samples[..., j]
            codes = codes[~np.isnan(codes)]
            assert np.isin(codes, np.arange(len(feature.levels))).all(), f"column '{feature.name}' has unknown codes"


@contract
def check_weights_can_be_normalised(case: Case) -> None:
    """Weights are not negative and do not all vanish."""
    fitted = case.fitted()
    if not is_sampler(fitted):
        return
    weights = case.answer(fitted, case.rows, interior(case))[..., -1]
    assert (weights >= 0).all(), "weights must not be negative"
    assert (weights.sum(axis=2) > 0).all(), "some weight must be positive for every coalition and row"


@contract
def check_same_seed_same_answer(case: Case) -> None:
    """Fitting and asking again gives the same numbers."""
    first, second = (case.answer(case.fitted(), case.rows, interior(case)) for _ in range(2))
    assert _same(first, second), "the same seed must give the same numbers"


@contract
def check_other_rows_and_coalitions_do_not_matter(case: Case) -> None:
    """Rows and coalitions asked for one by one, in any order, get the same numbers, to the last bit.

    That is what an approach computes by itself. Predictions of a model may be rounded by their batch; the one that is used
    here rounds every row by itself.
    """
    fitted, masks = case.fitted(), interior(case)
    together = case.answer(fitted, case.rows, masks)
    order = np.random.default_rng(3).permutation(len(case.rows))
    shuffled = case.answer(fitted, case.rows[order], masks[::-1])[::-1]
    assert _same(together[:, order], shuffled), "the order of rows and coalitions must not matter, to the last bit"
    for i in range(len(case.rows)):
        alone = case.answer(fitted, case.rows[i : i + 1], masks[i % len(masks)][None])
        assert _same(together[i % len(masks), i], alone[0, 0]), "a row alone must get the same numbers, to the last bit"


@contract
def check_draws_on_a_device_are_the_same(case: Case) -> None:
    """An approach that draws on a device draws there what it draws elsewhere; tried on the CPU as one."""
    fitted, masks = case.fitted(), interior(case)
    if not capabilities_of(fitted).draws_on_device:
        return
    asked: dict[str, Any] = {"keys": row_keys(case.rows), "seed": 0}
    here = fitted.sample(case.rows, masks, N_SAMPLES, **asked)
    there = fitted.sample_on(case.rows, masks, N_SAMPLES, **asked, device="cpu")
    assert _close(there.rows.numpy(), here.rows), "sample_on must draw what sample draws"
    weights = None if there.weights is None else np.broadcast_to(there.weights.numpy(), here.rows.shape[:3])
    assert (weights is None) == (here.weights is None), "sample_on must weigh draws as sample does"
    assert weights is None or _close(weights, here.weights), "sample_on must weigh draws as sample does"


@contract
def check_draws_along_a_causal_chain(case: Case) -> None:
    """Drawn one component after the other, known columns stay, no gap appears, and other rows do not matter."""
    fitted, masks = case.fitted(), interior(case)
    can = capabilities_of(fitted)
    if not can.samples or can.asks_model_to_sample:
        return
    half = np.arange(masks.shape[1]) < masks.shape[1] // 2
    chain = Chain(np.array([half, ~half]), (True, False))
    (part,) = intervene([Part(fitted, np.arange(len(masks)))], chain)

    def draw(rows: Floats, some: Masks) -> Floats:
        found = part.approach.sample(rows, some, N_SAMPLES, keys=row_keys(rows), seed=0)
        return np.asarray(found.rows)

    together = draw(case.rows, masks)
    assert together.shape == (len(masks), len(case.rows), N_SAMPLES, masks.shape[1]), f"got shape {together.shape}"
    for mask, drawn in zip(masks, together, strict=True):
        assert _same(drawn[..., mask], np.repeat(case.rows[:, None, mask], N_SAMPLES, axis=1)), (
            "known columns must stay"
        )
    is_complete = not np.isnan(case.train).any()
    assert not is_complete or np.isfinite(together).all(), "complete rows must give complete draws"
    alone = draw(case.rows[1:2], masks[-1:])
    assert _same(together[-1:, 1:2], alone), "a row alone must get the same draws, to the last bit"


@contract
def check_a_pickled_copy_answers_the_same(case: Case) -> None:
    """A fitted approach pickles, before it has answered anything and after."""
    fitted = case.fitted()
    before = pickle.dumps(fitted)
    answer = case.answer(fitted, case.rows, interior(case))
    pickle.dumps(fitted)
    restored = pickle.loads(before)  # noqa: S301 - our own bytes, written three lines above
    assert _same(answer, case.answer(restored, case.rows, interior(case))), "a pickled copy must answer the same"


@contract
def check_a_stored_copy_answers_the_same(case: Case) -> None:
    """Arrays and facts are enough to make a fitted approach again, if it offers ``to_state``; bit for bit."""
    fitted = case.fitted()
    if not capabilities_of(fitted).is_storable:
        return
    state = fitted.to_state()
    kinds = {name: np.asarray(array).dtype.kind for name, array in state.arrays.items()}
    assert set(kinds.values()) <= set("biuf"), f"arrays must hold booleans, integers or floats, got {kinds}"
    copied = State({name: array.copy() for name, array in state.arrays.items()}, json.loads(json.dumps(state.facts)))
    restored = restore_approach(type(fitted), copied, predict=outputs)
    ours, theirs = (case.answer(one, case.rows, interior(case)) for one in (fitted, restored))
    assert _same(ours, theirs), "a stored copy must answer the same"


@contract
def check_threads_may_share_it(case: Case) -> None:
    """Several threads asking the same fitted approach get the same numbers as one."""
    fitted, masks = case.fitted(), interior(case)
    alone = case.answer(fitted, case.rows, masks)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: case.answer(fitted, case.rows, masks), range(4)))
    assert all(_same(alone, answer) for answer in answers), "threads must not disturb each other"


@contract
def check_keeps_the_estimator_law(case: Case) -> None:
    """Parameters can be read and the approach cloned and shown, if it is a scikit-learn estimator."""
    if isinstance(case.approach, BaseEstimator):
        params = case.approach.get_params()
        assert repr(clone(case.approach).get_params()) == repr(params), "clone must keep the parameters"
        assert type(case.approach).__name__ in repr(case.approach), "repr must name the class"


@contract
def check_refuses_what_it_cannot_do(case: Case) -> None:
    """Features of other kinds, and missing values where they are not handled, are refused by name."""
    table = example_table(20)
    for kind, columns in ((Kind.CONTINUOUS, ["a", "b"]), (Kind.CATEGORICAL, ["d", "f"])):
        schema = FeatureSchema.learn(table[columns])
        if kind not in case.approach.supports:
            _must_refuse(lambda schema=schema: check_supported(case.approach, schema), columns[0])  # type: ignore[misc]
    if not case.approach.handles_missing:
        rows = case.rows.copy()
        rows[0, 0] = np.nan
        _must_refuse(lambda: check_missing(case.approach, rows, case.schema, what="rows"), case.schema.names[0])


def _must_refuse(call: Callable[[], None], name: str) -> None:
    message = ""
    try:
        call()
    except SchemaError as error:
        message = str(error)
    assert name in message, f"must be refused with a SchemaError that names column '{name}'"


def _same(a: Floats, b: Floats) -> bool:
    return bool(np.array_equal(a, b, equal_nan=True))


def _close(a: Floats, b: Floats) -> bool:
    return bool(np.allclose(a, b, rtol=1e-12, atol=1e-12, equal_nan=True))
