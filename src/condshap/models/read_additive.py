"""Additive model -> the same function as plain numbers, so that samples need no call of the model.

For f(x) = c + sum_j g_j(x_j) the contribution function is v(S) = c + sum_S g_j(x_j) + sum_others E[g_j(X_j) | x_S]: of the
conditional distribution only the margins matter. Where g_j is linear, or a number per level, means and probabilities are
all that is needed. Other g_j are read as curves.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from condshap.exceptions import ModelError, OptionError
from condshap.models.additive_proof import rounding_distance, rounding_limit
from condshap.models.predictor import Predictor
from condshap.models.recognise import is_certainly_additive, is_certainly_linear, traced_columns
from condshap.models.tree_steps import read_steps
from condshap.numerics.additive import AdditiveFunction, AffineFunction
from condshap.numerics.curves import Asks, Curve, CurvedFunction, TooRoughError, read_curves
from condshap.schema import FeatureSchema
from condshap.seeding import generator
from condshap.types import Floats, Indices, Masks, Rows

_TRIALS = 64
_CURVE_TOLERANCE, _CURVE_ROUNDING = 1e-11, 4  # of the spread of the predictions, and in units of the largest one
_CELLS, _OUTER_CELLS = 64, 8  # first cells of a curve between the training values, and beyond them on either side
_ASKED = 2**15  # predictions per feature that reading curves may take


def find_knots(predictor: Predictor, schema: FeatureSchema, rows: Rows, additive: bool | str) -> Floats | None:
    """Evenly spaced quantiles (65, M) of training rows (N, M), if the model is to be read as curves; else None."""
    wanted = additive is True or (
        additive == "auto" and not is_certainly_linear(predictor, schema) and is_certainly_additive(predictor, schema)
    )
    if not wanted or np.isnan(rows).all(axis=0).any():
        return None
    return np.asarray(np.nanquantile(rows, np.linspace(0, 1, _CELLS + 1), axis=0, method="inverted_cdf"))


def read_function(
    predictor: Predictor,
    schema: FeatureSchema,
    rows: Rows,
    additive: bool | str,
    knots: Floats | None,
    proof: Callable[[AdditiveFunction], bool],
) -> AdditiveFunction | None:
    """Read an additive model by its own predictions, and prove the reading on trial rows.

    Parameters
    ----------
    rows : (n, M) a few training rows without gaps, between whose values slopes are measured
    additive : "auto" reads models that are certainly additive, True also what the user vouches for, False none
    knots : (k, M) quantiles of the training rows, between which curves are measured; None to read linear models only
    proof : whether a function that has met the trial rows is the model, by whatever else is known about it

    Returns
    -------
    The function, None where there is nothing to read; a user's word that does not hold is an error
    """
    vouched, is_proven, apart = additive is True, False, np.inf
    function: AdditiveFunction | None = None
    try:
        if vouched or (additive == "auto" and is_certainly_linear(predictor, schema)):
            function, apart = _read_linear(predictor, schema, rows, is_last=knots is None)
            is_proven = apart <= 1 and function is not None and proof(function)
        if not is_proven and knots is not None:
            function, apart = _read_curves(predictor, schema, rows[0], knots)
            is_proven = apart <= 1 and proof(function)
    except (ModelError, OptionError):
        if vouched:
            raise
        return None
    if apart > 1 and vouched:
        raise OptionError(
            "additive=True needs a model that is a sum of one function per feature, but on "
            f"{_TRIALS} rows combined from training rows its predictions are not such a sum: the largest "
            f"difference is {apart:.3g} times what rounding explains. Leave additive out."
        )
    if not is_proven and vouched:
        raise OptionError(
            "additive=True needs a model whose functions of one feature can be read, but for some training rows the "
            "prediction is not the sum of what was read: the model changes between the values at which it was tried, "
            f"{_CELLS} ranges per feature. Leave additive out."
        )
    return function if is_proven else None


def _read_linear(
    predictor: Predictor, schema: FeatureSchema, rows: Rows, *, is_last: bool
) -> tuple[AdditiveFunction | None, float]:
    """Slopes and levels, and how far they are from the model in units of rounding; infinitely far if a gap is a level."""
    try:
        function = _measure_slopes(predictor, schema, rows)
        trial = _trial_rows(rows, schema, reach=1.0)
        apart = rounding_distance(function(trial), predictor(trial.copy()))
    except ModelError:
        if is_last:
            raise
        return None, np.inf  # curves are read where the model can be asked
    return function, np.inf if apart <= 1 and _takes_missing_levels(predictor, schema, rows) else apart


def _read_curves(
    predictor: Predictor, schema: FeatureSchema, base: Rows, knots: Floats
) -> tuple[AdditiveFunction, float]:
    """Curves and levels around a base row (M,), also beyond the training range if the model can be asked there."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a model says of values that nobody has asked for
            return _try_curves(predictor, schema, base, knots, reach=1.0)
    except ModelError:
        return _try_curves(predictor, schema, base, knots, reach=0.0)
    except TooRoughError as error:
        raise OptionError(
            "additive=True needs a model whose functions of one feature can be read, but they have too many jumps or bends "
            f"for {_ASKED:,} predictions per feature. Leave additive out."
        ) from error


