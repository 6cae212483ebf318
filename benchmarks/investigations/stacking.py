"""Would v(S) stacked over approaches, as an ``approach="auto"``, beat the default on tables of the league?

Answer: by MSEv in seven of ten tables, but where the truth is known its Shapley values are worse in three of four designs,
for twice the fits of all approaches. So there is no such approach.

MSEv is a regression of f(x) on x_S, so that weights of approaches can be learned: all approaches are fitted to three
quarters of the training rows and explain the rest, non-negative least squares finds weights that sum to one, for small and
for large coalitions, and the approaches, fitted to all training rows, are averaged by them for the test rows. Forests; ten
tables from both halves of the league; nothing is tuned.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.investigations.model_errors import pose_design
from benchmarks.league.cells import Cell, make_explainer, make_model, suits
from benchmarks.league.tables import load
from benchmarks.lib.report import FOLDER, page_of, parser
from benchmarks.lib.sections import write_section
from condshap import Explainer
from condshap.solvers import solve_shapley
from condshap.types import Floats, Masks
from condshap.vaeac.votes import simplex_least_squares

RIVALS = ("vaeac", "gaussian", "copula", "empirical", "ctree", "regression_surrogate", "regression_separate")
STORE = FOLDER / "stacking.jsonl"
TABLES = (
    "diabetes", "mpg", "penguins", "economics", "breast_cancer", "macrodata", "star98", "grunfeld", "midwest", "modechoice",
)  # fmt: skip


def tables_of(cell: Cell, table: Any, model: Any, train: Any, rows: Any) -> tuple[Floats, Floats, Masks]:
    """Values of interior coalitions (C, n, O), predictions (n, O), and whether each coalition is small, (C,)."""
    explainer = make_explainer(cell, table, model, "cpu").fit(train)
    found = explainer.explain(rows)
    inside = explainer.plan_.interior
    v = found.value_table.values.reshape(len(explainer.plan_.masks), len(rows), -1)[inside]
    sizes = explainer.plan_.sizes[inside]
    return v, found.predictions.reshape(len(rows), -1), sizes <= explainer.plan_.n_players / 2


def weights_of(values: Floats, predictions: Floats) -> Floats:
    """Weights (A,) of v by approach, (A, C, n, O), that predict f best; they are not negative and sum to 1."""
    flat = (values - predictions).reshape(len(values), -1)
    return simplex_least_squares(flat @ flat.T, np.zeros(len(values)))


def stacked_values(first: Sequence[Any], final: Sequence[Any]) -> tuple[Floats, dict[str, list[float]]]:
    """Stack of v by approach for explained rows (C, n, O), by weights from held-out rows, and these weights."""
    v_held, v_test = (np.stack([part[0] for part in parts]) for parts in (first, final))
    small = final[0][2]
    found, weights = np.empty_like(v_test[0]), {}
    for which, label in ((small, "small"), (~small, "large")):
        w = weights_of(v_held[:, which], first[0][1])
        found[which] = np.tensordot(w, v_test[:, which], axes=1)
        weights[label] = np.round(w, 3).tolist()
    return found, weights


def halves(n_rows: int) -> tuple[Any, Any]:
    """Positions of rows by which weights are found, and of those to fit on."""
    order = np.random.default_rng(0).permutation(n_rows)
    return order[: n_rows // 4], order[n_rows // 4 :]


def stack(name: str, folder: Path | None) -> dict[str, Any]:
    """MSEv of the default, of the best single approach and of the stack, for test rows of a table."""
    table = load(name, folder)
    model, (held, kept) = make_model("forest", table), halves(len(table.X_train))
    wanted = [approach for approach in RIVALS if suits(approach, name)]
    first, final = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for approach in wanted:
            cell, train = Cell(name, "forest", approach, 0, ""), table.X_train
            first.append(tables_of(cell, table, model, train.iloc[kept], train.iloc[held]))
            final.append(tables_of(cell, table, model, train, table.X_test))
    found, weights = stacked_values(first, final)
    v_test, f_test = np.stack([part[0] for part in final]), final[0][1]
    losses = dict(zip(wanted, ((v_test - f_test) ** 2).mean(axis=(1, 2)).sum(axis=-1).tolist(), strict=True))
    per_row = [((v - f_test) ** 2).mean(axis=0).sum(axis=-1) for v in (found, v_test[0])]
    gap = per_row[0] - per_row[1]
    by_name = {label: dict(zip(wanted, w, strict=True)) for label, w in weights.items()}
    return {"table": name, "rows": len(table.X_train), "stack": float(per_row[0].mean()), "single": losses,
            "gap_se": float(gap.std(ddof=1) / np.sqrt(len(gap))), "weights": by_name}  # fmt: skip


def stack_design(name: str, repetition: int) -> dict[str, Any]:
    """Error of the Shapley values over their mean size, by every approach and by the stack, where the truth is known."""
    model, X_train, X, plan, base, phi = pose_design(name, repetition)
    held, kept = halves(len(X_train))
    wanted = [a for a in RIVALS if not name.startswith("mixed") or a in ("vaeac", "ctree", "regression_surrogate")]
    options = {"coalitions": plan, "base_value": base, "seed": repetition, "check_draws": False, "progress": False}
    first, final, size = [], [], float(np.abs(phi).mean())
    errors: dict[str, float] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for approach in wanted:
            for store, train, rows in ((first, X_train.iloc[kept], X_train.iloc[held]), (final, X_train, X)):
                found = Explainer(model, approach=approach, **options).fit(train).explain(rows)
                v = found.value_table.values[plan.interior][..., None]
                store.append((v, found.predictions[:, None], plan.sizes[plan.interior] <= plan.n_players / 2))
            errors[approach] = float(np.abs(found.values - phi).mean()) / size
    v = np.concatenate(
        [found.value_table.values[:1, :, None], stacked_values(first, final)[0], found.predictions[None, :, None]]
    )
    values = solve_shapley(v, np.zeros_like(v), plan).values[..., 0]
    return {
        "design": name,
        "repetition": repetition,
        "stack": float(np.abs(values - phi).mean()) / size,
        "single": errors,
    }


def design_page(lines: Sequence[dict[str, Any]]) -> str:
    """Means over repetitions, in Markdown."""
    out = [
        "| design | repetitions | stack | default | best single approach | stack over default |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name in dict.fromkeys(line["design"] for line in lines):
        own = [line for line in lines if line["design"] == name]
        stacked, default = (float(np.mean(x)) for x in ([o["stack"] for o in own], [o["single"]["vaeac"] for o in own]))
        best = min(float(np.mean([o["single"][a] for o in own])) for a in own[0]["single"])
        out.append(f"| {name} | {len(own)} | {stacked:.3f} | {default:.3f} | {best:.3f} | {stacked / default:.2f} |")
    return "\n".join(out) + "\n"


def page(lines: Sequence[dict[str, Any]]) -> str:
    """The comparison in Markdown."""
    out = ["| table | rows | stack over default | over best single approach | difference in standard errors |"]
    out.append("| --- | --- | --- | --- | --- |")
    for line in lines:
        default, best = line["single"]["vaeac"], min(line["single"].values())
        z = (line["stack"] - default) / max(line["gap_se"], 1e-300)
        ratios = f"{line['stack'] / default:.3f} | {line['stack'] / best:.3f}"
        out.append(f"| {line['table']} | {line['rows']} | {ratios} | {z:+.1f} |")
    return "\n".join(out) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tables that are named and print the page."""
    options = parser("stacking", __doc__)
    options.add_argument("--tables", nargs="*", default=list(TABLES))
    options.add_argument("--folder", type=Path, default=None, help="tables that `league --export` has written")
    options.add_argument("--designs", nargs="*", default=[], help="designs in place of tables, see `model_errors`")
    options.add_argument("--repetitions", type=int, default=3)
    options.add_argument("--jobs", type=int, default=1)
    options.add_argument("--store", type=Path, default=STORE)
    given = options.parse_args(arguments)
    from joblib import Parallel, delayed

    if given.designs:
        asked = [(name, r) for name in given.designs for r in range(given.repetitions)]
        jobs = [delayed(stack_design)(*one) for one in asked]
    else:
        jobs = [delayed(stack)(name, given.folder) for name in given.tables]
    with given.store.open("a") as file:
        for line in Parallel(n_jobs=given.jobs, return_as="generator")(jobs):
            file.write(json.dumps(line) + "\n")
            file.flush()
    lines = [json.loads(text) for text in given.store.read_text().splitlines()]
    tables, designs = ([line for line in lines if kind in line] for kind in ("table", "design"))
    text = "\n".join(build(own) for build, own in ((page, tables), (design_page, designs)) if own)
    print(text)
    if given.write:
        write_section(page_of("stacking"), "stacking", text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
