"""Summary of a study -> a page of Markdown, or CSV: ours beside the paper's numbers, and comments on them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd

from condshap.studies.pages.markdown import markdown, wrapped
from condshap.studies.pages.reasons import Reasons
from condshap.studies.pages.summary import Results, agreements, summarise
from condshap.studies.problems.cells import Cell
from condshap.studies.running.catalogue import Entry
from condshap.studies.running.defaults import by_age
from condshap.studies.running.runner import TRUTH
from condshap.studies.running.store import Result

NAMES = {"ec1": "EC1", "ec2": "EC2", "ec3": "EC3"}
MEANINGS = {
    "ec1": "mean absolute error of the Shapley values",
    "ec2": "mean squared error of the contribution function",
    "ec3": "mean squared distance of the contribution function from the prediction",
}
LEGEND = """Entries are *ours ± standard error / paper's = ratio*, means over R repetitions. The best of ours and the best
of the paper's are in bold; ours is the best over those repetitions that all methods of the cell have. EC2 and EC3 of ours
are freed of sampling variance. The paper prints no standard errors."""
OLDER = "†"
"""Behind results by an older default."""
LARGE = 50
"""Features from which on a cell's minutes and memory are shown."""
N_ERRORS = 2.0
"""How many of our standard errors a mean must exceed the paper's by before it is called worse."""


def cell_name(cell: Cell) -> str:
    """Cell by its setting.

    >>> from condshap.studies.problems.cells import MixedCell
    >>> cell_name(MixedCell("M4", 0.5, 1000))
    'M = 4, L = 4, N = 1000, rho = 0.5'
    """
    return ", ".join(f"{name} = {value:g}" for name, value in cell.setting.items())


def study_csv(entry: Entry, results: Results) -> str:
    """Summary as CSV, one line per cell, method and criterion; what was not run has no mean."""
    return summarise(results, entry.criteria, entry.reference).to_csv(index=False, float_format="%.6g")


def study_page(entry: Entry, results: Results, command: str, notes: str = "", reasons: Reasons | None = None) -> str:
    """All tables of a study and comments on them, as Markdown.

    Parameters
    ----------
    command : that makes the page
    notes : Markdown to stand at the end, such as explanations
    reasons : why something was not run, None to say only what
    """
    summary = summarise(results, entry.criteria, entry.reference)
    parts = [f"# {results.study.name}", entry.about[0].upper() + entry.about[1:] + ".", *_origin(results, command)]
    parts += [LEGEND, _older(results)]
    if len(results.study.cells) == 1:
        parts.append(_by_method(summary, entry))
    else:
        parts += [_by_cell(summary[summary["criterion"] == name], results, name) for name in entry.criteria]
        parts.append(_over_reference(summary[summary["criterion"] == entry.criteria[0]], results, entry))
    first = entry.criteria[0]
    parts += [_ranking(results, first), _worse(summary, results, first), _not_run(results, reasons)]
    parts += [_truth_error(results), _large_cells(results), f"## Notes\n\n{notes.strip()}" if notes.strip() else ""]
    return wrapped("\n\n".join(part for part in parts if part) + "\n")


def number(value: float) -> str:
    """Four decimals as in the paper, two for abalone's size of numbers.

    >>> number(0.02641), number(12.3456)
    ('0.0264', '12.346')
    """
    return f"{value:.4f}" if abs(value) < 10 else f"{value:.3f}"


def entry_text(line: pd.Series) -> str:
    """One entry of a table."""
    paper = "" if np.isnan(line["paper"]) else _bold(number(line["paper"]), line["is_paper_best"])
    if not line["repetitions"]:
        return f"not run / {paper}" if paper else "not run"
    error = "" if np.isnan(line["std_error"]) else f" ± {number(line['std_error'])}"
    ours = _bold(number(line["mean"]), line["is_best"]) + (OLDER if line["is_older"] else "") + error
    return f"{ours} / {paper} = {line['ratio']:.2f}" if paper else ours


def _bold(text: str, really: bool) -> str:
    return f"**{text}**" if really else text


def _origin(results: Results, command: str) -> list[str]:
    """Where, when and how the results were found."""
    used = results.used
    if not used:
        return ["No results.", f"Made by `{command}`."]
    dates = sorted({result.date for result in used if result.date})
    span = " to ".join(dict.fromkeys([dates[0], dates[-1]])) if dates else "dates that were not noted"
    lines = [f"{len(used)} results of condshap {' and '.join(results.versions)}, found on {span}:", ""]
    groups = pd.Series([_place(result) for result in used]).value_counts()
    lines += [f"- {count} on {place}" for place, count in groups.items()]
    run = f"condshap study run {results.study.name.removesuffix('-quick')}"
    quick = " --quick" if results.study.name.endswith("-quick") else ""
    return ["\n".join(lines), f"Run by `{run}{quick}` with filters and `--store`; this page was made by `{command}`."]


