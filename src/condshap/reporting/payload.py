"""Explanations -> plain data for the page's scripts: names as text, numbers as base64 of typed arrays.

Typed arrays decode in milliseconds where JSON numbers of 5,000 rows x 50 features would take seconds. Shapley values
have 32 bits (7 digits), standard errors 16 (2 digits, as bfloat16), predictions and base values 64.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from condshap.explanation import Explanation, Provenance
from condshap.games.interactions import Interactions
from condshap.games.loss_explanation import loss_explanation
from condshap.reporting.outside_training import Outside
from condshap.reporting.quality import Judged, best_of
from condshap.tables.feature_columns import feature_columns
from condshap.tables.reading import Column
from condshap.types import Floats, Table

_MIDNIGHT = " 00:00:00"


def pack(
    given: Sequence[Explanation],
    labels: Sequence[str],
    judged: Sequence[Judged],
    outside: Outside | None,
    interactions: Interactions | None = None,
) -> dict[str, Any]:
    """Everything that the scripts need; explanations must be `comparable`."""
    first = given[0]
    return {
        "rows": len(first),
        "labels": _row_labels(first.data),
        "features": [_feature(column) for column in feature_columns(first)],
        "players": [
            {"name": name, "members": list(members)}
            for name, members in zip(first.player_names, first.membership, strict=True)
        ],
        "outputs": list(first.output_names),
        "words": words_of(first.provenance),
        "outside": None if outside is None else {str(row): found for row, found in outside.by_row.items()},
        "interactions": None if interactions is None else _interactions(interactions),
        "best": best_of(judged),
        "explanations": [_explanation(*each) for each in zip(given, labels, judged, strict=True)],
    }


def _row_labels(data: Table) -> list[str] | None:
    """Row labels of the table, days without their hour 0; None if it only numbers its rows."""
    index = data.index if isinstance(data, pd.DataFrame) else pd.RangeIndex(0)
    if isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1:
        return None
    texts = [str(label) for label in index]
    is_days = isinstance(index, pd.DatetimeIndex) and all(text.endswith(_MIDNIGHT) for text in texts)
    return [text.removesuffix(_MIDNIGHT) for text in texts] if is_days else texts


def _feature(column: Column) -> dict[str, Any]:
    """A column of numbers, or of codes with -1 for missing and their levels."""
    if column.numbers is None:
        assert column.codes is not None
        return {
            "name": column.name,
            "levels": [str(level) for level in column.levels],
            "data": _packed(column.codes, "<i4"),
        }
    with np.errstate(over="ignore"):
        short = column.numbers.astype(np.float32)
    keeps = np.isclose(short, column.numbers, rtol=1e-6, atol=0.0, equal_nan=True)
    whole = column.numbers == np.rint(column.numbers)  # an account number must be shown with all of its digits
    exact = bool(np.all(keeps & (~whole | (short == column.numbers)) | np.isnan(column.numbers)))
    kind = "<f4" if exact else "<f8"
    return {"name": column.name, "levels": None, "type": kind[1:], "data": _packed(column.numbers, kind)}


def _explanation(explanation: Explanation, label: str, judged: Judged) -> dict[str, Any]:
    """Arrays with outputs first: (O, R, P) and (O, R); losses themselves in place of what is shared out, minus the loss."""
    sign = words_of(explanation.provenance)["sign"]
    shape = (*explanation.values.shape[:2], -1)
    values = np.moveaxis(explanation.values.reshape(shape), 2, 0)
    errors = np.moveaxis(explanation.errors.reshape(shape), 2, 0)
    return {
        "name": label,
        "values": _packed(np.clip(values, -3e38, 3e38), "<f4"),
        "errors": _packed(_halved(errors), "<u2") if errors.any() else None,
        "base": _packed(sign * explanation.base_values.reshape(shape[0], -1).T, "<f8"),
        "predictions": _packed(sign * explanation.predictions.reshape(shape[0], -1).T, "<f8"),
        "importance": None if explanation.provenance.loss is None else _importance(explanation),
        "msev": [[_finite(x) for x in (line.msev, line.low, line.high, line.msev_error)] for line in judged],
        "unlike": [] if explanation.unlike_pool is None else np.flatnonzero(explanation.unlike_pool).tolist(),
    }


def _importance(explanation: Explanation) -> dict[str, list[float | None]]:
    """Mean decrease of a loss over rows and its standard error, player by player."""
    loss = loss_explanation(explanation, str(explanation.provenance.loss))
    found = {"mean": loss.importance, "error": loss.importance_std_errors}
    return {key: [_finite(x) for x in numbers] for key, numbers in found.items()}


def words_of(about: Provenance) -> dict[str, Any]:
    """What numbers are called on the page; `sign` leads from the base value to the prediction."""
    if about.loss is not None:
        name = about.loss.replace("_", " ")
        return {"prediction": f"Loss ({name})", "base": "Base loss", "value": "decrease of the loss", "sign": -1}
    if about.link is not None:
        return {"prediction": "Log-odds", "base": "Base value", "value": "Shapley value (log-odds)", "sign": 1}
    return {"prediction": "Prediction", "base": "Base value", "value": "Shapley value", "sign": 1}


def _interactions(interactions: Interactions) -> dict[str, Any]:
    """Sets of at least two players, and arrays with outputs first: (O, R, K)."""
    sets = [members for members in interactions.values if len(members) > 1]
    values, errors = (
        np.array([by_set[members] for members in sets]).reshape(len(sets), len(interactions), -1).transpose(2, 1, 0)
        for by_set in (interactions.values, interactions.std_errors)
    )
    return {
        "sets": [list(members) for members in sets],
        "values": _packed(np.clip(values, -3e38, 3e38), "<f4"),
        "errors": _packed(_halved(errors), "<u2") if errors.any() else None,
    }


def _halved(errors: Floats) -> npt.NDArray[np.uint16]:
    """Upper halves of 32-bit floats, rounded: bfloat16, which the page widens by a shift."""
    bits = np.ascontiguousarray(np.clip(errors, 0, 3e38), dtype="<f4").view(np.uint32)
    return np.asarray((bits.astype(np.uint64) + 0x8000) >> 16, dtype=np.uint16)


def _packed(values: npt.NDArray[Any], dtype: str) -> str:
    return base64.b64encode(np.ascontiguousarray(values, dtype=dtype).tobytes()).decode("ascii")


def _finite(number: float) -> float | None:
    return float(number) if np.isfinite(number) else None
