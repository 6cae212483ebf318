"""True answers of rows, model -> targets that a loss compares predictions with: numbers, classes, or as given."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from condshap.exceptions import OptionError, listing
from condshap.models.calling import describe_model, is_regressor
from condshap.models.predictor import Predictor
from condshap.options import as_floats
from condshap.types import Floats, Indices, Masks, Outputs

Given = npt.NDArray[Any]
"""(R,) or (R, O) true answers, of any dtype."""
_ROUNDING, _SUM = 1e-6, 1e-3
"""How far one probability may be outside of 0 to 1, and those of a row from 1 together: some models count in 32 bits."""


def read_given(y: Any, n_rows: int) -> Given:
    """True answers of n rows as an array (n,) or (n, O), without gaps."""
    import pandas as pd

    found = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.ndim not in (1, 2) or len(found) != n_rows:
        raise OptionError(
            f"y must have one true answer for each of the {n_rows} rows of X, shape ({n_rows},), got shape {found.shape}. "
            "Pass the answers of the same rows, in the same order."
        )
    gaps = np.flatnonzero(np.asarray(pd.isna(found)).reshape(n_rows, -1).any(axis=1))
    if len(gaps):
        raise OptionError(
            f"y must have no missing values, got NaN or None in rows {listing(gaps.tolist())}. Leave these rows out of X "
            "and y."
        )
    return found


def numbers_of(given: Given, predictor: Predictor) -> Floats:
    """Targets (R, O) of a distance: numbers, or for labels of a classifier 1 for the true class and 0 for the others."""
    n_outputs = len(predictor.output_names)
    names = classes_of(predictor)
    if names is not None and given.ndim == 1:
        places = _positions(given, names)
        explained = np.arange(len(names)) if predictor.picked is None else np.array([predictor.picked])
        return np.asarray(places[:, None] == explained, dtype=np.float64)
    targets = _floats(given)
    targets = targets[:, None] if targets.ndim == 1 else targets
    if targets.shape[1] != n_outputs:
        raise OptionError(
            f"y must have a column for each of the {n_outputs} outputs of the model, {listing(predictor.output_names)}, got "
            f"shape {given.shape}. Pass a table of answers, or explain one output (output=...)."
        )
    return targets


def true_classes(given: Given, predictor: Predictor) -> tuple[Indices, Masks]:
    """Which of the explained outputs tells the probability of the true class, (R,), and whether as 1 - p, (R,)."""
    if is_regressor(predictor.model):
        raise OptionError(
            f"loss='log_loss' needs a classifier, got the regressor {describe_model(predictor.model)}. Use 'squared_error' "
            "or 'absolute_error'."
        )
    if given.ndim != 1:
        raise OptionError(
            f"y must be labels for loss='log_loss', one per row, got shape {given.shape}. Pass the name of the true class."
        )
    names, n_outputs = classes_of(predictor), len(predictor.output_names)
    if names is None:  # a function or network: classes have no names, and one output is the probability of the second
        names = tuple(range(max(2, n_outputs)))
        picked = None if n_outputs > 1 else 1
    else:
        picked = predictor.picked
    places = _positions(given, names)
    if picked is None:
        return places, np.zeros(len(places), dtype=bool)
    if len(names) > 2:
        raise OptionError(
            f"loss='log_loss' needs the probabilities of all {len(names)} classes, but the explainer has only one of them, "
            f"{predictor.output_names[0]!r}. Fit it without output."
        )
    return np.zeros(len(places), dtype=np.intp), places != picked


def check_probabilities(outputs: Outputs, model: Any) -> None:
    """Refuse outputs (n, O) that are no probabilities of all classes."""
    in_range = ((outputs >= -_ROUNDING) & (outputs <= 1 + _ROUNDING)).all(axis=1)
    if outputs.shape[1] > 1:
        in_range &= np.abs(outputs.sum(axis=1) - 1) <= _SUM
    bad = np.flatnonzero(~in_range)
    if len(bad):
        raise OptionError(
            f"loss='log_loss' needs probabilities from 0 to 1 that sum to 1, got {listing(outputs[bad[0]].tolist())} from "
            f"{describe_model(model)} for rows {listing(bad.tolist())}. Pass a classifier, or use another loss."
        )


def classes_of(predictor: Predictor) -> tuple[Any, ...] | None:
    """Labels of a classifier whose outputs are the probabilities of its classes, else None."""
    found = getattr(predictor.model, "classes_", None)
    if found is None or np.ndim(found) != 1 or is_regressor(predictor.model):
        return None
    labels = tuple(np.asarray(found).tolist())
    return labels if len(labels) == (predictor.n_outputs or 0) else None


def _positions(given: Given, names: tuple[Any, ...]) -> Indices:
    """Positions (R,) of labels among the classes."""
    where = {name: i for i, name in enumerate(names)}
    labels = given.tolist()
    unknown = list(dict.fromkeys(label for label in labels if label not in where))
    if unknown:
        rows = [r for r, label in enumerate(labels) if label not in where]
        raise OptionError(
            f"y must hold labels among the model's classes {listing(names)}, got {listing(unknown)} in rows "
            f"{listing(rows)}. Write them as in the model's training data."
        )
    return np.array([where[label] for label in labels], dtype=np.intp)


def _floats(given: Given) -> Floats:
    try:
        numbers = as_floats(given)
    except (TypeError, ValueError):
        raise OptionError(
            f"y must be numbers for a model without classes, got {given.dtype} such as "
            f"{listing(given.ravel()[:1].tolist())}. Pass numbers."
        ) from None
    if not np.isfinite(numbers).all():
        bad = np.flatnonzero(~np.isfinite(numbers).reshape(len(numbers), -1).all(axis=1))
        raise OptionError(f"y must be finite, got infinite numbers in rows {listing(bad.tolist())}. Leave them out.")
    return numbers