def _try_curves(
    predictor: Predictor, schema: FeatureSchema, base: Rows, knots: Floats, *, reach: float
) -> tuple[AdditiveFunction, float]:
    """Curves that go beyond the training range by `reach` times its width, and how far they are from the model."""
    trial = _trial_rows(knots, schema, reach=reach)
    expected = predictor.predict_fast(trial.copy())
    at_base = predictor.predict_fast(base[None].copy())[0]

    def ask(feature: Indices, values: Floats) -> Floats:
        asked = np.repeat(base[None], len(values), axis=0)
        asked[np.arange(len(values)), feature] = values
        return np.asarray(predictor.predict_fast(asked) - at_base)

    limit = rounding_limit(expected, _CURVE_TOLERANCE, _CURVE_ROUNDING)
    edges = {j: _first_edges(knots[:, j], reach) for j, one in enumerate(schema.features) if one.levels is None}
    curves = _read_numbers(predictor, schema, base, edges, ask, limit)
    levels = [
        None if one.levels is None else ask(np.full(len(one.levels), j), np.arange(len(one.levels), dtype=np.float64))
        for j, one in enumerate(schema.features)
    ]
    missing = np.stack([_term_of_gap(ask, j, len(at_base)) for j in range(len(base))])
    n = len(base)
    function = CurvedFunction(at_base, tuple(curves.get(j) for j in range(n)), tuple(levels), missing, ask, limit)
    trial = _with_gaps(trial, np.asarray(np.isfinite(missing).all(axis=1)))
    return function, rounding_distance(function(trial), predictor.predict_fast(trial.copy()))


def _read_numbers(
    predictor: Predictor, schema: FeatureSchema, base: Rows, edges: dict[int, Floats], ask: Asks, limit: Floats
) -> dict[int, Curve]:
    """Curves of the numeric features between their edges, by the thresholds of trees where these are known."""
    columns = None if predictor.trees is None else traced_columns(predictor, schema)
    if not edges:  # levels only
        return {}
    if columns is not None:
        return read_steps(predictor, columns, base, {j: (own[0], own[-1]) for j, own in edges.items()}, ask)
    numbers = list(edges)
    read = read_curves(
        lambda which, x: ask(np.take(numbers, which), x), [*edges.values()], limit, most=_ASKED * len(edges)
    )
    return dict(zip(numbers, read, strict=True))


