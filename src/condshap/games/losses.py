"""Loss by name or function, true answers -> losses of predictions, and of noisy v(S) without the bias that noise brings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from condshap.exceptions import OptionError, listing
from condshap.games.targets import Given, check_probabilities, numbers_of, read_given, true_classes
from condshap.models.predictor import Predictor
from condshap.numerics.noisy_means import absolute, minus_log, square
from condshap.runtime.announcing import announce
from condshap.types import Floats, Indices, Masks, Outputs, Values

LossFunction = Callable[[Any, Any], Any]
"""(y, prediction) -> a loss per row."""
_DISTANCES = {"squared_error": square, "absolute_error": absolute}
LOSSES = (*_DISTANCES, "log_loss")
_FLOOR = float(np.finfo(np.float64).eps)
"""Probabilities of the true class below this count as this, as in scikit-learn's log_loss."""


class Losses(ABC):
    """Losses of R rows as a function of what is predicted for them; `name` is that of the loss."""

    name: str

    def check(self, predictions: Outputs, base_value: Floats) -> None:  # noqa: B027 - most losses take any number
        """Refuse predictions (R, O), or a base value (O,), of which there is no loss."""

    def warn(self, losses: Floats) -> None:  # noqa: B027
        """Warn about losses (C, R) of v(S) that deserve a look."""

    @abstractmethod
    def exact(self, predictions: Outputs, rows: Indices) -> Floats:
        """Losses (r,) of predictions (r, O) without noise for `rows` (r,)."""

    @abstractmethod
    def noisy(self, values: Values, variances: Values, rows: Indices) -> tuple[Floats, Floats]:
        """Losses of v(S) and their variances, both (c, r), from v and its variances (c, r, O) for `rows` (r,)."""


@dataclass(frozen=True, eq=False)
class DistanceLosses(Losses):
    """Squared or absolute error, added over outputs, of targets (R, O)."""

    name: str
    targets: Floats

    def exact(self, predictions: Outputs, rows: Indices) -> Floats:
        """See `Losses`."""
        return np.asarray(self.noisy(predictions[None], np.zeros_like(predictions[None]), rows)[0][0])

    def noisy(self, values: Values, variances: Values, rows: Indices) -> tuple[Floats, Floats]:
        """See `Losses`; outputs share their samples in an unknown way, so deviations are added: no less can be right."""
        losses, noise = _DISTANCES[self.name](values - self.targets[rows], variances)
        return losses.sum(axis=2), np.sqrt(noise).sum(axis=2) ** 2


@dataclass(frozen=True, eq=False)
class LogLosses(Losses):
    """Minus the logarithm of the probability of the true class: the output at `places` (R,), or 1 less it if `is_other`."""

    model: Any
    places: Indices
    is_other: Masks
    name: str = "log_loss"

    def check(self, predictions: Outputs, base_value: Floats) -> None:
        """See `Losses`."""
        check_probabilities(predictions, self.model)
        check_probabilities(base_value[None], self.model)

    def exact(self, predictions: Outputs, rows: Indices) -> Floats:
        """See `Losses`."""
        return np.asarray(self.noisy(predictions[None], np.zeros_like(predictions[None]), rows)[0][0])

    def noisy(self, values: Values, variances: Values, rows: Indices) -> tuple[Floats, Floats]:
        """See `Losses`; only one output matters, so that outputs need not be independent."""
        here = np.arange(len(rows)), self.places[rows]
        p = np.where(self.is_other[rows], 1 - values[:, *here], values[:, *here])
        return minus_log(np.maximum(p, _FLOOR), variances[:, *here])

    def warn(self, losses: Floats) -> None:
        """See `Losses`."""
        rows = np.flatnonzero((losses >= -np.log(_FLOOR) * (1 - 1e-12)).any(axis=0))
        if len(rows):
            announce(
                "probabilities of the true class must be above 0 for a finite log loss, got 0 for some coalitions of rows "
                f"{listing(rows.tolist())}. They count as {_FLOOR:.2g}, as in scikit-learn, which alone decides how large "
                "the loss is there. Calibrate or smooth the model, or use 'squared_error'.",
            )


