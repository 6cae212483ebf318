"""Results of ``benchmarks.vaeac`` -> stores of the paper's studies, so that nothing is run twice.

``python -m benchmarks.adopt`` writes those results whose cell, method, seed and version mean the same in both, under the
name of the paper's study and with the machine on which they were made, if the stores do not have them yet. Repetitions keep
their numbers, which seed their data.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import condshap
from benchmarks.origins import machine_of_result
from condshap.studies.runner import TRUTH
from condshap.studies.running.catalogue import STUDIES
from condshap.studies.store import Store

NAMES = {"burr": "continuous-low", "high": "continuous-high", "mixed": "mixed-low", "categorical": "categorical"}
"""Studies of the benchmark, and of the paper."""


def adopt(source: Path, folder: Path) -> dict[str, int]:
    """Copy results; returns how many went into each store."""
    counts: dict[str, int] = {}
    for key, result in Store(source).read().items():
        name = NAMES.get(key.study)
        if name is None or (key.version, key.seed) != (condshap.__version__, STUDIES[name].study.seed):
            continue
        study, store = STUDIES[name].study, Store(folder / f"{name}.jsonl")
        if key.cell in {cell.key for cell in study.cells} and key.method in (TRUTH, *study.methods):
            renamed = replace(result, key=replace(key, study=name), machine=machine_of_result(source, result))
            if renamed.key not in store.read():
                store.append(renamed)
                counts[name] = counts.get(name, 0) + 1
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, default=Path("benchmarks/results/vaeac.jsonl"))
    parser.add_argument("--folder", type=Path, default=Path("docs/results/data"))
    given = parser.parse_args()
    for name, count in adopt(given.source, given.folder).items():
        print(f"{count} results into {given.folder / name}.jsonl")


if __name__ == "__main__":
    main()