def _with_gaps(trial: Rows, may_miss: Masks) -> Rows:
    """Every second trial row (n, M) with about one missing value, among the features (M,) that may have some."""
    gaps = may_miss & (generator(0, "additive gaps").random(trial.shape) < 1 / len(trial.T))
    return np.where(gaps & (np.arange(len(trial)) % 2 == 0)[:, None], np.nan, trial)


def _first_edges(knots: Floats, reach: float) -> Floats:
    """Edges of the first cells of a numeric feature: training values (k,), ascending, and evenly spaced ones beyond."""
    low, high = knots[0], knots[-1]
    width = high - low if high > low else abs(low) or 1.0
    steps = reach * width * np.arange(1, _OUTER_CELLS + 1) / _OUTER_CELLS
    edges = np.unique(np.concatenate([low - steps, knots, high + steps] if reach else [knots]))
    return edges if len(edges) > 1 else np.array([low, np.nextafter(low, np.inf)])


def _term_of_gap(ask: Asks, j: int, n_outputs: int) -> Floats:
    """Term (O,) of a missing value of feature j, NaN if the model refuses it."""
    try:
        return np.asarray(ask(np.array([j]), np.array([np.nan]))[0])
    except ModelError:
        return np.full(n_outputs, np.nan)


def _measure_slopes(predictor: Predictor, schema: FeatureSchema, rows: Rows) -> AffineFunction:
    """Slopes from two values of every numeric feature, and the terms of all levels, all else as in the first row."""
    base, low, high = rows[0], rows.min(axis=0), rows.max(axis=0)
    high = np.where(high > low, high, low + np.where(low != 0, np.abs(low), 1.0))
    tried: list[Floats] = [
        np.array([low[j], high[j]]) if feature.levels is None else np.arange(len(feature.levels), dtype=np.float64)
        for j, feature in enumerate(schema.features)
    ]
    feature = np.repeat(np.arange(len(tried)), [len(values) for values in tried])
    trial = np.repeat(base[None], len(feature) + 1, axis=0)
    trial[np.arange(len(feature)), feature] = np.concatenate(tried)
    outputs = predictor(trial.copy())
    at_base, own = outputs[-1], [outputs[:-1][feature == j] for j in range(len(tried))]
    is_number = np.array([one.levels is None for one in schema.features])
    slopes = np.stack(
        [(f[1] - f[0]) / (high[j] - low[j]) if is_number[j] else np.zeros_like(at_base) for j, f in enumerate(own)]
    )
    levels = tuple(None if is_number[j] else f - at_base for j, f in enumerate(own))
    return AffineFunction(at_base - base[is_number] @ slopes[is_number], slopes, levels)


def _trial_rows(rows: Rows, schema: FeatureSchema, *, reach: float) -> Rows:
    """Trial rows (64, M): values of random rows; numbers also between and beyond these, by `reach` times their width."""
    rng = generator(0, "additive trial")
    trial = np.take_along_axis(rows, rng.integers(0, len(rows), size=(_TRIALS, rows.shape[1])), axis=0)
    low, high = rows.min(axis=0), rows.max(axis=0)
    anywhere = low + (high - low) * rng.uniform(-reach, 1 + reach, size=trial.shape)
    is_number = np.array([feature.levels is None for feature in schema.features])
    return np.where(is_number & (rng.random(trial.shape) < 0.5), anywhere, trial)


def _takes_missing_levels(predictor: Predictor, schema: FeatureSchema, rows: Rows) -> bool:
    """Whether an encoder treats a gap as one more level, which no table of levels has; linear models refuse other gaps."""
    for j, feature in enumerate(schema.features):
        if feature.levels is not None:
            row = rows[:1].copy()
            row[0, j] = np.nan
            try:
                predictor(row)
            except ModelError:
                continue
            return True
    return False


def kind_of_reading(function: AdditiveFunction | None) -> str | None:
    """Name of what was read, "linear" or "curves", so that a saved explainer reads the same again."""
    return None if function is None else "linear" if isinstance(function, AffineFunction) else "curves"
