"""Arrays -> loss explanation: which features a model needs, row by row and on average over rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from condshap.explanation import Explanation, Provenance
from condshap.numerics.readable import number
from condshap.numerics.row_means import over_rows
from condshap.options import as_path
from condshap.tables.reading import take_rows
from condshap.types import Floats, Table
from condshap.values.table import ValueTable
from condshap.views.rows import labels_of, row_positions


@dataclass(frozen=True, slots=True, eq=False)
class LossExplanation:
    """Shares of P players in how much knowing all of them lowers the loss of R rows, with their uncertainty.

    Attributes
    ----------
    values : (R, P) by how much a player lowers the loss of a row; negative ones raise it
    std_errors : (R, P) Monte Carlo plus coalition-sampling error
    base_losses : (R,) losses of the base value, which knows no feature
    losses : (R,) losses of the predictions; ``base_losses - losses == values.sum(1)`` to rounding
    loss : name of the loss, or of the function
    value_table : the game, minus the loss of v(S), without the bias that noise of v(S) brings; NaN where
        ``n_coalitions="auto"`` did without a coalition for a row
    data : the explained rows as given
    feature_names, player_names : names; players are features or groups of them
    membership : for every player the positions of its features
    provenance : how it was made, as for an `Explanation`
    """

    values: Floats
    std_errors: Floats
    base_losses: Floats
    losses: Floats
    loss: str
    value_table: ValueTable
    data: Table
    feature_names: tuple[str, ...]
    player_names: tuple[str, ...]
    membership: tuple[tuple[int, ...], ...]
    provenance: Provenance

    @property
    def output_names(self) -> tuple[str, ...]:
        """What is shared out: minus the loss, whatever the outputs of the model."""
        return (f"minus {self.loss}",)

    @property
    def row_labels(self) -> pd.Index[Any]:
        """Labels of the rows: the index of a pandas table, else their positions."""
        return labels_of(self.data, len(self))

    @property
    def importance(self) -> Floats:
        """Mean of the values over rows, (P,): SAGE values (Covert, Lundberg and Lee 2020) with conditional v(S)."""
        return np.asarray(self.values.mean(axis=0))

    @property
    def importance_std_errors(self) -> Floats:
        """Standard errors of `importance`, (P,), for rows like these: rows and Monte Carlo together; NaN for one row.

        Noise of v(S) is part of how far rows differ. Coalitions that were left out are the same for all rows, so their
        errors may be as well: with sampled coalitions the mean of `std_errors` is added, an upper bound.
        """
        n = len(self)
        of_rows = over_rows(self.values, np.full(n, 1 / n))[1] if n else np.full(len(self.player_names), np.nan)
        shared = 0.0 if self.provenance.is_exact or not n else self.std_errors.mean(axis=0)
        return np.asarray(np.hypot(of_rows, shared))

    def __len__(self) -> int:
        """Return the number of explained rows R."""
        return len(self.values)

    def __repr__(self) -> str:
        """Say what was explained, in one line."""
        kind = "all" if self.provenance.is_exact else "sampled"
        return (
            f"LossExplanation({len(self)} rows x {len(self.player_names)} players, loss={self.loss!r}, "
            f"approach={self.provenance.approach!r}, {self.provenance.n_coalitions} coalitions ({kind}))"
        )

    def _repr_html_(self) -> str:
        """What a notebook shows: importance with errors."""
        from html import escape

        return f"<p><b>{escape(repr(self))}</b></p>{self.importance_frame().to_html(float_format=number)}"

    def __getitem__(self, rows: Any) -> LossExplanation:
        """Loss explanation of some of the rows; importance is then over these."""
        chosen = row_positions(self.row_labels, rows)
        table = self.value_table
        return replace(
            self,
            values=self.values[chosen],
            std_errors=self.std_errors[chosen],
            base_losses=self.base_losses[chosen],
            losses=self.losses[chosen],
            value_table=replace(table, values=table.values[:, chosen], std_errors=table.std_errors[:, chosen]),
            data=take_rows(self.data, chosen),
        )

    def to_frame(self, *, errors: bool = False) -> pd.DataFrame:
        """One line per row: base loss, by how much the players lower it, loss.

        With `errors`, every player has a column for the standard errors of its values, too.
        """
        frame = self.as_explanation().to_frame(errors=errors)
        names = list(frame.columns)
        last = len(self.player_names) + 1
        frame.columns = pd.Index([_free("base_loss", names), *names[1:last], _free("loss", names), *names[last + 1 :]])
        frame.iloc[:, 0], frame.iloc[:, last] = self.base_losses, self.losses
        return frame

    def importance_frame(self) -> pd.DataFrame:
        """One line per player: importance and its standard error, the most important first."""
        found = {"importance": self.importance, "std_error": self.importance_std_errors}
        frame = pd.DataFrame(found, index=pd.Index(self.player_names, name="player"))
        return frame.sort_values("importance", ascending=False, kind="stable")

    def as_explanation(self) -> Explanation:
        """The same as an `Explanation` of the game that is shared out, minus the loss."""
        return Explanation(
            values=self.values,
            base_values=-self.base_losses,
            predictions=-self.losses,
            std_errors=self.std_errors,
            value_table=self.value_table,
            data=self.data,
            feature_names=self.feature_names,
            player_names=self.player_names,
            output_names=self.output_names,
            membership=self.membership,
            provenance=self.provenance,
        )

    def save(self, path: str | Path) -> None:
        """Write to one Parquet file, as an explanation is; `load_explanation` reads it."""
        from condshap.storage.explanations import save_loss_explanation

        save_loss_explanation(self, as_path(path))


def loss_explanation(game: Explanation, loss: str) -> LossExplanation:
    """What `LossExplanation.as_explanation` gave, the other way round."""
    return LossExplanation(
        values=game.values,
        std_errors=game.std_errors,
        base_losses=-game.base_values,
        losses=-game.predictions,
        loss=loss,
        value_table=game.value_table,
        data=game.data,
        feature_names=game.feature_names,
        player_names=game.player_names,
        membership=game.membership,
        provenance=game.provenance,
    )


def _free(name: str, taken: list[str]) -> str:
    while name in taken:
        name += "_"
    return name
