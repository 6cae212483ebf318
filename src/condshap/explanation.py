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
from condshap.games.interactions import Interactions, find_interactions
from condshap.games.owen import OwenValues, Unions, find_owen
from condshap.numerics.row_means import shared_coalitions
from condshap.options import as_path, floats_or_nan
from condshap.tables.feature_columns import feature_columns
from condshap.tables.reading import Column
from condshap.types import Floats, Masks, Table
from condshap.values.table import ValueTable
from condshap.views.cohorts import split
from condshap.views.rows import labels_of
from condshap.views.selecting import Others, check_whole, select
from condshap.views.summaries import Sizes, Summary, summarise

if TYPE_CHECKING:
    import shap

OTHERS = "other players"
"""Column of `Explanation.to_frame` for players that were left out."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """How an explanation was made: enough to make it again."""

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
    """Target precision with ``n_coalitions="auto"``, else None."""
    reached: float | None = None
    """The worst row's largest standard error, relative to its spread; compare it with `tolerance`."""
    n_iterations: int | None = None
    """How often coalitions were added, including the first time."""
    draw_check: DrawCheck | None = None
    """Whether draws look like the training rows, see `DrawCheck`; None if that was not checked."""
    model_errors_from: str | None = None
    """Where `Explanation.model_errors` come from: "members", "refits" or "given"; None if they were not estimated."""
    made_by: str = ""
    """Digest of training rows, approach, options, seed and model; `Explainer.refine` recognises its own by it."""
    causal_ordering: tuple[tuple[str, ...], ...] | None = None
    """Components of players, causes first, where they count."""
    confounding: tuple[bool, ...] | None = None
    """Whether each component is confounded, where v(S) is causal; None where it is conditional."""
    asymmetric: bool = False
    """Whether only orders of players that respect `causal_ordering` count."""

    link: str | None = None
    """Scale of the values: "logit" for log-odds, None for that of the prediction."""
    loss: str | None = None
    """Loss whose decrease is shared out, None where it is the prediction."""
    has_table: bool = True
    """Whether v(S) was kept, of which MSEv and interactions are made."""
    amortised: dict[str, Any] | None = None
    """Of which labels the network was made that gave these values, and its relative error on held-out rows; else None."""
    n_learned: int | None = None
    """Training rows that the approach learned from, where they are a random part of very many; None for all of them."""

    @property
    def question(self) -> str:
        """What kind of values these are, in a few words."""
        kinds = ["amortised"] * (self.amortised is not None) + ["asymmetric"] * self.asymmetric
        kinds.append("causal" if self.confounding is not None else "conditional")
        if self.causal_ordering is None:
            return " ".join(kinds)
        components = [", ".join(component) for component in self.causal_ordering]
        marked = zip(components, self.confounding or (False,) * len(components), strict=True)
        order = " -> ".join(f"{names} (confounded)" if confounded else names for names, confounded in marked)
        return f"{' '.join(kinds)}, in the order {order}"

    @property
    def no_table(self) -> str:
        """Why there is no v(S), and what to do about it; empty where there is."""
        if self.has_table:
            return ""
        if self.amortised is not None:
            return "amortised values come without v(S). Explain these rows with the explainer that taught the network."
        return "v(S) was not kept. Explain these rows with values='full'."

    @property
    def no_msev(self) -> str:
        """Why MSEv does not judge such values; empty where it does."""
        if self.amortised is not None:
            return "it is made of v(S), and these values are amortised: they come without v(S)"
        if not self.has_table:
            return "it is made of v(S), which was not kept"
        if self.loss is not None:
            return "it judges predictions, and these values are shares of a loss"
        if self.confounding is not None:
            return f"it judges conditional v(S), and these values are {self.question}"
        return "it judges probabilities, and these values are log-odds" if self.link is not None else ""


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """Conditional Shapley values of R rows and P players, with their uncertainty.

    Attributes
    ----------
    values : (R, P), or (R, P, O) when the model has several outputs
    base_values : (R,) or (R, O), v of the empty coalition
    predictions : (R,) or (R, O); ``base_values + values.sum(1) == predictions`` to 1e-9
    std_errors : shape of `values`; Monte Carlo plus coalition-sampling error, 0 where nothing is random, NaN where it is
        unknown: a single sample (``n_samples=1``) says nothing about its own error
    model_errors : shape of `values`; how far values are off because the features' distribution was learned. Where networks
        or regressors are averaged, this is their training error, estimated from how far they differ; else 0.
        `Explainer.estimate_model_errors` also estimates the error due to few training rows.
        `provenance.model_errors_from` says which of these it is
    value_table : v(S) for all coalitions used; NaN for those that ``n_coalitions="auto"`` did not need for a row. None where
        it was not kept, see `without_table`
    data : the explained rows as given
    feature_names, player_names, output_names : names; players are features or groups of them
    membership : for every player the positions of its features
    provenance : versions, seed, approach and its options, timings, repairs, warnings
    others : None, or what was left out by ``explanation[:, players]``, see there
    unlike_pool : (R,) rows that a `FastExplainer` has flagged as unlike its pool; None where no such explainer was asked

    Notes
    -----
    ``explanation[rows, players, outputs]`` selects by position, slice, list or mask, players and outputs also by name, rows
    also by the label of a pandas index: ``explanation[:10]``, ``explanation["A17"]``, ``explanation[:, "age"]``,
    ``explanation[..., "yes"]``, ``explanation[3, :, "yes"]``. Axes of rows and players stay, lists on several axes do not
    pair up. An explanation of some of the players keeps base value and prediction, and the sum over the players left out as
    `others`: ``base_values + values.sum(1) + others.values == predictions``. It refuses v(S), and whatever is computed
    from v(S).
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
    others: Others | None = None
    unlike_pool: Masks | None = None

    def __post_init__(self) -> None:
        """Without an estimate, errors of the model count as zero."""
        if self.model_errors is None:
            object.__setattr__(self, "model_errors", np.zeros_like(self.values))

    @property
    def errors(self) -> Floats:
        """All errors together, shape of `values`: the root of ``std_errors**2 + model_errors**2``."""
        return np.hypot(self.std_errors, self.model_errors)

    def with_model_errors(self, errors: Floats, *, source: str = "refits") -> Explanation:
        """The same explanation with other model errors, such as those from `Explainer.estimate_model_errors`."""
        check_whole(self, "with_model_errors")
        given = floats_or_nan(errors)
        n_wrong = (~((given >= 0) & (given < np.inf))).sum()
        if given.shape != self.values.shape or n_wrong:
            raise OptionError(
                f"errors must be finite, at least 0 and of the same shape as values, {self.values.shape}, got shape "
                f"{given.shape} with {n_wrong} numbers that are negative or not finite. Pass what "
                "explainer.estimate_model_errors(X) returns for the same rows."
            )
        return replace(self, model_errors=given, provenance=replace(self.provenance, model_errors_from=source))

    @property
    def row_labels(self) -> pd.Index[Any]:
        """Labels of the rows: the index of a pandas table, else their positions."""
        return labels_of(self.data, len(self))

    @property
    def has_msev(self) -> bool:
        """Whether `msev` can judge these values."""
        return not self.provenance.no_msev and self.others is None

    @property
    def msev(self) -> MSEv:
        """EC3 of the paper (Section 4.1): how well the v(S) predict f, corrected for their Monte Carlo variance.

        NaN where that variance is unknown, as with ``n_samples=1``. Causal values and log-odds have no MSEv, see `has_msev`.
        """
        if not self.provenance.has_table:
            raise OptionError(f"MSEv is computed from v(S), but {self.provenance.no_table}")
        if self.provenance.no_msev:
            raise OptionError(
                f"MSEv cannot judge these values: {self.provenance.no_msev}. Explain the same rows without confounding, "
                "link and loss to judge the approach."
            )
        table = self.value_table
        shared = shared_coalitions(table.values)
        return mean_squared_error(self.predictions, table.values[shared], table.std_errors[shared])

    def without_table(self, data: Table) -> Explanation:
        """The same without v(S), which takes most of the space, and with other columns (R, any) in place of the features."""
        return replace(
            self,
            value_table=None,  # type: ignore[arg-type]
            data=data,
            provenance=replace(self.provenance, has_table=False),
        )

    def __len__(self) -> int:
        """Return the number of explained rows R."""
        return len(self.values)

    def __repr__(self) -> str:
        """Say what was explained, in one line."""
        outputs = f" x {len(self.output_names)} outputs" if self.values.ndim == 3 else ""
        kind = "all" if self.provenance.is_exact else "sampled"
        how = f"{self.provenance.n_coalitions} coalitions ({kind})"
        if self.provenance.amortised is not None:
            n_unlike = 0 if self.unlike_pool is None else int(self.unlike_pool.sum())
            how = "amortised" + (f", {n_unlike} rows unlike the pool" if n_unlike else "")
        of = "" if self.others is None else f" of {len(self.player_names) + len(self.others.names)}"
        return (
            f"Explanation({len(self)} rows x {len(self.player_names)}{of} players{outputs}, "
            f"approach={self.provenance.approach!r}, {how})"
        )

    def _repr_html_(self) -> str:
        """What a notebook shows: the first rows and a bar chart."""
        from condshap.reporting.notebook import explanation_html  # whose package makes pages of explanations

        return explanation_html(self)

    def __getitem__(self, key: Any) -> Explanation:
        """Explanation of some rows, players or outputs, see above; a single row gives an explanation of one row."""
        return select(self, key)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """The values, for NumPy's functions."""
        return np.array(self.values, dtype=dtype)

    def __abs__(self) -> Sizes:
        """Sizes of the values, for ``abs(explanation).mean(0)``."""
        return Sizes(self)

    @property
    def abs(self) -> Sizes:
        """The same as ``abs(explanation)``, as shap spells it."""
        return Sizes(self)

    def mean(self, axis: int = 0) -> Summary:
        """Mean Shapley value of every player over rows."""
        return summarise(self, "mean", axis, is_size=False)

    def max(self, axis: int = 0) -> Summary:
        """Largest Shapley value of every player over rows."""
        return summarise(self, "max", axis, is_size=False)

    def min(self, axis: int = 0) -> Summary:
        """Smallest Shapley value of every player over rows."""
        return summarise(self, "min", axis, is_size=False)

    def sum(self, axis: int = 0) -> Summary:
        """Sum of the Shapley values of every player over rows."""
        return summarise(self, "sum", axis, is_size=False)

    def cohorts(self, by: Any) -> dict[str, Explanation]:
        """Explanations of cohorts of rows by name, which `plots.bar` draws side by side.

        Parameters
        ----------
        by : a label for each row (those of a pandas Series that has all labels of the rows in its index are matched by it,
            all others by position); the name of a feature with levels or few numbers; or a number of cohorts, which are then
            the leaves of a regression tree that puts rows with similar Shapley values together
        """
        return split(self, by)

    def to_frame(self, *, errors: bool = False) -> pd.DataFrame:
        """One line per row (and output): base value, the players' Shapley values, prediction.

        If only some of the players were selected, one more column has the sum over all others, so that lines still add up.
        With `errors`, every player also gets a column with the total error of its values.
        """
        n_rows, n_players = self.values.shape[:2]
        values = self.values.reshape(n_rows, n_players, -1).swapaxes(1, 2).reshape(-1, n_players)
        columns = list(self.player_names)
        base, prediction = (_free_name(name, columns) for name in ("base_value", "prediction"))
        frame = pd.DataFrame(values, columns=columns)
        frame.insert(0, base, self.base_values.ravel())
        if self.others is not None:
            frame[_free_name(OTHERS, columns)] = self.others.values.ravel()
        frame[prediction] = self.predictions.ravel()
        if errors:
            all_errors = self.errors.reshape(n_rows, n_players, -1).swapaxes(1, 2).reshape(-1, n_players)
            for name, column in zip(self.player_names, all_errors.T, strict=True):
                frame[_free_name(f"error of {name}", list(frame.columns))] = column
            if self.others is not None:
                frame[_free_name(f"error of {OTHERS}", list(frame.columns))] = self.others.errors.ravel()
        frame.index = self.row_labels if self.values.ndim == 2 else _with_outputs(self.row_labels, self.output_names)
        return frame

    def interactions(self, index: str = "k-SII", order: int = 2) -> Interactions:
        """What players do together beyond what they do apart, from the values v(S) of this explanation.

        Parameters
        ----------
        index : "k-SII", "STII" or "FSII", which share the prediction out among sets of at most `order` players; "SII" or
            "BII", which measure each set by itself. All need v(S) of all coalitions, except "FSII", which a regression
            also estimates from sampled ones
        order : size of the largest sets, from 2 to the number of players
        """
        return find_interactions(self, index, order)

    def owen(self, unions: Unions) -> OwenValues:
        """Owen values: players stay single, but unions of them enter together; needs v(S) of all coalitions.

        Parameters
        ----------
        unions : names of unions with lists of their players, for example ``{"size": ["a", "b"], "rest": ["c"]}``; a mapping
            in place of a list makes unions inside a union. Every player is in exactly one of them
        """
        return find_owen(self, unions)

    def to_shap(self) -> shap.Explanation:
        """The same as a `shap.Explanation`, for shap's plots; needs the package shap."""
        import shap

        data = display = None
        if all(len(members) == 1 for members in self.membership):
            every = feature_columns(self)
            columns = [every[members[0]] for members in self.membership]
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

    def save(self, path: str | Path) -> None:
        """Save to one Parquet file: one line per explained row, everything else as JSON in its metadata."""
        from condshap.storage.explanations import save_explanation  # which makes explanations itself

        check_whole(self, "save")
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
