"""Unknown features of the training rows that fall into the same leaf of a conditional inference tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from condshap.approaches.base import ALL_KINDS, ENOUGH_ROWS, Capabilities, Donors, Outcomes, State
from condshap.coalitions import CoalitionPlan
from condshap.exceptions import OptionError
from condshap.numerics.additive import AdditiveFunction, add_terms
from condshap.options import floats_or_nan
from condshap.schema import FeatureSchema, Kind
from condshap.seeding import hash_words, stream_words
from condshap.storage.plain_values import restored_options, stored_options
from condshap.types import Floats, Indices, Masks, RowKeys, Rows

_MOST_ROWS = 2**31 - 1


class Ctree(BaseEstimator):  # type: ignore[misc]
    """One conditional inference tree per coalition: x_unknown given x_known, both of any kind.

    If all rows of the leaf fit into ``n_samples``, all are donors and nothing is random; otherwise the donors are an evenly
    spaced sample with a random start. Trees are grown when first needed, and kept. Of more than 50,000 training rows, a
    random part of that size is used.

    Parameters
    ----------
    mincriterion : a node is split if one minus the adjusted p-value of the best known feature exceeds this
    minsplit : smallest node to consider splitting
    minbucket : smallest leaf
        Each of the three may be a sequence with one entry per number of known features 1, ..., M-1.

    Notes
    -----
    Appendix A of the paper; Redelmeier, Jullum and Aas (2020). The trees are those of R's party: see `condshap.ctree`.
    """

    name: ClassVar[str] = "ctree"
    supports: ClassVar[frozenset[Kind]] = ALL_KINDS
    handles_missing: ClassVar[bool] = False
    needs_model: ClassVar[bool] = False
    capabilities: ClassVar[Capabilities] = Capabilities(
        default_samples=250,
        knows_error=True,
        expects=True,
        expects_exactly=True,
        is_storable=True,
        checks_options=True,
        draws_each=True,
        most_rows=ENOUGH_ROWS,
    )

    def __init__(
        self,
        mincriterion: float | Sequence[float] = 0.95,
        minsplit: int | Sequence[int] = 20,
        minbucket: int | Sequence[int] = 7,
    ) -> None:
        self.mincriterion = mincriterion
        self.minsplit = minsplit
        self.minbucket = minbucket

    def check_options(self, X: Rows, schema: FeatureSchema, *, plan: CoalitionPlan) -> None:
        """Refuse controls outside their range, or not one per number of known features."""
        for size in range(1, len(schema)):
            self._controls(size, len(schema))

    def fit(self, X: Rows, schema: FeatureSchema, *, plan: CoalitionPlan, seed: int) -> Ctree:
        """Sort the training rows (N, M) once for all trees."""
        return self._prepare(X, [len(feature.levels or ()) for feature in schema.features])

    def _prepare(self, X: Rows, n_levels: list[int]) -> Ctree:
        """Sort rows (N, M) whose features have `n_levels` (M,) levels, 0 for numbers."""
        from condshap.ctree import TrainingTable

        self.controls_ = [self._controls(size, len(n_levels)) for size in range(1, len(n_levels))]
        self.table_ = TrainingTable.build(X, n_levels)
        self.rows_ = X
        self.trees_: dict[bytes, Any] = {}
        return self

    def to_state(self) -> State:
        """Store the training rows: from them the same trees are grown again, when they are needed."""
        return stored_options(self).extended({"rows": self.rows_}, {"n_levels": self.table_.n_levels.tolist()})

    @classmethod
    def from_state(cls, state: State) -> Ctree:
        """Inverse of `to_state`."""
        return cls(**restored_options(state))._prepare(state.arrays["rows"], state.facts["n_levels"])

    def sample(self, X: Rows, masks: Masks, n_samples: int, *, keys: RowKeys, seed: int) -> Donors:
        """Find the leaf of every row in every coalition's tree, and its donors."""
        words = stream_words(seed, self.name, masks, keys)
        start = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
        parts = [self._donors(X, mask, n_samples, start[c]) for c, mask in enumerate(masks)]
        width = max(indices.shape[1] for indices, _ in parts)
        indices = np.zeros((len(masks), len(X), width), dtype=np.intp)
        weights = np.zeros(indices.shape)
        factor = np.zeros(indices.shape[:2])
        for c, (chosen, sizes) in enumerate(parts):
            n_chosen = np.minimum(sizes, n_samples)
            indices[c, :, : chosen.shape[1]] = chosen
            weights[c] = np.arange(width) < n_chosen[:, None]
            factor[c] = 1 - n_chosen / sizes
        return Donors(indices, self.rows_, weights, error_factor=factor, may_repeat=False)

    def sample_each(self, X: Rows, mask: Masks, *, keys: RowKeys, seed: int) -> Rows:
        """Choose one donor from the leaf of each of the rows (R, K, M)."""
        flat, names = X.reshape(-1, X.shape[2]), hash_words(keys[:, None], np.arange(X.shape[1])[None]).ravel()
        words = stream_words(seed, f"{self.name} each", mask[None], names)[0]
        start = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
        chosen, _ = self._donors(flat, mask, 1, start)
        return np.where(mask, X, self.rows_[chosen[:, 0]].reshape(X.shape))

    def expect(
        self, X: Rows, masks: Masks, n_samples: int, *, function: AdditiveFunction, keys: RowKeys, seed: int
    ) -> Outcomes:
        """Means over all rows of a leaf, shape (C, R, 1, O)."""
        given, borrowed = function.terms(X), function.terms(self.rows_)
        values = np.empty((len(masks), len(X), 1, given.shape[2]))
        for c, mask in enumerate(masks):
            tree, totals = self._tree(mask), add_terms(borrowed, ~mask)
            if tree is None:
                expected = totals.mean(axis=0)
            else:
                sums = np.add.reduceat(totals[tree.leaf_rows], tree.first_row[:-1], axis=0)
                expected = (sums / tree.leaf_sizes[:, None])[tree.leaf_of(X)]
            values[c, :, 0] = function.intercept + add_terms(given, mask) + expected
        return Outcomes(values)

    def _donors(self, X: Rows, mask: Masks, n_samples: int, start: Floats) -> tuple[Indices, Indices]:
        """Positions (R, k) of at most `n_samples` donors per row, padded at the end, and the sizes (R,) of the leaves."""
        tree = self._tree(mask)
        if tree is None:  # nothing known: everybody is a donor
            rows, first, sizes = np.arange(len(self.rows_)), np.zeros(len(X), np.intp), np.full(len(X), len(self.rows_))
        else:
            leaf = tree.leaf_of(X)
            rows, first, sizes = tree.leaf_rows, tree.first_row[leaf], tree.leaf_sizes[leaf]
        steps = np.arange(min(n_samples, int(sizes.max())))
        stride = np.maximum(sizes / n_samples, 1.0)[:, None]
        spaced = np.where(stride > 1.0, np.floor((steps + start[:, None]) * stride), steps).astype(np.intp)
        return rows[first[:, None] + np.minimum(spaced, sizes[:, None] - 1)], sizes

    def _tree(self, mask: Masks) -> Any:
        """Tree of a coalition (M,), grown on first use; None if nothing or everything is known."""
        from condshap.ctree import grow_tree

        known, unknown = np.flatnonzero(mask), np.flatnonzero(~mask)
        if not len(known) or not len(unknown):
            return None
        name = mask.tobytes()
        if name not in self.trees_:  # two threads may grow the same tree: they grow the same tree
            mincriterion, minsplit, minbucket = self.controls_[len(known) - 1]
            self.trees_[name] = grow_tree(
                self.table_, known, unknown, mincriterion=mincriterion, minsplit=minsplit, minbucket=minbucket
            )
        return self.trees_[name]

    def _controls(self, size: int, n_features: int) -> tuple[float, int, int]:
        """Controls of trees with `size` known features, checked."""
        given = [
            _of_size(name, getattr(self, name), size, n_features) for name in ("mincriterion", "minsplit", "minbucket")
        ]
        mincriterion, minsplit, minbucket = given
        if not 0 <= mincriterion < 1:
            raise OptionError(f"mincriterion must be at least 0 and below 1, got {mincriterion}.")
        for name, value in (("minsplit", minsplit), ("minbucket", minbucket)):
            if not 1 <= value <= _MOST_ROWS or value != int(value):
                raise OptionError(f"{name} must be an integer from 1 to {_MOST_ROWS}, got {value:g}.")
        return mincriterion, int(minsplit), int(minbucket)


def _of_size(name: str, value: Any, size: int, n_features: int) -> float:
    """Entry of a control for `size` known features; one number counts for all sizes."""
    given = floats_or_nan(value)
    if given.shape not in {(), (n_features - 1,)} or np.isnan(given).any():
        got = len(given) if given.ndim else repr(value)
        raise OptionError(
            f"{name} must be one number, or {n_features - 1} for 1 to {n_features - 1} known features, got {got}."
        )
    return float(given if given.ndim == 0 else given[size - 1])


APPROACH = Ctree
