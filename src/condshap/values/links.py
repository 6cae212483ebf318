"""Option `link` -> the game in log-odds: v(S) of classifiers as logit of a probability, as in shap's kernel explainer."""

from __future__ import annotations

from typing import Any

import numpy as np

from condshap.exceptions import ModelError, OptionError, listing
from condshap.models.calling import describe_model, is_regressor
from condshap.numerics.noisy_means import log_odds, logit
from condshap.types import Floats, Masks, Model, Outputs

LINKS = ("logit",)
_EXTREME = 1e-3
"""Probabilities of other rows that are closer to 0 or 1 than this do not widen the range by which "auto" judges."""


def check_link(link: Any, model: Model, *, n_samples: int | None, target_error: float | None) -> None:
    """Refuse a link that is not offered, or that does not go with the model or another option."""
    if link is None:
        return
    if not (isinstance(link, str) and link in LINKS):
        raise OptionError(f"link must be None or one of {list(LINKS)}, got {link!r}.")
    if is_regressor(model):
        raise OptionError(
            f"link='{link}' needs a classifier, because log-odds are made of probabilities, got the regressor "
            f"{describe_model(model)}. Leave link out."
        )
    if target_error is not None:
        raise OptionError(
            f"target_error cannot be combined with link='{link}', because it is in units of the prediction, which is a "
            "probability. Use n_samples instead."
        )
    if n_samples == 1:
        raise OptionError(
            f"n_samples must be at least 2 with link='{link}', got 1: the noise of v(S) must be known, because it biases "
            "log-odds. Raise n_samples, or leave it out."
        )


def check_probabilities(link: str | None, outputs: Outputs, *, what: str) -> None:
    """Refuse outputs (n, O) of which a link has no finite value; `what` says of which rows."""
    if link is None:
        return
    bad = np.flatnonzero(~np.isnan(outputs).any(axis=1) & ~((outputs > 0) & (outputs < 1)).all(axis=1))
    if len(bad):
        raise ModelError(
            f"link='{link}' needs probabilities above 0 and below 1, because others have no finite log-odds, got "
            f"{listing(outputs[bad[0]].tolist())} for {what} {listing(bad.tolist())}. Calibrate or smooth the model, leave "
            "these rows out, or explain probabilities without link."
        )


def check_training(link: str | None, outputs: Outputs) -> None:
    """Refuse a model whose outputs (n, O) for training rows are no probabilities, or whose mean is 0 or 1."""
    if link is None:
        return
    known = outputs[~np.isnan(outputs).any(axis=1)]
    if not ((known >= 0) & (known <= 1)).all():
        raise ModelError(
            f"link='{link}' needs a model that returns probabilities, got numbers from {known.min():.3g} to "
            f"{known.max():.3g} for training rows. Pass a classifier, or leave link out."
        )
    check_probabilities(link, outputs.mean(axis=0, keepdims=True), what="the base value, one row of outputs at")


def linked(link: str | None, outputs: Floats) -> Floats:
    """Outputs without noise on the scale of the link; as they are without one."""
    return outputs if link is None else log_odds(outputs)


def linked_range(link: str | None, outputs: Outputs) -> Outputs:
    """Outputs (n, O) of other rows on the scale of the link, where extreme ones count as less extreme."""
    return outputs if link is None else log_odds(np.clip(outputs, _EXTREME, 1 - _EXTREME))


def link_values(link: str, values: Floats, variances: Floats, coalitions: Masks) -> tuple[Floats, Floats]:
    """v(S) of `coalitions` (c, P) and its variances, both (c, r, O), on the scale of the link, without the bias of noise."""
    bad = ~((values > 0) & (values < 1))
    if bad.any():
        first = int(np.flatnonzero(bad.any(axis=(1, 2)))[0])
        found, known = values[bad][0], np.flatnonzero(coalitions[first]).tolist()
        n_rows = int(bad.any(axis=(0, 2)).sum())
        raise ModelError(
            f"link='{link}' needs v(S) above 0 and below 1, because others have no finite log-odds, got {found:g} for "
            f"{n_rows} of {values.shape[1]} rows, first with players {listing(known)} known: the model gives every sample "
            "there this probability. Raise n_samples, calibrate or smooth the model, or explain probabilities without link."
        )
    if np.isnan(variances).any():
        raise OptionError(
            f"link='{link}' needs the standard errors of v(S), because noise biases log-odds, but an approach draws a "
            "single sample, which has none. Raise n_samples."
        )
    return logit(values, variances)
