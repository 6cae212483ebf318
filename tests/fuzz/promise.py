"""What must hold whatever comes in: an explanation that adds up, or an error of ours, and never a RuntimeWarning."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import event

from condshap.exceptions import CondShapError, CondShapWarning
from condshap.explanation import Explanation

ROUNDING = 1e-9


def kept(work: Callable[[], Any]) -> Any:
    """Result of some work, or None if it was refused in our own words; whatever else is raised goes through."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", CondShapWarning)
        try:
            found = work()
        except CondShapError as error:
            _check_words(str(error))
            event(f"refused: {type(error).__name__}")
            return None
    event("answered")
    return found


def _check_words(message: str) -> None:
    assert len(message) > 30, f"an error must say what was expected, what was received and what to do, got {message!r}"


def check_explanation(found: Explanation, n_rows: int, predictions: Any = None) -> None:
    """Values and base value sum to the prediction, all is finite, errors are at least 0, or NaN where that is documented.

    `predictions` (n_rows, ...) are the model's own, where they are known.
    """
    assert len(found) == n_rows
    for numbers in (found.values, found.base_values, found.predictions, found.model_errors):
        assert np.isfinite(numbers).all()
    parts = np.concatenate([found.values, found.base_values[:, None]], axis=1)
    scale = np.abs(parts).max() + np.abs(found.predictions).max() + 1e-300
    assert np.abs(parts.sum(axis=1) - found.predictions).max() <= ROUNDING * scale
    assert (found.model_errors >= 0).all()
    _check_errors(found)
    if predictions is not None:
        wanted = np.asarray(predictions, dtype=np.float64).reshape(found.predictions.shape)
        assert np.abs(found.predictions - wanted).max() <= ROUNDING * scale
    frame = found.to_frame(errors=True)
    assert len(frame) == n_rows * (found.values.shape[2] if found.values.ndim == 3 else 1)


def _check_errors(found: Explanation) -> None:
    has_one_sample = 1 in found.provenance.n_samples
    unknown = np.isnan(found.std_errors)
    assert has_one_sample or not unknown.any()
    assert (found.std_errors[~unknown] >= 0).all()
    assert np.isfinite(found.std_errors[~unknown]).all()
    assert has_one_sample or np.isfinite(float(found.msev))
    assert unknown.any() or np.isfinite(found.errors).all()


def check_comparison(found: pd.DataFrame, n_approaches: int) -> None:
    """One line per approach; a smallest distance is not negative in its interval, and times are."""
    assert len(found) == n_approaches
    done = found.dropna(subset=["seconds"])
    assert len(done) >= 1
    assert (done["seconds"] >= 0).all()
    assert not (done["low"] < 0).any()
