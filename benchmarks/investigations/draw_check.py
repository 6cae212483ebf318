"""How often does the check of draws warn where draws are right, and where they are wrong?

Answer: one false alarm in 460 fits; draws that lost half of their dependence or spread are found from 300 rows on, and so is
most dependence that a copula cannot have. It does not see parity of three levels, and hardly sees waves.

Right approaches are the truth itself and approaches on data that suit them. Wrong ones are the truth made worse on purpose,
features that are drawn by their margins alone where they depend in a way that is hard to see, and networks on columns that
repeat each other.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd

import condshap as cs
from benchmarks.investigations.draws.approaches import Margins
from benchmarks.investigations.draws.cells import RHO, right_cells, wrong_cells
from benchmarks.investigations.draws.tables import duplicates, gems, hidden_tables, normals
from benchmarks.investigations.model_errors import pose_design
from benchmarks.lib.measure import measure
from benchmarks.lib.report import parser, publish, read, table
from condshap.approaches.vaeac import VAEAC
from condshap.draw_check.checking import check_draws
from condshap.draw_check.result import DrawCheck

VALUED = {
    "equal-4-300": ("ctree", "gaussian", "copula"),
    "burr-5-300": ("ctree", "gaussian", "copula"),
    "duplicates-6-300": ("ctree", "gaussian", "copula"),
    "mixed-M4-300": ("ctree",),
}
"""Designs whose true values are known, by `model_errors.pose_design`, and approaches beside networks."""
N_VALUED = 4  # repetitions


def constant_model(X: Any) -> Any:
    """Model that does not matter: the check asks none."""
    return np.zeros(len(X))


def fit(X: Any, approach: Any, seed: int, **options: Any) -> cs.Explainer:
    """Fit with few coalitions' pilots, and without a word."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        explainer = cs.Explainer(
            constant_model, approach=approach, seed=seed, n_samples=2, additive=False, progress=False, **options
        )
        return explainer.fit(X)


def found(X: Any, approach: Any, seed: int, **options: Any) -> DrawCheck:
    """What the check says after a fit."""
    check = fit(X, approach, seed, **options).draw_check_
    assert check is not None
    return check


def cost(n: int, m: int) -> list[dict[str, str]]:
    """CPU seconds of fit and of the check."""
    lines = []
    X = normals(m, RHO, n, 0)
    for name in ("gaussian", "ctree", "vaeac"):
        approach = cs.approaches.VAEAC(epochs=2) if name == "vaeac" and n > 10_000 else name
        fitted = measure(lambda a=approach: fit(X, a, 0, check_draws=False))
        one = fitted.result
        rows = one.schema_.encode(X)
        check = measure(
            lambda one=one, rows=rows: check_draws(one.parts_, rows, one.schema_, one.plan_, one.masks_, seed=0)
        )
        shown = f"{fitted.cpu:.1f}" if approach == name else "not run"
        lines.append(
            {"approach": name, "N": f"{n:,}", "M": str(m), "fit, CPU s": shown, "check, CPU s": f"{check.cpu:.2f}"}
        )
    return lines


def alarms_in(scores: list[float]) -> dict[str, Any]:
    """How many of the fits raise an alarm, and how clearly."""
    return {"fits": len(scores), "alarms": sum(s >= 1 for s in scores), "median score": float(np.median(scores))}


def run_right(quick: bool, *, networks_only: bool = False) -> list[dict[str, Any]]:
    """Score every cell whose draws should be right."""
    lines = []
    for cell in right_cells(quick):
        if networks_only and cell.approach != "vaeac":
            continue
        scores = [found(*cell.make(seed), seed).score for seed in range(cell.seeds)]
        about = {"data": cell.data, "approach": cell.approach, "N": cell.n_rows, "fits": cell.seeds}
        lines.append({**about, "alarms": sum(s >= 1 for s in scores), "largest score": max(scores)})
        print(lines[-1], flush=True)
    return lines


def run_wrong(quick: bool) -> list[dict[str, Any]]:
    """Score the truth made worse."""
    lines = []
    for cell in wrong_cells()[: 2 if quick else None]:
        scores = [found(*cell.make(seed), seed).score for seed in range(1 if quick else 10)]
        lines.append({"draws": cell.draws, "N": cell.n_rows, **alarms_in(scores)})
        print(lines[-1], flush=True)
    return lines


def run_hidden(quick: bool) -> list[dict[str, Any]]:
    """Score draws without a dependence that is hard to see."""
    lines = []
    for title, make in hidden_tables().items():
        has_levels = bool((make(2, 0).dtypes == "category").any())
        for approach in ("margins",) if quick or has_levels else ("margins", "copula"):
            chosen = Margins() if approach == "margins" else approach
            scores = [found(make(1000, seed), chosen, seed).score for seed in range(1 if quick else 10)]
            lines.append({"dependence": title, "drawn by": approach, **alarms_in(scores)})
            print(lines[-1], flush=True)
    return lines


def run_collapsed() -> list[dict[str, Any]]:
    """Score approaches on columns that repeat each other."""
    lines = []
    for title, make, n in (("duplicates, N = 1000", duplicates, 1000), ("gems, N = 1500", gems, 1500)):
        plain = VAEAC(advice=False, kl_warmup=0, companions=False)
        for name, approach in {
            "vaeac": "vaeac",
            "vaeac without advice, warm-up, companions": plain,
            "ctree": "ctree",
        }.items():
            check = found(make(n, 0), approach, 0)
            worst = str(check.worst[0]) if check.worst else ""
            columns = list(check.columns)
            lines.append({"data": title, "approach": name, "score": check.score, "columns": columns, "worst": worst})
            print(lines[-1], flush=True)
    return lines


