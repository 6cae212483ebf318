"""Joint frequencies of categorical features, summed exactly: no sampling at all."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, fields
from typing import ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator

from condshap.approaches.base import Capabilities, State
from condshap.coalitions import CoalitionPlan
from condshap.exceptions import OptionError, SchemaError, listing
from condshap.numerics.cell_chains import Branches, CellChain
from condshap.numerics.chains import Chain
from condshap.options import as_number, check_choice
from condshap.schema import FeatureSchema, Kind
from condshap.storage.plain_values import restored_options, stored_options
from condshap.tables.reading import to_pandas
from condshap.types import Floats, Indices, Masks, Outputs, Rows, Table, Values

Codes: TypeAlias = npt.NDArray[np.int32]
Predict: TypeAlias = Callable[[Rows], Outputs]

_PROBABILITY = "joint_prob"
_SUM_TOLERANCE = 1e-3
_MAX_KEYS = 2**22  # size of the look-up table from keys to explained rows: 16 MiB
_ROWS_AT_ONCE = 2000  # for these a key and one more column always fit: 2001 groups times 2001 levels
_MODEL_ROWS = 2**17
_MOST_BRANCHES = 2**20  # cells after causal chains that are held at once: some 100 MiB
_CHAINED_ROWS = 256


class Categorical(BaseEstimator):  # type: ignore[misc]
    """Joint frequency table of the training rows; v(S) is an exact sum over the cells that agree with x_S.

    Parameters
    ----------
    epsilon : positive number
        Count, in training rows, of a cell that is explained but was never seen in training. Without it, no cell might agree
        with x_S.
    joint_table : table, optional
        Your own probabilities instead of frequencies: one column per feature and a column ``joint_prob`` that sums to 1.
        Combinations left out have probability zero; if one is explained, it counts `epsilon` as well, that is, a
        probability of `epsilon` divided by the number of training rows.
    share_unseen : bool
        False: each row adds only its own unseen cell, so its values do not depend on the other rows. True: the unseen cells
        of all rows explained together enter the table, each once, as in R's shapr.

    Notes
    -----
    Appendix E of the paper. With p the counts and f the model, v(S, x) = sum p(c) f(c) / sum p(c) over the cells c with
    c_S = x_S. Such a cell already has the known columns of x, so the model predicts each cell once, whatever the coalition.

    Along a causal chain v(S) is a sum over all cells that x may come to lie in, seen or not, see `numerics.cell_chains`.
    """

    name: ClassVar[str] = "categorical"
    supports: ClassVar[frozenset[Kind]] = frozenset({Kind.CATEGORICAL})
    handles_missing: ClassVar[bool] = False
    needs_model: ClassVar[bool] = True
    capabilities: ClassVar[Capabilities] = Capabilities(
        samples=False, is_storable=True, checks_options=True, follows_chains=True
    )  # fmt: skip
    chain_: Chain | None = None

    def __init__(self, epsilon: float = 0.001, joint_table: Table | None = None, share_unseen: bool = False) -> None:
        self.epsilon = epsilon
        self.joint_table = joint_table
        self.share_unseen = share_unseen

    def check_options(self, X: Rows, schema: FeatureSchema, *, plan: CoalitionPlan) -> None:
        """Refuse an `epsilon` that is no count, and a `joint_table` that does not fit rows (N, M)."""
        _check_epsilon(self.epsilon)
        check_choice("share_unseen", self.share_unseen, (True, False))
        if self.joint_table is not None:
            _read_joint_table(self.joint_table, X, schema)

    def fit(
        self,
        X: Rows,
        predictions: Outputs,
        schema: FeatureSchema,
        *,
        plan: CoalitionPlan,
        seed: int,
        predict: Predict,
    ) -> Categorical:
        """Count the cells of the training rows (N, M), or read the given table, and predict every cell once."""
        _check_epsilon(self.epsilon)
        self.predict_ = predict
        if self.joint_table is None:
            cells, first, counts = np.unique(X.astype(np.int32), axis=0, return_index=True, return_counts=True)
            self.table_ = _CellTable(cells, counts.astype(np.float64), predictions[first])
        else:
            cells, probabilities = _read_joint_table(self.joint_table, X, schema)
            self.table_ = _CellTable(cells, probabilities * len(X), _predict(predict, cells))
        return self

    def estimate(self, X: Rows, masks: Masks) -> Values:
        """Sum over the cells that agree with each row of `X` (R, M) in each of `masks` (C, M); (C, R, O)."""
        rows = X.astype(np.int32)
        everything = np.ones((1, X.shape[1]), dtype=bool)
        table, unseen = self.table_, np.flatnonzero(self.table_.sums(rows, everything)[0, :, 0] == 0)
        epsilon = float(self.epsilon)
        if self.share_unseen and len(unseen):
            cells = np.unique(rows[unseen], axis=0)
            table, unseen = table.extended(cells, epsilon, _predict(self.predict_, cells)), unseen[:0]
        if self.chain_ is not None:
            own = np.zeros(len(rows))
            own[unseen] = epsilon
            return self._sum_along(CellChain(table.cells, table.weights, self.chain_), rows, own, masks)
        sums = table.sums(rows, masks)
        if len(unseen):
            cells, cell = np.unique(rows[unseen], axis=0, return_inverse=True)  # equal rows are predicted once
            sums[:, unseen, 0] += epsilon
            sums[:, unseen, 1:] += epsilon * _predict(self.predict_, cells)[cell.reshape(-1)]
        return np.asarray(sums[..., 1:] / sums[..., :1])

    def along(self, chain: Chain) -> Categorical:
        """Copy whose v(S) is that after x_known was set: nothing is drawn there either."""
        chained = copy(self)
        chained.chain_ = chain
        return chained

    def _sum_along(self, chain: CellChain, rows: Codes, own: Floats, masks: Masks) -> Values:
        """Sum over the cells that rows come to lie in, (C, R, O); `own` (R,) is what their own cells count."""
        starts = range(0, len(rows), _CHAINED_ROWS)
        blocks = [(rows[i : i + _CHAINED_ROWS], own[i : i + _CHAINED_ROWS]) for i in starts]
        return np.concatenate([self._sum_block(chain, *block, masks) for block in blocks], axis=1)

    def _sum_block(self, chain: CellChain, rows: Codes, own: Floats, masks: Masks) -> Values:
        values: list[Values] = []
        waiting: list[tuple[Indices, int, Branches]] = []
        for c, mask in enumerate(masks):
            # rows that were set to the same have the same v(S), but for cells of their own
            setting = np.where(mask | (own > 0)[:, None], rows, -1)
            _, first, which = np.unique(setting, axis=0, return_index=True, return_inverse=True)
            waiting.append((which.reshape(-1), len(first), chain.after(rows[first], own[first], mask)))
            if c == len(masks) - 1 or sum(len(branches.rows) for *_, branches in waiting) >= _MOST_BRANCHES:
                values += self._mean_outputs(waiting)
                waiting = []
        return np.stack(values)

    def _mean_outputs(self, waiting: list[tuple[Indices, int, Branches]]) -> list[Values]:
        """Mean outputs (R, O) over branches, of several coalitions at once, so that each cell is predicted once."""
        cells = np.concatenate([branches.cells for *_, branches in waiting])
        cells, cell = np.unique(cells, axis=0, return_inverse=True)
        outputs, ends = _predict(self.predict_, cells), np.cumsum([len(branches.rows) for *_, branches in waiting])
        found = []
        for (which, n, branches), places in zip(waiting, np.split(cell.reshape(-1), ends[:-1]), strict=True):
            means = [np.bincount(branches.rows, branches.shares * output[places], n) for output in outputs.T]
            found.append(np.stack(means, axis=1)[which])
        return found

    def to_state(self) -> State:
        """Store the cells, their weights and the model's outputs for them."""
        return stored_options(self).extended({f.name: getattr(self.table_, f.name) for f in fields(_CellTable)})

    @classmethod
    def from_state(cls, state: State, *, predict: Predict) -> Categorical:
        """Inverse of `to_state`."""
        approach = cls(**restored_options(state))
        approach.table_ = _CellTable(**{f.name: state.arrays[f.name] for f in fields(_CellTable)})
        approach.predict_ = predict
        return approach


