"""Explanation -> interactions: what players do together beyond what they do apart, with standard errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from condshap.exceptions import CoalitionError, MissingPackageError, OptionError, listing
from condshap.games.exact_tables import lacks_coalitions, require_exact, table_columns
from condshap.numerics.faithful import FaithfulRegression
from condshap.numerics.interactions import INDICES, PlayerSet, exact_interactions, player_sets
from condshap.options import check_choice, check_integer, find_named
from condshap.types import Floats
from condshap.views.rows import find_row

if TYPE_CHECKING:
    import shapiq

    from condshap.explanation import Explanation


@dataclass(frozen=True, slots=True, eq=False)
class Interactions:
    """Interactions of up to `order` of P players, for R rows and O outputs.

    Attributes
    ----------
    values : for every set of at most `order` players, as a tuple of their positions, an array (R,), or (R, O) when the model
        has several outputs. All orders are there. "k-SII", "STII" and "FSII" share a prediction out: the empty set has the
        base value, and all values of a row add up to its prediction. "SII" and "BII" do not add up; sets of one player have
        Shapley and Banzhaf values, and the empty set a mean of v(S) over all coalitions, as in shapiq
    std_errors : the same sets; Monte Carlo errors of v(S), and with sampled coalitions what missing ones would change.
        NaN where they are not known
    index, order : which interactions these are
    is_exact : v(S) of all coalitions went in; else they are estimated by a regression
    n_coalitions : that went in
    base_values, predictions : (R,) or (R, O)
    player_names, output_names, row_labels : names
    approach : of the explanation that they were made from
    """

    values: dict[PlayerSet, Floats]
    std_errors: dict[PlayerSet, Floats]
    index: str
    order: int
    is_exact: bool
    n_coalitions: int
    base_values: Floats
    predictions: Floats
    player_names: tuple[str, ...]
    output_names: tuple[str, ...]
    row_labels: pd.Index[Any]
    approach: str = ""

    def __len__(self) -> int:
        """Return the number of rows R."""
        return len(self.base_values)

    def __repr__(self) -> str:
        """Say what these are, in one line."""
        outputs = f" x {len(self.output_names)} outputs" if self.base_values.ndim == 2 else ""
        kind = "all" if self.is_exact else "sampled"
        return (
            f"Interactions({self.index} of order {self.order}, {len(self)} rows x {len(self.player_names)} players"
            f"{outputs}, {self.n_coalitions} coalitions ({kind}))"
        )

    def matrix(self) -> Floats:
        """Interactions of pairs as symmetric matrices, (R, P, P) or (R, P, P, O); their diagonals are 0.

        Both (i, j) and (j, i) hold the whole interaction, not half of it as in shap.
        """
        P = len(self.player_names)
        found = np.zeros((len(self), P, P, *self.base_values.shape[1:]))
        for members, values in self.values.items():
            if len(members) == 2:
                i, j = members
                found[:, i, j] = found[:, j, i] = values
        return found

    def to_frame(self) -> pd.DataFrame:
        """One line per row, output and set of players: their names, how many they are, value and standard error."""
        sets = list(self.values)
        names = [" x ".join(self.player_names[j] for j in members) for members in sets]
        several = self.base_values.ndim == 2
        n_outputs = len(self.output_names) if several else 1
        shape = (len(sets), len(self), n_outputs)
        lines: dict[str, Any] = {"row": self.row_labels.repeat(n_outputs * len(sets))}
        if several:
            lines["output"] = np.tile(np.repeat(np.array(self.output_names, dtype=object), len(sets)), len(self))
        lines["players"] = np.tile(np.array(names, dtype=object), len(self) * n_outputs)
        lines["order"] = np.tile([len(members) for members in sets], len(self) * n_outputs)
        for name, by_set in (("value", self.values), ("std_error", self.std_errors)):
            lines[name] = np.array([by_set[members] for members in sets]).reshape(shape).transpose(1, 2, 0).ravel()
        return pd.DataFrame(lines)

    def to_shapiq(self, row: Any, *, output: str | int | None = None) -> shapiq.InteractionValues:
        """One row as `shapiq.InteractionValues`, for shapiq's plots; needs the package shapiq.

        Parameters
        ----------
        row : position or index label of the row
        output : name or position, where the model has several
        """
        row, which = find_row(self.row_labels, row), self.find_output(output)
        try:
            import shapiq
        except ImportError:
            raise MissingPackageError("to_shapiq needs the package shapiq: pip install shapiq.") from None
        cell = (row,) if which is None else (row, which)
        return shapiq.InteractionValues(
            values=np.array([values[cell] for values in self.values.values()]),
            interaction_lookup={members: position for position, members in enumerate(self.values)},
            index=self.index,
            min_order=0,
            max_order=self.order,
            n_players=len(self.player_names),
            estimated=not self.is_exact,
            estimation_budget=self.n_coalitions,
            baseline_value=float(self.base_values[cell]),
        )

    def find_output(self, output: str | int | None) -> int | None:
        """Position of an output by name or position; None where there is only one."""
        names = self.output_names
        if self.base_values.ndim == 1 and output is None:
            return None
        if output is None:
            raise OptionError(f"output must say which one of {listing(names)} is wanted. Pass its name or position.")
        found = find_named("output", output, names)
        if found is None:
            raise OptionError(
                f"output must be one of {listing(names)} or a position below {len(names)}, got {output!r}."
            )
        return found if self.base_values.ndim == 2 else None


def find_interactions(explanation: Explanation, index: str = "k-SII", order: int = 2) -> Interactions:
    """Interactions of an explanation's players, from its value table; see `Explanation.interactions`."""
    check_choice("index", index, INDICES)
    P = len(explanation.player_names)
    order = _check_order(order, P)
    sets = player_sets(P, order)
    is_exact = lacks_coalitions(explanation) == ""
    if not is_exact and index != "FSII":
        regression = ", or ask for index='FSII', which a regression estimates from sampled coalitions"
        require_exact(explanation, f"interactions with index={index!r}", regression)
    masks, v, variances = table_columns(explanation)
    solve = exact_interactions(v, variances, masks, sets, index) if is_exact else _regress(explanation, sets)
    values, spread = solve
    shape = explanation.base_values.shape
    errors = np.sqrt(np.maximum(spread, 0.0))
    return Interactions(
        values={members: one.reshape(shape) for members, one in zip(sets, values, strict=True)},
        std_errors={members: one.reshape(shape) for members, one in zip(sets, errors, strict=True)},
        index=index,
        order=order,
        is_exact=is_exact,
        n_coalitions=len(masks),
        base_values=explanation.base_values,
        predictions=explanation.predictions,
        player_names=explanation.player_names,
        output_names=explanation.output_names,
        row_labels=explanation.row_labels,
        approach=explanation.provenance.approach,
    )