def _older(results: Results) -> str:
    """What the mark says, if anything has it."""
    older = [one.key for one in results.used if (one.key.cell, one.key.method) in results.older]
    if not older:
        return ""
    names = " and ".join(f"`{name}`" for name in sorted({key.method for key in older}))
    versions = " and ".join(by_age({key.version for key in older}))
    return f"{OLDER} by the default of {names} in condshap {versions}, not run again since."


def _place(result: object) -> str:
    machine, device, forest = (getattr(result, name) for name in ("machine", "device", "forest"))
    return f"{machine or 'a machine that was not noted'} (networks on {device}, forests by {forest})"


def _by_cell(summary: pd.DataFrame, results: Results, criterion: str) -> str:
    """Cells down, methods across."""
    methods = list(dict.fromkeys(summary["method"]))
    lines = []
    for cell in _cells_run(results):
        some = summary[summary["cell"] == cell.key].set_index("method")
        counts = sorted({int(n) for n in some["repetitions"] if n})
        sizes = " to ".join(dict.fromkeys(str(n) for n in (counts[:1] + counts[-1:])))
        lines.append([*_setting(cell), sizes, *(entry_text(some.loc[method]) for method in methods)])
    heads = [*results.study.cells[0].setting, "R", *methods]
    return f"## {NAMES[criterion]}: {MEANINGS[criterion]}\n\n{markdown(heads, lines)}" if lines else ""


def _over_reference(summary: pd.DataFrame, results: Results, entry: Entry) -> str:
    """Ratios to one method, ours and the paper's; cells down, methods across."""
    if entry.reference is None:
        return ""
    methods = [name for name in dict.fromkeys(summary["method"]) if name != entry.reference]
    lines = []
    for cell in _cells_run(results):
        some = summary[summary["cell"] == cell.key].set_index("method")
        lines.append([*_setting(cell), *(_over_reference_text(some.loc[name]) for name in methods)])
    head = f"## {NAMES[entry.criteria[0]]} over that of {entry.reference}\n\nOurs ± standard error / the paper's."
    return f"{head}\n\n{markdown([*results.study.cells[0].setting, *methods], lines)}" if lines else ""


def _over_reference_text(line: pd.Series) -> str:
    ours = _ratio(line["over_reference"], line["over_reference_error"]) or "not run"
    paper = _ratio(line["paper_over_reference"], np.nan)
    return f"{ours} / {paper}" if paper else ours


def _cells_run(results: Results) -> list[Cell]:
    """Cells with any result; the others stand in the list of what was not run."""
    return [cell for cell in results.study.cells if any(results.of(cell, name) for name in results.study.methods)]


def _setting(cell: Cell) -> list[str]:
    return [f"{value:g}" for value in cell.setting.values()]


def _by_method(summary: pd.DataFrame, entry: Entry) -> str:
    """Methods down, criteria across, for a study of one cell."""
    reference = f"{NAMES[entry.criteria[0]]} over {entry.reference}"
    heads = ["method", "R", *(NAMES[name] for name in entry.criteria)]
    heads += [reference, "paper's"] if entry.reference else []
    lines = []
    for method in dict.fromkeys(summary["method"]):
        some = summary[summary["method"] == method].set_index("criterion")
        texts = [entry_text(some.loc[name]) if name in some.index else "" for name in entry.criteria]
        first = some.iloc[0]
        extra = [_ratio(first["over_reference"], first["over_reference_error"])] if entry.reference else []
        extra += [_ratio(first["paper_over_reference"], np.nan)] if entry.reference else []
        cpu = _ratio(first["cpu_fit"] + first["cpu_explain"], np.nan) if method != TRUTH else ""
        lines.append([f"`{method}`", f"{first['repetitions']:.0f}", *texts, *extra, cpu])
    meanings = "; ".join(f"{NAMES[name]}: {MEANINGS[name]}" for name in entry.criteria)
    return f"## Methods\n\n{meanings}.\n\n{markdown([*heads, 'CPU seconds'], lines)}"


def _ratio(value: float, error: float) -> str:
    return "" if np.isnan(value) else f"{value:.3f}" + ("" if np.isnan(error) else f" ± {error:.3f}")


def _ranking(results: Results, criterion: str) -> str:
    """In how many cells our best method is the paper's."""
    found = agreements(results, criterion)
    if not found:
        return ""
    same = sum(one.holds for one in found)
    others = [f"- {cell_name(one.cell)}: ours {one.ours}, the paper's {one.paper}" for one in found if not one.holds]
    head = f"By {NAMES[criterion]} our best method is the paper's best in {same} of {len(found)} cells"
    tail = ", among the methods that both have. Where all coalitions are used, vaeac-paper counts as vaeac, too."
    return "\n".join([f"## Ranking\n\n{head}{tail}", *(["", "Elsewhere:", "", *others] if others else [])])


