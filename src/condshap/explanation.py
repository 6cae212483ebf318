"""Arrays -> explanation: what a user holds in the end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from condshap.draw_check.result import DrawCheck
from condshap.evaluation import MSEv, mean_squared_error
from condshap.exceptions import OptionError
from condshap.numerics.row_means import shared_coalitions
from condshap.options import as_path, floats_or_nan
from condshap.tables.reading import Column, read_columns, take_rows, to_pandas
from condshap.types import Floats, Table
from condshap.values.table import ValueTable

if TYPE_CHECKING:
    import shap

    from condshap.games.interactions import Interactions
    from condshap.games.owen import OwenValues, Unions


@dataclass(frozen=True, slots=True)
class Provenance:
    """How an explanation came about: enough to make it again."""

    approach: str
    options: dict[str, Any]
    seed: int
    n_samples: tuple[int, ...]
    n_coalitions: int
    is_exact: bool
    n_repaired: int
    base_value_from: str
    seconds: dict[str, float]
    versions: dict[str, str]
    warnings: tuple[str, ...] = ()
    tolerance: float | None = None
    """Wanted precision with ``n_coalitions="auto"``, else None."""
    reached: float | None = None
    """Largest standard error over the row's spread, of the worst row; to be compared with `tolerance`."""
    n_iterations: int | None = None
    """How often coalitions were added, the first ones included."""
    draw_check: DrawCheck | None = None
    """Whether draws look like the training rows, see there; None where that was not looked at."""
    model_errors_from: str | None = None
    """Where `Explanation.model_errors` come from: "members", "refits" or "given"; None where nobody estimated them."""
    made_by: str = ""
    """Digest of training rows, approach, options, seed and model, by which `Explainer.refine` knows its own."""


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """Conditional Shapley values of R rows and P players, with their uncertainty.

    Attributes
    ----------
    values : (R, P), or (R, P, O) when the model has several outputs
    base_values : (R,) or (R, O), v of the empty coalition
    predictions : (R,) or (R, O); ``base_values + values.sum(1) == predictions`` to 1e-9
    std_errors : shape of `values`; Monte Carlo plus coalition-sampling error, 0 where nothing is random, NaN where it is not
        known: a single sample (``n_samples=1``) tells nothing about its own error
    model_errors : shape of `values`; how far values are off because the features' distribution was learned. Where networks
        or regressors are averaged, the error of their training, from how far they differ; else 0. What few training rows
        add is estimated by `Explainer.estimate_model_errors`, on demand. `provenance.model_errors_from` tells which
    value_table : v(S) for all coalitions used; NaN where ``n_coalitions="auto"`` did without one for a row
    data : the explained rows as given
    feature_names, player_names, output_names : names; players are features or groups of them
    membership : for every player the positions of its features
    provenance : versions, seed, approach and its options, timings, repairs, warnings
    """

    values: Floats
    base_values: Floats
    predictions: Floats
    std_errors: Floats
    value_table: ValueTable
    data: Table
    feature_names: tuple[str, ...]
    player_names: tuple[str, ...]
    output_names: tuple[str, ...]
    membership: tuple[tuple[int, ...], ...]
    provenance: Provenance
    model_errors: Floats = None  # type: ignore[assignment]  # zeros of the right shape, see below

    def __post_init__(self) -> None:
        """Without an estimate, errors of the model count as zero."""
        if self.model_errors is None:
            object.__setattr__(self, "model_errors", np.zeros_like(self.values))

    @property
    def errors(self) -> Floats:
        """All errors together, shape of `values`: the root of ``std_errors**2 + model_errors**2``."""
        return np.hypot(self.std_errors, self.model_errors)

    def with_model_errors(self, errors: Floats, *, source: str = "refits") -> Explanation:
        """The same explanation with other errors of the model, such as `Explainer.estimate_model_errors` gives."""
        given = floats_or_nan(errors)
        if given.shape != self.values.shape or not ((given >= 0) & (given < np.inf)).all():
            raise OptionError(
                f"errors must be finite numbers of at least 0 in the shape of the values, {self.values.shape}, got shape "
                f"{given.shape}. Pass what explainer.estimate_model_errors(X) gives for the same rows."
            )
        return replace(self, model_errors=given, provenance=replace(self.provenance, model_errors_from=source))

    @property
    def msev(self) -> MSEv:
        """EC3 of the paper (Section 4.1): how well the v(S) predict f, corrected for their Monte Carlo variance.

        NaN where that variance is not known, with ``n_samples=1``.
        """
        table = self.value_table
        shared = shared_coalitions(table.values)
        return mean_squared_error(self.predictions, table.values[shared], table.std_errors[shared])

    def __len__(self) -> int:
        """Return the number of explained rows R."""
        return len(self.values)

    def __repr__(self) -> str:
        """Say what was explained, in one line."""
        outputs = f" x {len(self.output_names)} outputs" if self.values.ndim == 3 else ""
        kind = "all" if self.provenance.is_exact else "sampled"
        return (
            f"Explanation({len(self)} rows x {len(self.player_names)} players{outputs}, "
            f"approach={self.provenance.approach!r}, {self.provenance.n_coalitions} coalitions ({kind}))"
        )

    def _repr_html_(self) -> str:
        """What a notebook shows: the first rows and a bar chart."""
        from condshap.reporting.notebook import explanation_html

        return explanation_html(self)

    def __getitem__(self, rows: int | slice | list[int] | np.ndarray[Any, Any]) -> Explanation:
        """Explanation of some of the rows; a single position gives an explanation of one row."""
        chosen = np.arange(len(self))[rows]
        chosen = np.atleast_1d(chosen)
        table = self.value_table
        return replace(
            self,
            values=self.values[chosen],
            base_values=self.base_values[chosen],
            predictions=self.predictions[chosen],
            std_errors=self.std_errors[chosen],
            model_errors=self.model_errors[chosen],
            value_table=replace(table, values=table.values[:, chosen], std_errors=table.std_errors[:, chosen]),
            data=take_rows(self.data, chosen),
        )

    def to_frame(self, *, errors: bool = False) -> pd.DataFrame:
        """One line per row (and output): base value, the players' Shapley values, prediction.

        With `errors`, every player has a column for the error of its values, too: all errors together.
        """
        n_rows, n_players = self.values.shape[:2]
        values = self.values.reshape(n_rows, n_players, -1).swapaxes(1, 2).reshape(-1, n_players)
        columns = list(self.player_names)
        base, prediction = (_free_name(name, columns) for name in ("base_value", "prediction"))
        frame = pd.DataFrame(values, columns=columns)
        frame.insert(0, base, self.base_values.ravel())
        frame[prediction] = self.predictions.ravel()
        if errors:
            all_errors = self.errors.reshape(n_rows, n_players, -1).swapaxes(1, 2).reshape(-1, n_players)
            for name, column in zip(self.player_names, all_errors.T, strict=True):
                frame[_free_name(f"error of {name}", list(frame.columns))] = column
        labels = self.data.index if isinstance(self.data, pd.DataFrame) else pd.RangeIndex(n_rows)
        frame.index = labels if self.values.ndim == 2 else _with_outputs(labels, self.output_names)
        return frame

    def interactions(self, index: str = "k-SII", order: int = 2) -> Interactions:
        """What players do together beyond what they do apart, from the values v(S) of this explanation.

        Parameters
        ----------
        index : "k-SII", "STII" or "FSII", which share the prediction out among sets of at most `order` players; "SII" or
            "BII", which measure each set by itself. All need v(S) of all coalitions, but "FSII", which a regression also
            estimates from sampled ones
        order : size of the largest sets, from 2 to the number of players
        """
        from condshap.games.interactions import find_interactions

        return find_interactions(self, index, order)

    def owen(self, unions: Unions) -> OwenValues:
        """Owen values: players stay single, but unions of them enter together; needs v(S) of all coalitions.

        Parameters
        ----------
        unions : names of unions with lists of their players, for example ``{"size": ["a", "b"], "rest": ["c"]}``; a mapping
            in place of a list makes unions inside a union. Every player is in exactly one of them
        """
        from condshap.games.owen import find_owen

        return find_owen(self, unions)

    def to_shap(self) -> shap.Explanation:
        """The same as a `shap.Explanation`, for shap's plots; needs the package shap."""
        import shap

        data = display = None
        if len(self.player_names) == len(self.feature_names):
            columns = read_columns(self._aligned_data())
            data = np.column_stack([_for_colour(column) for column in columns])
            display = np.column_stack([_for_display(column) for column in columns])
        several = self.values.ndim == 3
        return shap.Explanation(
            values=self.values,
            base_values=self.base_values,
            data=data,
            display_data=display,
            feature_names=list(self.player_names),
            output_names=list(self.output_names) if several else None,
            error_std=self.errors,
        )

    def _aligned_data(self) -> pd.DataFrame:
        """The rows with their columns in the order of the players, each of which is one feature here."""
        frame = to_pandas(self.data)
        names = [str(name) for name in frame.columns]
        if set(names) == set(self.feature_names):
            frame = frame.iloc[:, [names.index(name) for name in self.feature_names]]
        return frame.iloc[:, [members[0] for members in self.membership]]

    def save(self, path: str | Path) -> None:
        """Write to one Parquet file: one line per explained row, everything else as JSON in its metadata."""
        from condshap.storage.explanations import save_explanation

        save_explanation(self, as_path(path))


def _free_name(name: str, taken: list[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _with_outputs(labels: pd.Index[Any], outputs: tuple[str, ...]) -> pd.MultiIndex:
    """Row labels, each repeated for every output, and the outputs."""
    rows = labels.repeat(len(outputs))
    levels = [rows.get_level_values(i) for i in range(rows.nlevels)]
    return pd.MultiIndex.from_arrays([*levels, list(outputs) * len(labels)], names=[*labels.names, "output"])


def _for_colour(column: Column) -> Floats:
    """Numbers as they are, labels by the order of their levels, for plots that colour by value."""
    if column.numbers is not None:
        return column.numbers
    assert column.codes is not None
    return np.where(column.codes < 0, np.nan, column.codes.astype(np.float64))


def _for_display(column: Column) -> np.ndarray[Any, np.dtype[np.object_]]:
    """Numbers as they are, labels as text, for plots that write values."""
    if column.numbers is not None:
        return column.numbers.astype(object)
    texts = np.array([*(str(level) for level in column.levels), "missing"], dtype=object)
    return np.asarray(texts[column.codes])
