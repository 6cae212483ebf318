"""Fitted explainer -> how its draws differ from the training rows, where rows can tell.

Given only a level of a categorical column, training rows with that level say what numbers and predictions should be on
average. Given nothing, they say how columns depend on each other. MSEv sees neither.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from condshap.approaches.base import Donors, is_sampler
from condshap.explainer import Explainer
from condshap.schema import Kind
from condshap.seeding import hash_words, stage_word
from condshap.types import Floats, Masks, Rows

N_DRAWS, COPIES = 20_000, 20
NEAR_DUPLICATES = 0.9
ENOUGH = 10  # rows with a level: fewer do not tell their own standard error


def check_sanity(explainer: Explainer, X_train: pd.DataFrame, *, seed: int = 0) -> dict[str, Any] | None:
    """Compare draws with training rows (N, M), None if the approach does not draw or rows have gaps.

    Returns
    -------
    means : [column, level, number, distance of the draws' mean from the rows' in standard errors of the latter], a list
    values : [column, level, v of that level, mean prediction of its rows, its standard error], a list, by output
    base : mean prediction, by output
    pairs : [number, number, given, correlation of the rows, of the draws], a list; those that correlate most
    """
    rows = explainer.schema_.encode(X_train)
    if not is_sampler(explainer.parts_[0].approach) or np.isnan(rows).any():
        return None
    found = {"means": [], "values": [], "base": explainer.base_value_.tolist(), "pairs": check_nothing(explainer, rows)}
    predictions = explainer.predictor_(rows.copy())
    for j, feature in enumerate(explainer.schema_.features):
        correlations = []
        for code, level in enumerate(feature.levels or ()):
            has = rows[:, j] == code
            if has.sum() >= ENOUGH:
                draws, weights = draws_given(explainer, rows[has][0], [j], seed)
                names = (feature.name, str(level))
                found["means"] += [[*names, *end] for end in compare_means(explainer, rows[has], draws, weights)]
                found["values"].append([*names, *compare_values(explainer, predictions[has], draws, weights)])
                correlations.append(pair_correlations(explainer, rows, rows[has], draws, weights))
        found["pairs"] += average_pairs(correlations, feature.name)
    return found


def draws_given(explainer: Explainer, row: Floats, known: list[int], seed: int) -> tuple[Rows, Floats]:
    """Draws (n, M) of all else given some columns of a row (M,), and their weights (n,), which sum to 1."""
    mask = np.isin(np.arange(len(row)), known)
    keys = hash_words(stage_word("league"), np.arange(COPIES))
    copies = np.repeat(row[None], COPIES, axis=0)
    samples = explainer.parts_[0].approach.sample(copies, mask[None], N_DRAWS // COPIES, keys=keys, seed=seed)
    rows = spliced(samples, row, mask) if isinstance(samples, Donors) else samples.rows[0].reshape(-1, len(row))
    weights = np.ones(len(rows)) if samples.weights is None else samples.weights[0].reshape(-1)
    return rows, weights / weights.sum()


def spliced(samples: Donors, row: Floats, mask: Masks) -> Rows:
    return np.where(mask, row, samples.table[samples.indices[0].reshape(-1)])


def numbers_of(explainer: Explainer) -> list[int]:
    return [j for j, feature in enumerate(explainer.schema_.features) if feature.kind is Kind.CONTINUOUS]


def compare_means(explainer: Explainer, rows: Rows, draws: Rows, weights: Floats) -> list[list[Any]]:
    """Name of every number that varies among rows (n, M), and the distance of the draws' mean in standard errors."""
    errors = rows.std(axis=0, ddof=1) / np.sqrt(len(rows))
    distances = (weights @ draws - rows.mean(axis=0)) / np.where(errors > 0, errors, np.nan)
    return [[explainer.schema_.names[j], float(distances[j])] for j in numbers_of(explainer) if errors[j] > 0]


def compare_values(explainer: Explainer, predictions: Floats, draws: Rows, weights: Floats) -> list[list[float]]:
    """Value of a level by draws (n, M), mean prediction (O,) of its rows, and its standard error."""
    v = weights @ explainer.predictor_.predict_fast(np.ascontiguousarray(draws))
    error = predictions.std(axis=0, ddof=1) / np.sqrt(len(predictions))
    return [v.tolist(), predictions.mean(axis=0).tolist(), error.tolist()]


def check_nothing(explainer: Explainer, rows: Rows) -> list[list[Any]]:
    """Correlations of the pairs of numbers that correlate most, with nothing known."""
    draws, weights = draws_given(explainer, rows[0], [], 0)
    return average_pairs([pair_correlations(explainer, rows, rows, draws, weights)], "nothing")


def pair_correlations(explainer: Explainer, train: Rows, rows: Rows, draws: Rows, weights: Floats) -> list[list[Any]]:
    """Number, number, their correlation among rows and among draws; pairs that are near-duplicates, or the nearest one."""
    names = explainer.schema_.names
    return [
        [names[i], names[j], correlation(rows[:, [i, j]], np.ones(len(rows))), correlation(draws[:, [i, j]], weights)]
        for i, j in nearest_pairs(train, numbers_of(explainer))
    ]


def nearest_pairs(train: Rows, numbers: list[int]) -> list[tuple[int, int]]:
    size = {pair: abs(correlation(train[:, pair], np.ones(len(train)))) for pair in combinations(numbers, 2)}
    near = [pair for pair, value in size.items() if value >= NEAR_DUPLICATES]
    return near or sorted(size, key=lambda pair: size[pair])[-1:]


def correlation(pair: Floats, weights: Floats) -> float:
    """Weighted correlation of two columns (n, 2), 0 if one of them does not vary."""
    covariance = np.cov(pair, rowvar=False, aweights=weights)
    scale = np.sqrt(covariance[0, 0] * covariance[1, 1])
    return float(covariance[0, 1] / scale) if scale > 0 else 0.0


def average_pairs(found: list[list[list[Any]]], given: str) -> list[list[Any]]:
    """Means of correlations over the levels of a column, with the name of what was given."""
    return [
        [pairs[0][0], pairs[0][1], given, *np.mean([pair[2:] for pair in pairs], axis=0).tolist()]
        for pairs in zip(*found, strict=True)
    ]