@dataclass(frozen=True, eq=False)
class OwnLosses(Losses):
    """A function of the user, of answers `given` (R,) or (R, O); predictions have an axis for outputs if `has_outputs`."""

    name: str
    function: LossFunction
    given: Given
    has_outputs: bool

    def exact(self, predictions: Outputs, rows: Indices) -> Floats:
        """See `Losses`."""
        given = predictions if self.has_outputs else predictions[:, 0]
        try:
            found = np.asarray(self.function(self.given[rows].copy(), given.copy()))
        except Exception as error:
            raise OptionError(
                f"loss must take y and predictions, arrays of shapes {self.given[rows].shape} and {given.shape}, but "
                f"{self.name!r} failed with {type(error).__name__}: {error}. Try it with arrays of your own."
            ) from error
        if found.shape != (len(rows),) or found.dtype.kind not in "fiub":
            raise OptionError(
                f"loss must return one number per row, shape ({len(rows)},), got shape {found.shape} of dtype "
                f"{found.dtype} from {self.name!r}. Return the losses of the rows, not their mean."
            )
        if not np.isfinite(found).all():
            bad = int(np.flatnonzero(~np.isfinite(found))[0])
            truth, prediction = self.given[rows][bad : bad + 1].tolist()[0], given[bad].tolist()
            raise OptionError(
                f"loss must return finite numbers, got {found[bad]} from {self.name!r} for y = {truth!r} "
                f"and prediction {prediction!r}. Clip predictions in the function, or return a loss that is finite there."
            )
        return found.astype(np.float64)

    def noisy(self, values: Values, variances: Values, rows: Indices) -> tuple[Floats, Floats]:
        """See `Losses`; without a second estimate of v(S), which has no noise here."""
        found = np.stack([self.exact(one, rows) for one in values])
        return found, np.zeros_like(found)

    def from_halves(self, halves: Values, variances: Values, rows: Indices) -> tuple[Floats, Floats]:
        """Losses and their variances (c, r) from two independent estimates of v(S), (2, c, r, O), and their variances.

        The bias of a function of noise is that of both together, or half of that of one: twice the loss at their mean, less
        the mean of their losses, has none to second order, whatever the function. Only values that v(S) takes are asked for.
        Slopes are those between the two. Outputs share samples in an unknown way, so their deviations are added; curvature,
        or a kink between the two, shows in how far losses at the ends are from that in the middle, and counts as well.
        """
        middle, half = halves.mean(axis=0), (halves[0] - halves[1]) / 2
        deviation = np.sqrt(variances.sum(axis=0)) / 2
        ends = np.stack([[self.exact(one, rows) for one in v] for v in halves])
        at_middle = np.stack([self.exact(one, rows) for one in middle])
        bent = ends.mean(axis=0) - at_middle
        total = np.zeros_like(at_middle)
        for o in range(middle.shape[2]):
            rise = ends[0] - ends[1]
            if middle.shape[2] > 1:
                step = np.zeros_like(half)
                step[..., o] = half[..., o]
                pairs = zip(middle + step, middle - step, strict=True)
                rise = np.stack([self.exact(a, rows) - self.exact(b, rows) for a, b in pairs])
            width = np.abs(2 * half[..., o])
            slope = np.abs(rise) / np.where(width > 0, width, 1.0)
            total += slope * deviation[..., o]
        return at_middle - bent, total**2 + bent**2


def make_losses(loss: str | LossFunction, y: Any, n_rows: int, predictor: Predictor) -> Losses:
    """Losses of n rows by name or function, with everything about `y` checked that needs no prediction."""
    if not callable(loss) and not (isinstance(loss, str) and loss in LOSSES):
        raise OptionError(
            f"loss must be one of {list(LOSSES)}, or a function (y, prediction) -> loss per row, got {loss!r}."
        )
    given = read_given(y, n_rows)
    if callable(loss):
        name = getattr(loss, "__name__", type(loss).__name__)
        return OwnLosses(name, loss, given, has_outputs=len(predictor.output_names) > 1)
    if loss == "log_loss":
        return LogLosses(predictor.model, *true_classes(given, predictor))
    return DistanceLosses(loss, numbers_of(given, predictor))
