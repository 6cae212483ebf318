"""Results of all studies -> CPU time per cell and method beside the paper's minutes (Section 4.4)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from condshap.exceptions import StorageError
from condshap.studies.pages.markdown import markdown, wrapped
from condshap.studies.pages.published import published_minutes
from condshap.studies.pages.summary import Results, mean_and_error, read_results
from condshap.studies.running.catalogue import STUDIES

TIMES = "computation-times"
"""Name of the study that is a table of the others' stores."""

LEGEND = """Entries are *our CPU seconds of fit + explain / the paper's CPU seconds (its minutes times 60) = ratio*, means
over repetitions, on the machines below; cells that differ in rho alone are taken together. The paper's machine was another
one and its methods drew 250 samples in R, so ratios show orders of magnitude. It explained as many rows as we do, 100 in the
continuous and 500 in the mixed studies, and timed VAEAC_C only. Seconds of a GPU are not CPU seconds. The first use of
`ctree` on a machine compiles for about ten seconds, which count as fit."""


def time_table(
    stores: Sequence[Path], version: str | None = None, older: Sequence[Path] = ()
) -> tuple[pd.DataFrame, list[str]]:
    """One line per study, setting without rho, and method; and the machines that the results come from."""
    lines: list[dict[str, Any]] = []
    machines: dict[str, None] = {}
    for entry in STUDIES.values():
        results = read_results(entry.study, stores, version, older)
        machines |= dict.fromkeys(_machine(one) for one in results.used)
        lines += _study_lines(results)
    return pd.DataFrame(lines), list(machines)


def _study_lines(results: Results) -> list[dict[str, Any]]:
    groups: dict[tuple[Any, ...], dict[str, Any]] = {}
    for cell in results.study.cells:
        setting = {name: value for name, value in cell.setting.items() if name != "rho"}
        for method in results.study.methods:
            minutes = published_minutes(cell, method)
            place = (*setting.values(), method)
            line = {"study": results.study.name, **setting, "method": method, "paper_seconds": _seconds(minutes)}
            group = groups.setdefault(place, {**line, "fits": [], "explains": []})
            group["fits"] += results.values(cell, method, "cpu_fit").tolist()
            group["explains"] += results.values(cell, method, "cpu_explain").tolist()
    return [_averaged(group) for group in groups.values() if group["fits"]]


def _averaged(group: dict[str, Any]) -> dict[str, Any]:
    fits, explains = np.array(group.pop("fits")), np.array(group.pop("explains"))
    total, error = mean_and_error(fits + explains)
    seconds = {"cpu_fit": fits.mean(), "cpu_explain": explains.mean(), "cpu": total, "std_error": error}
    return {**group, "results": len(fits), **seconds, "ratio": total / group["paper_seconds"]}


def _seconds(minutes: float | None) -> float:
    return np.nan if minutes is None else 60.0 * minutes


def _machine(result: Any) -> str:
    forests = "" if result.forest == "cpu" else f", forests by {result.forest}"
    return f"{result.machine or 'a machine that was not noted'}{forests}"


def times_page(
    stores: Sequence[Path],
    command: str,
    *,
    as_csv: bool = False,
    version: str | None = None,
    older: Sequence[Path] = (),
) -> str:
    """Times of every result in some stores as Markdown or CSV."""
    table, machines = time_table(stores, version, older)
    if table.empty:
        raise StorageError("computation times need stores of other studies with results, got none. Pass --store.")
    if as_csv:
        return table.to_csv(index=False, float_format="%.6g")
    parts = [f"# {TIMES}", LEGEND, "\n".join(f"- {name}" for name in machines), f"Made by `{command}`."]
    parts += [f"## {name}\n\n{_table(some)}" for name, some in table.groupby("study", sort=False)]
    return wrapped("\n\n".join(parts) + "\n")


def _table(table: pd.DataFrame) -> str:
    """Settings down, methods across."""
    settings = [name for name in ("M", "L", "N") if table[name].notna().all()] if "L" in table else ["M", "N"]
    methods = list(dict.fromkeys(table["method"]))
    lines = []
    for setting, some in table.groupby(settings, sort=False):
        found = {line["method"]: _entry(line) for line in some.to_dict("records")}
        lines.append([*(f"{value:g}" for value in setting), *(found.get(name, "not run") for name in methods)])
    return markdown([*settings, *methods], lines)


def _entry(line: dict[Any, Any]) -> str:
    ours = f"{line['cpu_fit']:.1f} + {line['cpu_explain']:.1f}"
    return ours if np.isnan(line["ratio"]) else f"{ours} / {line['paper_seconds']:.0f} = {line['ratio']:.2g}"
