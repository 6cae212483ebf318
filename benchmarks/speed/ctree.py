"""CPU time per conditional inference tree, over all 1022 coalitions of M = 10 Burr features, beside R's party.

Kernels are compiled before, which takes about 11 s once and is then kept on disk. In the mixed case four of the ten features
are factors of 3 to 8 levels.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.lib.report import parser, publish_rows
from condshap.coalitions import all_coalitions
from condshap.ctree import TrainingTable, grow_tree
from condshap.studies.designs import burr_design

N_FEATURES = 10
PARTY_CORE_MS = {1000: "7 to 10", 5000: "58"}  # R's party, five numeric responses given five, its C core alone
FACTORS = {1: 3, 4: 4, 6: 4, 9: 8}  # columns cut into this many levels for the mixed case


def cut_into_levels(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cut some columns of X (N, M) at their quantiles; returns the rows and the number of levels (M,)."""
    X, levels = X.copy(), np.zeros(N_FEATURES, dtype=int)
    for column, n_levels in FACTORS.items():
        cuts = np.quantile(X[:, column], np.arange(1, n_levels) / n_levels)
        X[:, column], levels[column] = np.searchsorted(cuts, X[:, column]), n_levels
    return X, levels


def milliseconds_per_tree(X: np.ndarray, levels: np.ndarray, masks: np.ndarray) -> float:
    """Grow one tree per mask, the shared table included; compiled kernels are loaded before."""
    grow_tree(TrainingTable.build(X, levels), [0, 1], [2, 3])
    start = time.process_time()
    table = TrainingTable.build(X, levels)
    for mask in masks:
        grow_tree(table, np.flatnonzero(mask), np.flatnonzero(~mask))
    return 1e3 * (time.process_time() - start) / len(masks)


def main() -> None:
    """Print the table."""
    options = parser("ctree", __doc__).parse_args()
    interior = all_coalitions(N_FEATURES).masks[1:-1]
    fives = interior[interior.sum(axis=1) == 5]
    lines = [
        "| N | features | ms a tree, all 1022 | ms a tree, 5 given 5 | party's C core, 5 given 5 |",
        "|" + 5 * " --- |",
    ]
    for n in PARTY_CORE_MS:
        X = burr_design(N_FEATURES, seed=1).draw(n, seed=2).to_numpy()
        for name, (rows, levels) in (
            ("numeric", (X, np.zeros(N_FEATURES, dtype=int))),
            ("mixed", cut_into_levels(X)),
        ):
            every, five = (milliseconds_per_tree(rows, levels, masks) for masks in (interior, fives))
            party = PARTY_CORE_MS[n] if name == "numeric" else ""
            lines.append(f"| {n} | {name} | {every:.2f} | {five:.2f} | {party} |")
    publish_rows("ctree", "\n".join(lines), write=options.write)


if __name__ == "__main__":
    main()