@dataclass(frozen=True, slots=True)
class _CellTable:
    """Distinct cells (D, M) with their weights (D,) and the model's outputs (D, O)."""

    cells: Codes
    weights: Floats
    outputs: Outputs

    def extended(self, cells: Codes, weight: float, outputs: Outputs) -> _CellTable:
        """Table with further cells, all of one weight."""
        return _CellTable(
            np.concatenate([self.cells, cells]),
            np.concatenate([self.weights, np.full(len(cells), weight)]),
            np.concatenate([self.outputs, outputs]),
        )

    def sums(self, rows: Codes, masks: Masks) -> Floats:
        """Weight, then weight times output, summed over the cells that agree with each row; (C, R, 1 + O)."""
        terms = [self.weights, *(self.weights * output for output in self.outputs.T)]
        sums = np.empty((len(masks), len(rows), len(terms)))
        positions = np.zeros(_MAX_KEYS, dtype=np.int32)
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            block = slice(start, start + _ROWS_AT_ONCE)
            columns = [_match(cells, own) for cells, own in zip(self.cells.T, rows[block].T, strict=True)]
            for c, mask in enumerate(masks):
                known = [columns[j] for j in np.flatnonzero(mask)]
                group_of_cell, group_of_row, n_groups = _group(known, len(self.cells), positions)
                for o, term in enumerate(terms):
                    sums[c, block, o] = np.bincount(group_of_cell, term, n_groups)[group_of_row]
        return sums


@dataclass(frozen=True, slots=True)
class _Matched:
    """One column of the cells (D,) and of the explained rows (R,) as codes below `n_codes` that agree where levels do."""

    cells: Indices
    rows: Indices
    n_codes: int


