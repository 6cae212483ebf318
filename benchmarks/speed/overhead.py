"""What condshap costs beyond the model's own predictions: gaussian, M = 10, all 1024 coalitions.

With a forest the yardstick is one call of ``model.predict`` on the very rows that the explanation asked for; with a linear
model, R's shapr on the same problem. Times include `fit` with its pilot run. Exit 1 if a ratio is more than we allow.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import pandas as pd
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression

import condshap as cs
from benchmarks.lib.measure import Asked, Measured, best, measure, run_alone
from benchmarks.lib.problems import correlated_normals, smooth_response
from benchmarks.lib.report import parser, publish_rows, rows_of

N_FEATURES = 10
REPEATS = 3
MOST_OVER_PREDICT, MOST_OVER_SHAPR = 1.15, 0.25
"""What we allow ourselves, as a ratio of CPU seconds; the command fails where it is more."""
SHAPR_LINEAR_CPU = 24.0  # R shapr 1.0.8.9003, gaussian, 100 rows, K = 250, on such a machine


def forest() -> None:
    """500-tree forest, 20 rows, default samples: explain, with fast trees and without, against one call of predict.

    All three get the very same rows.
    """
    X = correlated_normals(1000, N_FEATURES, 0.6, seed=1)
    model = RandomForestRegressor(500, max_features="sqrt", min_samples_split=6, random_state=1)
    model.fit(X, smooth_response(X, seed=2))
    rows = X.iloc[:20]
    recorded = Asked(keep=True)
    cs.Explainer(recorded.around(model.predict), approach="gaussian", progress=False).fit(X).explain(rows)
    asked = pd.concat(recorded.rows)

    def explain(fast_trees: bool) -> cs.Explanation:
        explainer = cs.Explainer(model, approach="gaussian", progress=False, fast_trees=fast_trees)
        return explainer.fit(X).explain(rows)

    triples = [
        (measure(lambda: explain(True)), measure(lambda: explain(False)), measure(lambda: model.predict(asked)))
        for _ in range(REPEATS)
    ]
    fast, slow, alone = (best(runs) for runs in zip(*triples, strict=True))
    for name, ours in (("", fast), (", fast_trees=False", slow)):
        ratio = f"{ours.cpu / alone.cpu:.3f} x predict alone ({alone.cpu:.2f} s)"
        print(f"| forest, 20 rows, default K{name} | {_cells(ours)} | {len(asked):,} | {ratio} |")


def linear() -> None:
    """Linear model, 100 rows, K = 250: 25.6 million samples."""
    X = correlated_normals(1000, N_FEATURES, 0.6, seed=1)
    model = LinearRegression().fit(X, smooth_response(X, seed=2))
    explainer = cs.Explainer(model, approach="gaussian", n_samples=250, progress=False, additive=False)
    ours = best(measure(lambda: explainer.fit(X).explain(X.iloc[:100])) for _ in range(REPEATS))
    n = ours.result.value_table.n_evaluations
    ratio = f"{ours.cpu / SHAPR_LINEAR_CPU:.3f} x R shapr's {SHAPR_LINEAR_CPU:.0f} s"
    print(f"| linear, 100 rows, K = 250 | {_cells(ours)} | {n:,} | {ratio} |")


def _cells(measured: Measured) -> str:
    return f"{measured.cpu:.2f} | {measured.wall:.2f} | {measured.peak_mib:.0f}"


def too_large(lines: Sequence[dict[str, str]]) -> list[str]:
    """Lines of the table whose ratio is more than allowed."""
    most = {"predict": MOST_OVER_PREDICT, "R": MOST_OVER_SHAPR}
    ratios = {line["fit + explain"]: line["ratio"].split() for line in lines}  # such as 0.242 x predict alone (8.39 s)
    return [name for name, (ratio, _, beside, *_) in ratios.items() if float(ratio) > most[beside]]


def main() -> int:
    """Print the table, each case in a process of its own, and tell whether a ratio is too large."""
    given, cases = parser("overhead", __doc__), {"forest": forest, "linear": linear}
    given.add_argument("--line", choices=list(cases), help="one case by itself, as lines of the table")
    options = given.parse_args()
    if options.line:
        cases[options.line]()
        return 0
    heads = "| fit + explain | CPU s | wall s | peak MiB beyond the data | model rows | ratio |\n|" + 6 * " --- |"
    lines = [run_alone("overhead", "--line", case).strip() for case in cases]
    text = "\n".join([heads, *lines])
    publish_rows("overhead", text, write=options.write)
    found = too_large(rows_of(text))
    for name in found:
        print(f"More than allowed: {name}.", file=sys.stderr)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