def run_values() -> list[dict[str, Any]]:
    """Errors of Shapley values, over their mean size, of networks and of what the warning names instead."""
    lines = []
    for design, others in VALUED.items():
        for repetition in range(N_VALUED):
            model, X_train, X, plan, base, phi = pose_design(design, repetition)
            errors, scores = {}, {}
            for approach in ("vaeac", *others):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    options: dict[str, Any] = {"coalitions": plan, "base_value": base, "seed": repetition}
                    explainer = cs.Explainer(model, approach=approach, **options, progress=False).fit(X_train)
                    values = explainer.explain(X).values
                errors[approach] = float(np.abs(values - phi).mean() / np.abs(phi).mean())
                check = explainer.draw_check_
                scores[approach] = 0.0 if check is None else check.score
            lines.append({"data": design, "repetition": repetition, "errors": errors, "scores": scores})
            print(lines[-1], flush=True)
    return lines


def values_lines(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mean errors of each design, apart where the check of networks warned and where it did not."""
    lines = []
    for design in dict.fromkeys(line["data"] for line in found):
        for warned in (True, False):
            some = [line for line in found if line["data"] == design and (line["scores"]["vaeac"] >= 1) == warned]
            if some:
                means = pd.DataFrame([line["errors"] for line in some]).mean()
                shown = ", ".join(f"{name} {means[name]:.3f}" for name in means.index[1:])
                about = {"design": design, "warned": "yes" if warned else "no", "fits": len(some)}
                best = f"{means['vaeac'] / means.iloc[1:].min():.2f}"
                lines.append(
                    {**about, "error of vaeac": f"{means['vaeac']:.3f}", "of others": shown, "over their best": best}
                )
    return lines


def main(arguments: list[str] | None = None) -> None:
    options = parser("draw_check", __doc__)
    options.add_argument(
        "--quick", action="store_true", help="one seed and few rows, to see that it runs; nothing is stored"
    )
    options.add_argument("--networks", action="store_true", help="run networks again, and keep the other results")
    options.add_argument(
        "--values", action="store_true", help="what alarms mean for values, and keep the other results"
    )
    options.add_argument(
        "--hidden", action="store_true", help="run what is hard to see again, and keep the other results"
    )
    given = options.parse_args(arguments)
    before = read("draw_check") if given.networks or given.values or given.hidden else None
    if before is not None and given.hidden:
        results = {**before["results"], "hidden": run_hidden(quick=False)}
        publish("draw_check", results, tables_of(results), write=given.write)
        return
    if before is not None and given.values:
        results = {**before["results"], "values": run_values()}
        publish("draw_check", results, tables_of(results), write=given.write)
        return
    if before is not None:
        kept = [line for line in before["results"]["right"] if line["approach"] != "vaeac"]
        again = {"right": [*kept, *run_right(quick=False, networks_only=True)], "collapsed": run_collapsed()}
        results = {**before["results"], **again}
        publish("draw_check", results, tables_of(results), write=given.write)
        return
    results = {
        "right": run_right(given.quick),
        "wrong": run_wrong(given.quick),
        "hidden": run_hidden(given.quick),
        "collapsed": [] if given.quick else run_collapsed(),
        "values": [] if given.quick else run_values(),
        "cost": [] if given.quick else [*cost(1000, 10), *cost(100_000, 20)],
    }
    if given.quick:
        print(tables_of(results))
    else:
        publish("draw_check", results, tables_of(results), write=given.write)


def tables_of(results: dict[str, Any]) -> str:
    """Tables for the page; networks stand apart, because they are no truth, and an alarm may be right."""
    parts = []
    for title, is_network in (("Where draws should be right", False), ("Networks on plain designs", True)):
        lines = [line for line in results["right"] if (line["approach"] == "vaeac") == is_network]
        if lines:
            alarms, fits = (sum(line[key] for line in lines) for key in ("alarms", "fits"))
            shown = [_shown_line(line) for line in lines] if is_network else _by_approach(lines)
            parts += [f"### {title}: {alarms} alarms in {fits} fits", table(shown)]
    titles = {
        "wrong": "The truth made worse",
        "hidden": "Dependence that is hard to see, drawn without it; N = 1000, M = 3 (or 2 numbers and a level)",
        "collapsed": "Columns that repeat each other",
        "values": "What an alarm about networks means for Shapley values",
        "cost": "What it costs",
    }
    for name, title in titles.items():
        lines = results.get(name)
        if lines:
            shown = values_lines(lines) if name == "values" else lines
            parts += [f"### {title}", table([_shown_line(line) for line in shown])]
    return "\n\n".join(parts)


def _shown_line(line: dict[str, Any]) -> dict[str, str]:
    return {key: _shown(value) for key, value in line.items()}


def _by_approach(lines: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Cells of the same approach and number of rows, added up."""
    frame = pd.DataFrame(lines)
    frame["data"] = frame["data"].str.partition(",")[0]
    grouped = frame.groupby(["approach", "N"], sort=True)
    return [
        {
            "approach": approach, "N": f"{n:,}", "data": ", ".join(dict.fromkeys(some["data"])),
            "fits": str(some["fits"].sum()), "alarms": str(some["alarms"].sum()),
            "largest score": f"{some['largest score'].max():.2f}",
        }
        for (approach, n), some in grouped
    ]  # fmt: skip


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.2f}"
    return ", ".join(value) if isinstance(value, list) else f"{value:,}" if isinstance(value, int) else value


if __name__ == "__main__":
    main()