def _match(cells: Codes, rows: Codes) -> _Matched:
    """Codes of one column; levels that no explained row has are all one code, because which of them does not matter."""
    levels, codes = np.unique(rows, return_inverse=True)
    n_levels = 1 + int(max(cells.max(), rows.max()))
    lookup = np.zeros(n_levels, dtype=np.intp)
    has_others = len(levels) < n_levels
    lookup[levels] = np.arange(len(levels)) + has_others
    return _Matched(lookup[cells], codes.reshape(-1) + has_others, len(levels) + has_others)


def _group(known: list[_Matched], n_cells: int, positions: Codes) -> tuple[Indices, Indices, int]:
    """Groups of cells (D,) and rows (R,) that agree in all known columns, and the number of groups.

    Codes are joined into one number, column by column. Before it outgrows the table of `positions`, which is all zero
    between calls, only the keys of explained rows are kept apart; so any number of columns and levels fits.
    """
    if not known:
        return np.zeros(n_cells, dtype=np.intp), np.zeros(1, dtype=np.intp), 1
    cells, rows, n_keys = known[0].cells, known[0].rows, known[0].n_codes
    for column in known[1:]:
        if n_keys * column.n_codes > len(positions):
            cells, rows, n_keys = _compress(cells, rows, positions)
        cells = cells * column.n_codes + column.cells
        rows = rows * column.n_codes + column.rows
        n_keys *= column.n_codes
    return _compress(cells, rows, positions)


def _compress(cells: Indices, rows: Indices, positions: Codes) -> tuple[Indices, Indices, int]:
    """Number the keys of the explained rows from 1; every other key of a cell becomes 0."""
    keys, number = np.unique(rows, return_inverse=True)
    positions[keys] = np.arange(1, len(keys) + 1)
    found = positions[cells].astype(np.intp)
    positions[keys] = 0
    return found, number.reshape(-1) + 1, len(keys) + 1


def _predict(predict: Predict, cells: Codes) -> Outputs:
    """Outputs (D, O) of the model for cells, in batches."""
    parts = [predict(cells[i : i + _MODEL_ROWS].astype(np.float64)) for i in range(0, len(cells), _MODEL_ROWS)]
    return np.concatenate(parts)


def _check_epsilon(epsilon: object) -> None:
    if not 0 < as_number(epsilon) < np.inf:
        raise OptionError(
            f"epsilon must be a positive number, the count of a cell never seen in training, got {epsilon!r}. "
            "Use a small one such as 0.001."
        )


def _read_joint_table(table: Table, X: Rows, schema: FeatureSchema) -> tuple[Codes, Floats]:
    """Distinct cells (D, M) of positive probability (D,) of a given table, checked against the training rows."""
    frame = to_pandas(table)
    if _PROBABILITY not in frame.columns:
        raise SchemaError(
            f"joint_table must have a column '{_PROBABILITY}', got the columns {listing(frame.columns)}. Add the "
            "probability of every row."
        )
    probabilities = _read_probabilities(frame[_PROBABILITY])
    try:
        encoded = schema.encode(frame.drop(columns=_PROBABILITY))
    except SchemaError as error:
        raise SchemaError(
            f"joint_table must have the features of the training rows besides '{_PROBABILITY}': {error}"
        ) from None
    _check_levels(encoded, X, schema)
    possible = probabilities > 0
    cells, cell = np.unique(encoded[possible].astype(np.int32), axis=0, return_inverse=True)
    summed = np.bincount(cell.reshape(-1), probabilities[possible], len(cells))
    return cells, summed / summed.sum()


def _read_probabilities(column: pd.Series) -> Floats:
    numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    wrong = np.flatnonzero(~((numbers >= 0) & (numbers <= 1 + _SUM_TOLERANCE)))
    if len(wrong):
        raise OptionError(
            f"joint_table must have probabilities from 0 to 1 in '{_PROBABILITY}', got {listing(column.iloc[wrong])} in "
            f"rows {listing(wrong.tolist())}. Correct these rows."
        )
    total = float(numbers.sum())
    if abs(total - 1) > _SUM_TOLERANCE:
        raise OptionError(
            f"joint_table must have probabilities that sum to 1 in '{_PROBABILITY}', got a sum of {total:.6g} over "
            f"{len(numbers)} rows. Divide them by their sum, or add the missing combinations."
        )
    return numbers


def _check_levels(encoded: Rows, X: Rows, schema: FeatureSchema) -> None:
    """Every level that occurs in training must occur in the table, and the table must be complete."""
    for feature, given, trained in zip(schema.features, encoded.T, X.T, strict=True):
        gaps = np.flatnonzero(np.isnan(given))
        if len(gaps):
            raise SchemaError(
                f"joint_table must be complete, got missing values in column '{feature.name}', rows "
                f"{listing(gaps.tolist())}. Drop these rows or fill in their level."
            )
        assert feature.levels is not None
        absent = [feature.levels[int(code)] for code in np.setdiff1d(trained, given)]
        if absent:
            raise SchemaError(
                f"joint_table must cover the levels of the training rows, but column '{feature.name}' has no "
                f"{listing(absent)}. Add the combinations with these levels, with probability 0 if they are impossible."
            )


APPROACH = Categorical
