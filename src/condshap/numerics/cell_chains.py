"""Frequency table, causal chain -> cells that rows come to lie in after x_known was set, with their probabilities.

Nothing is drawn: every component branches into all that its unknown features can be, one component after the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from condshap.numerics.chains import Chain
from condshap.types import Floats, Indices, Masks


@dataclass(frozen=True, slots=True, eq=False)
class Branches:
    """Cells (n, M) in which rows come to lie, which row each is of, (n,), and the probabilities, (n,), 1 for each row."""

    rows: Indices
    cells: npt.NDArray[np.int32]
    shares: Floats


@dataclass(frozen=True, slots=True, eq=False)
class CellChain:
    """Cells (D, M) with weights (D,), drawn from along a chain."""

    cells: npt.NDArray[np.int32]
    weights: Floats
    chain: Chain

    def after(self, rows: npt.NDArray[np.int32], own: Floats, mask: Masks) -> Branches:
        """Set the features `mask` (M,) to those of rows (R, M), and let all others follow.

        A row's own cell counts as `own` (R,) more than the table says. Where no cell agrees with what was set and drawn
        before, a component follows from nothing: its unknown features are as in the whole table.
        """
        found = Branches(np.arange(len(rows)), rows, np.ones(len(rows)))
        for k in range(len(self.chain.components)):
            new, given = self.chain.drawn(k, mask), self.chain.given(k, mask)
            if new.any():
                found = self._branch(found, rows, own, given, new)
        return found

    def _branch(self, states: Branches, rows: npt.NDArray[np.int32], own: Floats, given: Masks, new: Masks) -> Branches:
        """Every state once for each of the `new` features (M,) that it can have, by the weights of cells that agree."""
        mine = rows[states.rows]
        extra = np.where((states.cells[:, given] == mine[:, given]).all(axis=1), own[states.rows], 0.0)
        of_cells, of_states = _groups(self.cells[:, given], states.cells[:, given])
        kinds, which = np.unique(np.column_stack([of_cells, self.cells[:, new]]), axis=0, return_inverse=True)
        weights = np.bincount(which.ravel(), self.weights, len(kinds))
        start, stop = (np.searchsorted(kinds[:, 0], of_states, side=side) for side in ("left", "right"))
        total = np.bincount(of_cells, self.weights, max(of_cells.max(), of_states.max()) + 1)[of_states] + extra
        lost = total == 0
        origin = np.repeat(np.arange(len(total)), stop - start)
        taken = np.arange(len(origin)) - np.repeat(np.cumsum(stop - start) - (stop - start), stop - start)
        taken += np.repeat(start, stop - start)
        again = np.flatnonzero(extra > 0)
        origin = np.concatenate([origin, again])
        shares = states.shares[origin] / np.where(lost, 1.0, total)[origin]
        shares *= np.concatenate([weights[taken], extra[again]])
        cells = states.cells[origin]
        cells[:, new] = np.concatenate([kinds[taken, 1:], mine[again][:, new]])
        found = Branches(states.rows[origin], cells, shares)
        if not lost.any():
            return found
        others = Branches(states.rows[lost], states.cells[lost], states.shares[lost])
        others = self._branch(others, rows, own, np.zeros_like(given), new)
        pairs = ((found.rows, others.rows), (found.cells, others.cells), (found.shares, others.shares))
        return Branches(*(np.concatenate(pair) for pair in pairs))


def _groups(cells: npt.NDArray[np.int32], states: npt.NDArray[np.int32]) -> tuple[Indices, Indices]:
    """Numbers of cells (D, k) and of states (n, k) that are the same where all k columns agree."""
    if not cells.shape[1]:
        return np.zeros(len(cells), dtype=np.intp), np.zeros(len(states), dtype=np.intp)
    _, group = np.unique(np.concatenate([cells, states]), axis=0, return_inverse=True)
    return group.ravel()[: len(cells)], group.ravel()[len(cells) :]
