"""Explanation -> what one plot shows: one output, some rows, and players as lines with the least important ones added up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from condshap.exceptions import OptionError, listing
from condshap.explanation import Explanation
from condshap.games.interactions import Interactions
from condshap.games.loss_explanation import LossExplanation
from condshap.games.owen import OwenValues
from condshap.options import check_integer, find_named
from condshap.ranking import by_name, kept_explanations
from condshap.tables.feature_columns import feature_columns
from condshap.tables.reading import Column
from condshap.types import Floats, Indices
from condshap.views.rows import row_positions

Explanations: TypeAlias = Mapping[str, Explanation] | Sequence[Explanation]


@dataclass(frozen=True, slots=True)
class Words:
    """What numbers of a plot are called; `unit` comes after a comma, `sign` leads from the base value to the prediction."""

    value: str = "Shapley value"
    prediction: str = "prediction"
    end: str = "prediction"
    base: str = "base value"
    unit: str = ""
    sign: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class OneOutput:
    """Shapley values of one output.

    Attributes
    ----------
    values, errors : (R, P), all errors together
    base_values, predictions : (R,)
    names : of the P players
    columns : (P,) what the rows hold, None for a group of several features
    output : name of the output where there are several, else None
    is_whole : whether base value and values add up to the prediction; not where players were left out by a selection
    words : what its numbers are called
    """

    values: Floats
    errors: Floats
    base_values: Floats
    predictions: Floats
    names: tuple[str, ...]
    columns: tuple[Column | None, ...]
    output: str | None
    is_whole: bool = True
    words: Words = Words()


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """Players as lines of a plot: `shown` ones from the top, and `rest`, which are added up on a last line."""

    shown: Indices
    rest: Indices

    def __len__(self) -> int:
        """Return the number of lines."""
        return len(self.shown) + (len(self.rest) > 0)

    def add_up(self, values: Floats) -> Floats:
        """Values of players (..., P) -> values of lines (..., L)."""
        kept = values[..., self.shown]
        if not len(self.rest):
            return kept
        return np.concatenate([kept, values[..., self.rest].sum(axis=-1, keepdims=True)], axis=-1)

    def bound_errors(self, errors: Floats, *, is_whole: bool = True) -> Floats:
        """Standard errors of players (..., P) -> of lines (..., L), an upper bound for the last one.

        How the errors of players depend on each other is not known, but the standard error of a sum is at most the sum of
        the standard errors. All Shapley values of a row add up to a number without error, so that what is shown and the
        rest err by the same amount, and the smaller of their two bounds holds, unless players were left out before.
        """
        kept = errors[..., self.shown]
        if not len(self.rest):
            return kept
        bound = errors[..., self.rest].sum(axis=-1)
        if len(self.shown) and is_whole:
            bound = np.minimum(bound, kept.sum(axis=-1))
        return np.concatenate([kept, bound[..., None]], axis=-1)

    def label(self, labels: Sequence[str]) -> list[str]:
        """Labels of players (P,) -> of lines (L,)."""
        found = [labels[player] for player in self.shown]
        return [*found, f"{len(self.rest)} others"] if len(self.rest) else found


def one_loss(loss: LossExplanation, output: str | int | None = None) -> OneOutput:
    """Shares of losses, for plots that know of them: values lower a loss, so they lead from the base loss down to it."""
    chosen = one_output(loss.as_explanation(), output)
    name = loss.loss.replace("_", " ")
    words = Words(f"decrease of the {name}", name, "loss", "base loss", sign=-1.0)
    return replace(chosen, base_values=loss.base_losses, predictions=loss.losses, words=words)


def one_output(explanation: Explanation, output: str | int | None = None) -> OneOutput:
    """Choose an output by name or position; what is not finite is refused."""
    if not isinstance(explanation, Explanation):
        hint = "Pass what explain returns."
        if isinstance(explanation, LossExplanation):
            hint = "Draw losses with bar, waterfall or beeswarm."
        raise OptionError(f"a plot needs an Explanation, got {type(explanation).__name__}. {hint}")
    if len(explanation) == 0:
        raise OptionError("a plot needs an explanation of at least one row, got none. Explain some rows.")
    which = find_output(explanation, output)
    several = explanation.values.ndim == 3
    parts = [explanation.values, explanation.errors, explanation.base_values, explanation.predictions]
    values, errors, base, predictions = (part[..., which] if several else part for part in parts)
    for name, part in (("Shapley values", values), ("base values", base), ("predictions", predictions)):
        bad = np.flatnonzero(~np.isfinite(part.reshape(len(part), -1)).all(axis=1))
        if len(bad):
            raise OptionError(
                f"{name} must be finite to be drawn, got NaN or infinite ones in rows {listing(bad.tolist())}. "
                "Leave these rows out, e.g. explanation[:5]."
            )
    every = feature_columns(explanation)
    columns = tuple(every[members[0]] if len(members) == 1 else None for members in explanation.membership)
    title = explanation.output_names[which] if several else None
    is_whole = explanation.others is None
    words = Words() if explanation.provenance.link is None else Words(end="log-odds", unit=", log-odds")
    names = explanation.player_names
    return OneOutput(values, np.nan_to_num(errors), base, predictions, names, columns, title, is_whole, words)


def whole_output(explanation: Explanation, output: str | int | None = None) -> OneOutput:
    """Choose an output of which values add up to the prediction: players that were left out are one more, with their sum."""
    chosen, others = one_output(explanation, output), explanation.others
    if others is None:
        return chosen
    which = find_output(explanation, output)
    values, errors = (part[:, which] if part.ndim == 2 else part for part in (others.values, others.errors))
    return replace(
        chosen,
        values=np.column_stack([chosen.values, values]),
        errors=np.column_stack([chosen.errors, np.nan_to_num(errors)]),
        names=(*chosen.names, f"{len(others.names)} not selected"),
        columns=(*chosen.columns, None),
        is_whole=True,
    )


def find_output(explanation: Explanation | Interactions | OwenValues, output: str | int | None) -> int:
    """Position of an output that is given by name or position; None is enough where there is only one."""
    names = explanation.output_names
    return find_among(names[:1] if explanation.base_values.ndim == 1 else names, output)


def find_among(names: Sequence[str], output: str | int | None) -> int:
    """Position among the names of outputs, see `find_output`."""
    if output is None:
        if len(names) > 1:
            raise OptionError(
                f"output must choose one of {len(names)} outputs, {listing(names)}. Pass its name or position, or draw all "
                "of them with plots.facet(plot, explanation)."
            )
        return 0
    if not isinstance(output, str):
        check_integer("output", output, least=0)
    found = find_named("output", output, names)
    if found is not None:
        return found
    raise OptionError(f"output must be one of {listing(names)} or a position below {len(names)}, got {output!r}.")


def find_rows(labels: pd.Index[Any], rows: Any) -> Indices:
    """Positions of at least one row, given by a position, a label, a slice, a list or a mask; None means all."""
    try:
        found = row_positions(labels, slice(None) if rows is None else rows)
    except IndexError as error:
        raise OptionError(
            f"rows must be positions below {len(labels)}, the number of explained rows, got {rows!r}."
        ) from error
    if found.ndim != 1 or len(found) == 0:
        raise OptionError(f"rows must choose at least one of {len(labels)} rows, got {rows!r}.")
    return found


def find_player(names: Sequence[str], feature: Any) -> int:
    """Position of a player that is given by name or position."""
    if not isinstance(feature, str):
        check_integer("feature", feature, least=0)
    found = find_named("feature", feature, names)
    if found is not None:
        return found
    raise OptionError(f"feature must be one of {listing(names)} or a position below {len(names)}, got {feature!r}.")


def make_lines(importance: Floats, max_features: Any, *, sort: bool = True) -> Lines:
    """Players (P,) by falling importance, or as they come, with those beyond `max_features` lines added up.

    >>> make_lines(np.array([1.0, 3.0, 2.0, 0.5]), 3)
    Lines(shown=array([1, 2]), rest=array([0, 3]))
    """
    most = check_integer("max_features", max_features, least=2)
    order = np.argsort(-importance, kind="stable")
    n_shown = len(order) if len(order) <= most else most - 1
    shown, rest = order[:n_shown], order[n_shown:]
    return Lines(shown if sort else np.sort(shown), rest)


def named(explanations: Explanations, names: Sequence[str] | None = None) -> dict[str, Explanation]:
    """Explanations by name: as given, or by their approach, with a number where one comes again."""
    explanations = kept_explanations(explanations)
    if isinstance(explanations, Explanation):
        explanations = [explanations]
    found = list(explanations.values()) if isinstance(explanations, Mapping) else list(explanations)
    if not found or not all(isinstance(one, Explanation) for one in found):
        raise OptionError(
            f"explanations must be at least one Explanation, got {listing(found)}. Pass a list or a mapping."
        )
    given = list(explanations) if isinstance(explanations, Mapping) and names is None else names
    texts = [one.provenance.approach for one in found] if given is None else [str(name) for name in given]
    if len(texts) != len(found):
        raise OptionError(f"names must have one entry for each of {len(found)} explanations, got {len(texts)}.")
    return by_name(texts, found)


def check_same_rows(explanations: Mapping[str, Explanation]) -> None:
    """Comparisons are about the same rows of the same model."""
    first = next(iter(explanations.values()))
    for name, other in explanations.items():
        same = other.predictions.shape == first.predictions.shape and other.player_names == first.player_names
        if not same or not np.allclose(other.predictions, first.predictions, rtol=1e-6, atol=1e-9, equal_nan=True):
            raise OptionError(
                f"explanations must be of the same rows, players and model, but '{name}' differs from the first one "
                f"({other!r} and {first!r}). Explain the same rows."
            )