def _worse(summary: pd.DataFrame, results: Results, criterion: str) -> str:
    """Cells in which our vaeac is worse than the paper's by more than two standard errors."""
    ours = summary[(summary["method"] == "vaeac") & (summary["criterion"] == criterion)].set_index("cell")
    if not (ours["repetitions"] > 0).any() or ours["paper"].isna().all():
        return ""
    worse = ours[ours["mean"] - ours["paper"] > N_ERRORS * ours["std_error"]]
    names = {cell.key: cell_name(cell) for cell in results.study.cells}
    lines = [
        f"- {names[str(key)]}: {number(line['mean'])} ± {number(line['std_error'])} against {number(line['paper'])}"
        + _share(summary, str(key), criterion)
        for key, line in worse.iterrows()
    ]
    head = f"## Where our vaeac is worse than the paper's by more than {N_ERRORS:g} standard errors\n\n"
    return head + ("\n".join(lines) if lines else "Nowhere.")


def _share(summary: pd.DataFrame, cell: str, criterion: str) -> str:
    """How both compare with a method that learns little or nothing, which shows whether data or methods differ."""
    some = summary[(summary["cell"] == cell) & (summary["criterion"] == criterion)].set_index("method")
    base = next((name for name in ("independence", "gaussian") if name in some.index and some["ratio"][name] > 0), None)
    if base is None:
        return ""
    shares = [side["vaeac"] / side[base] for side in (some["mean"], some["paper"])]
    data = f"{base} is {some['ratio'][base]:.2f} of the paper's"
    return f"; {data}, vaeac over {base} {shares[0]:.3f}, the paper's {shares[1]:.3f}"


def _not_run(results: Results, reasons: Reasons | None) -> str:
    """Cells and methods without any result; cells that differ in rho only share a line."""
    groups: dict[tuple[str, str], list[str]] = {}
    for cell in results.study.cells:
        name, _, rho = cell_name(cell).partition(", rho = ")
        for which in _lacking(results, cell, reasons):
            groups.setdefault((name, which), []).append(rho)
    lines = [
        f"- {name}{', rho = ' + ', '.join(rhos) if rhos[0] else ''}: {which}" for (name, which), rhos in groups.items()
    ]
    about = "Minutes are those of one repetition by one process without an accelerator.\n\n" if reasons else ""
    return f"## Not run\n\n{about}" + "\n".join(lines) if lines else ""


def _lacking(results: Results, cell: Cell, reasons: Reasons | None) -> list[str]:
    """Methods of a cell without results, those with the same reason together."""
    lacking = [name for name in results.study.methods if not results.of(cell, name)]
    groups: dict[str | None, list[str]] = {}
    for name in lacking:
        groups.setdefault(reasons.told(results.study.name, cell, name) if reasons else None, []).append(name)
    found = []
    for some in groups.values():
        which = "all methods" if len(some) == len(results.study.methods) else ", ".join(some)
        found.append(f"{which}; {reasons.of(results.study.name, cell, some)}" if reasons else which)
    return found


def _large_cells(results: Results) -> str:
    """Minutes and memory of large cells, of results that have noted it; of cells that differ in rho alone the most."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for cell, method in product(results.study.cells, (TRUTH, *results.study.methods)):
        noted = [one for one in results.of(cell, method).values() if one.peak > 0]
        if noted and cell.setting["M"] >= LARGE:
            groups.setdefault((cell_name(cell).partition(", rho = ")[0], method), []).extend(noted)
    lines = []
    for (name, method), some in groups.items():
        minutes, peak = max(one.wall for one in some) / 60, max(one.peak for one in some)
        lines.append([name, f"`{method}`", f"{minutes:.1f}", f"{peak:.1f}", _most_on_device(some)])
    heads = ("cell", "method", "minutes", "GiB of the process", "GiB on the GPU")
    about = "The slowest and the largest of all repetitions; other processes ran beside them."
    return f"## Minutes and memory\n\n{about}\n\n{markdown(heads, lines)}" if lines else ""


def _most_on_device(some: Sequence[Result]) -> str:
    known = [one.device_peak for one in some if not np.isnan(one.device_peak)]
    return f"{max(known):.1f}" if known else "-"


def _truth_error(results: Results) -> str:
    errors = [results.values(cell, TRUTH, "ec1") for cell in results.study.cells]
    means = [float(values.mean()) for values in errors if len(values)]
    if not means:
        return ""
    if not max(means):
        return "The truth is exact."
    return (
        f"The truth's own sampling error is at most {max(means):.4f} on the scale of EC1, where it adds in quadrature."
    )