def _check_order(order: Any, n_players: int) -> int:
    whole = check_integer("order", order, least=1)
    if whole == 1:
        raise OptionError("order must be at least 2, got 1. Single players have Shapley values: explanation.values.")
    if whole > n_players:
        raise OptionError(
            f"order must be at most {n_players}, the number of players, got {order!r}. More players cannot interact."
        )
    return whole


def _regress(explanation: Explanation, sets: Sequence[PlayerSet]) -> tuple[Floats, Floats]:
    """FSII and its variances, both (sets, n), from the coalitions that each row has."""
    masks, v, variances = table_columns(explanation)
    there = ~np.isnan(v)
    patterns, which = np.unique(there, axis=1, return_inverse=True)
    found = np.empty((2, len(sets), v.shape[1]))
    for number, known in enumerate(patterns.T):
        columns = which.ravel() == number
        regression = FaithfulRegression.of(masks[known], sets)
        if regression is None:
            raise CoalitionError(_undetermined(int(known.sum()), sets, len(explanation.player_names)))
        found[:, :, columns] = regression.solve(v[known][:, columns], variances[known][:, columns])
    return found[0], found[1]


def _undetermined(n_known: int, sets: Sequence[PlayerSet], n_players: int) -> str:
    order, least = len(sets[-1]), len(sets)
    cause = (
        "too few"
        if n_known < least
        else "they cannot tell some sets of players apart, or leave nothing to judge the fit by"
    )
    lower = "ask for a lower order, " if order > 2 else ""
    return (
        f"FSII of order {order} for {n_players} players must come from coalitions that determine its {least} numbers, got "
        f"{n_known} coalitions in a row: {cause}. Explain with n_coalitions of {min(3 * least, 2**n_players)} or more, with "
        f"all {2**n_players}, without asymmetric=True, {lower}or use groups to have fewer players."
    )
