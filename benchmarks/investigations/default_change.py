"""Did advice, warm-up and companions, the default of `vaeac` since then, cost anything on the paper's designs?

Answer: hardly. Of 22 cells 13 got better, and two worse by more than 5 % and two standard errors; of these the categorical
one is not worse on new repetitions; Burr data with M = 5 and N = 1000 are, so that loss is probably real.

Before is docs/results/data/older, run by the default that had none of the three. After are the stores
``results/default_change-STUDY.jsonl``, made by ``condshap study run STUDY --methods vaeac --repetitions 5`` with filters.
Repetitions have the same data and forests, so differences are paired. Of 22 cells with so few
repetitions one or two are worse by two standard errors by chance; so the two that were got new ones, from 10 on, by both
versions in one session (``default_change-again-before.jsonl`` by commit 9261e33, ``-after`` by c3739ba).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.lib.report import FOLDER, parser, publish, table

BEFORE = Path(__file__).parents[2] / "docs" / "results" / "data" / "older"
STUDIES = ("continuous-low", "mixed-low", "categorical")
Cells = dict[str, dict[int, dict[str, Any]]]


def read(path: Path) -> Cells:
    """Results of `vaeac` by cell and repetition."""
    found: Cells = defaultdict(dict)
    for line in map(json.loads, path.read_text().splitlines()):
        if line["method"] == "vaeac" and line.get("ec1") is not None:
            found[line["cell"]][line["repetition"]] = line
    return found


def compare(before: Cells, after: Cells) -> Iterator[dict[str, Any]]:
    """Means over the repetitions that both have, and the paired difference in its standard errors."""
    for cell in sorted(after):
        both = sorted(set(after[cell]) & set(before.get(cell, {})))
        if len(both) < 2:
            continue
        old, new = (
            np.array([[run[cell][r][key] for key in ("ec1", "cpu_fit")] for r in both]) for run in (before, after)
        )
        change = new[:, 0] - old[:, 0]
        error = float(change.std(ddof=1) / np.sqrt(len(both)))
        yield {
            "cell": cell, "R": len(both), "before": float(old[:, 0].mean()), "after": float(new[:, 0].mean()),
            "ratio": float(new[:, 0].mean() / old[:, 0].mean()), "in_errors": float(change.mean() / error),
            "cpu_ratio": float(new[:, 1].mean() / old[:, 1].mean()),
        }  # fmt: skip


def page(cells: list[dict[str, Any]]) -> str:
    """Table of all cells, and the count of those that got worse."""
    worse = [c["cell"] for c in cells if c["ratio"] > 1.05 and c["in_errors"] > 2]
    rows = [
        {
            "cell": c["cell"], "R": str(c["R"]), "EC1 before": f"{c['before']:.4f}", "after": f"{c['after']:.4f}",
            "ratio": f"{c['ratio']:.2f}", "difference in standard errors": f"{c['in_errors']:+.1f}",
            "CPU of fit, ratio": f"{c['cpu_ratio']:.2f}",
        }
        for c in cells
    ]  # fmt: skip
    better = sum(c["ratio"] < 1 for c in cells)
    return (
        f"{len(cells)} cells: better in {better}; worse by more than 5 % and two standard errors in {len(worse)}"
        f"{': ' + ', '.join(worse) if worse else ''}.\n\n{table(rows)}"
    )


def main() -> None:
    options = parser("default_change", __doc__).parse_args()
    cells = [
        line
        for s in STUDIES
        for line in compare(read(BEFORE / f"{s}.jsonl"), read(FOLDER / f"default_change-{s}.jsonl"))
    ]
    again = list(compare(*(read(FOLDER / f"default_change-again-{version}.jsonl") for version in ("before", "after"))))
    text = f"{page(cells)}\n\n### New repetitions of the cells that were worse\n\n{page(again)}"
    publish("default_change", cells + again, text, write=options.write)


if __name__ == "__main__":
    main()
