"""CPU time per tree over all coalitions of M = 10 Burr features (R's party: 7-10 ms at N = 1000, 58 at N = 5000)."""

from __future__ import annotations

import sys
import time
from itertools import combinations

import numpy as np

from condshap.ctree import TrainingTable, grow_tree


def draw_burr(n: int, M: int, seed: int) -> np.ndarray:
    """Rows (n, M) of the paper's Burr design: x_m = (e_m / (r_m g))^(1 / b_m), e exponential, g gamma with shape 2."""
    rng = np.random.default_rng(seed)
    r, b = rng.choice(np.arange(1.0, 5.01, 0.25), M), rng.choice(np.arange(2.0, 6.01, 0.25), M)
    return (rng.exponential(size=(n, M)) / (r * rng.gamma(2.0, size=(n, 1)))) ** (1.0 / b)


def main() -> None:
    M = 10
    coalitions = [c for size in range(1, M) for c in combinations(range(M), size)]
    for n in (1000, 5000):
        X = draw_burr(n, M, seed=n)
        for mixed in (False, True):
            levels = np.zeros(M, int)
            if mixed:
                for column, n_levels in ((1, 3), (4, 4), (6, 4), (9, 8)):
                    cuts = np.quantile(X[:, column], np.arange(1, n_levels) / n_levels)
                    X[:, column], levels[column] = np.searchsorted(cuts, X[:, column]), n_levels
            grow_tree(TrainingTable.build(X, levels), [0, 1], [2, 3])
            start = time.process_time()
            table = TrainingTable.build(X, levels)
            shared = time.process_time() - start
            start = time.process_time()
            trees = [grow_tree(table, c, [f for f in range(M) if f not in c]) for c in coalitions]
            spent = time.process_time() - start
            five = [c for c in coalitions if len(c) == 5]
            start = time.process_time()
            for c in five:
                grow_tree(table, c, [f for f in range(M) if f not in c])
            spent_five = time.process_time() - start
            leaves = np.mean([tree.n_leaves for tree in trees])
            name = f"N = {n} {'mixed' if mixed else 'numeric'}"
            print(
                f"{name}: table {1e3 * shared:.1f} ms, all {len(trees)} coalitions {1e3 * spent / len(trees):.3f} ms a tree"
            )
            print(f"{name}: 5 ~ 5 {1e3 * spent_five / len(five):.3f} ms a tree; {leaves:.1f} leaves on average")


if __name__ == "__main__":
    sys.exit(main())
