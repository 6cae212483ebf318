"""How often the draw check warns: where draws are right (false alarms), where they are wrong (power), and what it costs.

Run ``python -m benchmarks draw_check``, with ``--write`` to put the tables into benchmarks/README.md. Right approaches are
the truth itself and approaches on data that suit them. Wrong ones are the truth made worse on purpose, features that are
drawn by their margins alone where they depend in a way that is hard to see, and networks on columns that repeat each other.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

import condshap as cs
from benchmarks.measure import measure
from benchmarks.report import parser, publish, read, table
from condshap.approaches.base import ALL_KINDS, DrawnRows
from condshap.approaches.vaeac import VAEAC
from condshap.draw_check.checking import check_draws
from condshap.draw_check.result import DrawCheck
from condshap.schema import Kind
from condshap.studies.designs import burr_design, categorical_design, mixed_design
from condshap.testing.truth import GaussianTruth

Make = Callable[[int, int], pd.DataFrame]
RHO = 0.6


class Truth(BaseEstimator):
    """Approach that draws from a design's own conditional distributions."""

    name: ClassVar[str] = "truth"
    supports: ClassVar[frozenset[Kind]] = ALL_KINDS
    handles_missing: ClassVar[bool] = False
    needs_model: ClassVar[bool] = False

    def __init__(self, design: Any) -> None:
        self.design = design

    def fit(self, X: Any, schema: Any, *, plan: Any, seed: int) -> Truth:
        """Learn nothing."""
        return self

    def sample(self, X: Any, masks: Any, n_samples: int, *, keys: Any, seed: int) -> DrawnRows:
        """Draw from the truth, (C, R, K, M)."""
        return DrawnRows(self.design.sample_conditional(X, masks, n_samples, seed=seed, keys=keys))


class Worse(Truth):
    """The same with something done to its draws: `spoil(draws (C, R, K, M), masks (C, M), rng)` changes them in place."""

    name: ClassVar[str] = "truth made worse"

    def __init__(self, design: Any, spoil: Callable[..., None]) -> None:
        super().__init__(design)
        self.spoil = spoil

    def sample(self, X: Any, masks: Any, n_samples: int, *, keys: Any, seed: int) -> DrawnRows:
        """Draw from the truth and spoil it."""
        drawn = super().sample(X, masks, n_samples, keys=keys, seed=seed).rows.copy()
        self.spoil(drawn, masks, np.random.default_rng([seed, *masks.sum(axis=1)]))
        return DrawnRows(drawn)


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


def normals(n_features: int, rho: float, n: int, seed: int) -> pd.DataFrame:
    """Normals with equal correlations."""
    rng = np.random.default_rng([seed, n_features, n])
    covariance = rho + (1 - rho) * np.eye(n_features)
    X = rng.multivariate_normal(np.zeros(n_features), covariance, size=n)
    return pd.DataFrame(X, columns=[f"x{j + 1}" for j in range(n_features)])


def duplicates(n: int, seed: int) -> pd.DataFrame:
    """Four columns that correlate with .998, and two more with .6."""
    rng = np.random.default_rng([seed, n])
    common = rng.normal(size=(n, 1))
    four, two = common + 0.045 * rng.normal(size=(n, 4)), 0.78 * common + 0.62 * rng.normal(size=(n, 2))
    return pd.DataFrame(np.hstack([four, two]), columns=["d1", "d2", "d3", "d4", "e1", "e2"])


def gems(n: int, seed: int) -> pd.DataFrame:
    """Table like that of diamonds: three lengths that go with the weight's cube root, and a purity that falls with it."""
    rng = np.random.default_rng([seed, n, 1])
    carat = np.exp(rng.normal(-0.4, 0.6, size=n))
    lengths = 6.4 * np.cbrt(carat)[:, None] * np.exp(0.01 * rng.normal(size=(n, 3))) * [1, 1, 0.62]
    purity = pd.cut(
        -np.log(carat) + 1.2 * rng.normal(size=n), [-np.inf, -0.6, 0.4, 1.4, np.inf], labels=["I1", "SI", "VS", "IF"]
    )
    columns = {
        "carat": carat,
        "x": lengths[:, 0],
        "y": lengths[:, 1],
        "z": lengths[:, 2],
        "depth": rng.normal(62, 1.4, size=n),
    }
    return pd.DataFrame(
        {**columns, "cut": pd.Categorical(rng.choice(["Fair", "Good", "Ideal"], size=n)), "purity": purity}
    )


def right_cells(quick: bool) -> list[tuple[str, str, int, Callable[[int], tuple[Any, Any]], int]]:
    """Data, approach, rows, what makes both from a seed, and how many seeds: all of these should be quiet."""
    cells = []
    for n in (100, 300, 1000, 5000):
        for m, rho in ((5, 0.3), (5, 0.9), (10, 0.6)):
            covariance = rho + (1 - rho) * np.eye(m)
            truth = GaussianTruth(np.zeros(m), covariance)
            for name, approach in (("gaussian", "gaussian"), ("copula", "copula"), ("truth", truth)):
                cells.append(
                    (
                        f"normal, M = {m}, rho = {rho}",
                        name,
                        n,
                        lambda s, m=m, rho=rho, n=n, a=approach: (normals(m, rho, n, s), a),
                        5,
                    )
                )
        for m in (5, 10):
            cells.append(
                (f"Burr, M = {m}", "copula", n, lambda s, m=m, n=n: (burr_design(m, seed=s).draw(n, s), "copula"), 5)
            )
            cells.append(
                (f"Burr, M = {m}", "truth", n, lambda s, m=m, n=n: _with_truth(burr_design(m, seed=s), n, s), 5)
            )
        for rho in (0.0, 0.5, 0.9):
            cells.append(
                (
                    f"mixed, M = 4, rho = {rho}",
                    "truth",
                    n,
                    lambda s, rho=rho, n=n: _with_truth(mixed_design("M4", rho, s), n, s),
                    5,
                )
            )
            cells.append(
                (
                    f"categorical, M = 4, L = 3, rho = {rho}",
                    "truth",
                    n,
                    lambda s, rho=rho, n=n: _with_truth(categorical_design(4, 3, rho, s), n, s),
                    5,
                )
            )
        if n >= 1000:
            for rho in (0.3, 0.6):
                cells += [
                    (f"normal, M = 5, rho = {rho}", a, n, lambda s, rho=rho, n=n, a=a: (normals(5, rho, n, s), a), 5)
                    for a in ("ctree", "empirical")
                ]
            for a in ("ctree", "empirical"):
                cells.append(("Burr, M = 5", a, n, lambda s, n=n, a=a: (burr_design(5, seed=s).draw(n, s), a), 5))
            cells.append(
                (
                    "mixed, M = 4, rho = 0.5",
                    "ctree",
                    n,
                    lambda s, n=n: (mixed_design("M4", 0.5, s).draw(n, s), "ctree"),
                    5,
                )
            )
            cells.append(
                (
                    "categorical, M = 4, L = 3, rho = 0.5",
                    "ctree",
                    n,
                    lambda s, n=n: (categorical_design(4, 3, 0.5, s).draw(n, s), "ctree"),
                    5,
                )
            )
    for title, make in _plain_tables().items():
        for n, seeds in ((300, 6), (1000, 1)):
            cells.append((title, "vaeac", n, lambda s, make=make, n=n: (make(n, s), "vaeac"), seeds))
    return [(*cell[:4], 1) for cell in cells if cell[2] < 1000 and cell[1] != "vaeac"] if quick else cells


def _with_truth(design: Any, n: int, seed: int) -> tuple[Any, Any]:
    return design.draw(n, seed), Truth(design)


def _plain_tables() -> dict[str, Make]:
    """Data on which networks are known to be right."""
    return {
        "normal, M = 4, rho = 0.3": lambda n, s: normals(4, 0.3, n, s),
        "Burr, M = 5": lambda n, s: burr_design(5, seed=s).draw(n, s),
        "mixed, M = 4, rho = 0.5": lambda n, s: mixed_design("M4", 0.5, s).draw(n, s),
        "categorical, M = 4, L = 3, rho = 0.5": lambda n, s: categorical_design(4, 3, 0.5, s).draw(n, s),
    }


def halve_dependence(drawn: Any, masks: Any, rng: Any) -> None:
    """Half of the draws have their unknown columns from draws for other rows, each column from another one."""
    for c, mask in enumerate(masks):
        replaced = rng.random(drawn.shape[1:3]) < 0.5
        for j in np.flatnonzero(~mask):
            drawn[c, replaced, j] = rng.permutation(drawn[c, ..., j].ravel())[: replaced.sum()]


def thin_a_level(drawn: Any, masks: Any, rng: Any) -> None:
    """A third of the first level of the first column becomes the second."""
    for c, mask in enumerate(masks):
        if not mask[0]:
            moved = (drawn[c, ..., 0] == 0) & (rng.random(drawn.shape[1:3]) < 1 / 3)
            drawn[c, moved, 0] = 1


def halve_spread(drawn: Any, masks: Any, rng: Any) -> None:  # noqa: ARG001
    """Draws are half as far from their mean for the row."""
    mean = drawn.mean(axis=2, keepdims=True)
    drawn[:] = mean + (drawn - mean) / 2


def wrong_cells() -> list[tuple[str, int, Callable[[int], tuple[Any, Any]]]]:
    """Draws made worse on purpose, by rows, and what makes data and approach."""
    cells: list[tuple[str, int, Callable[[int], tuple[Any, Any]]]] = []
    for n in (300, 1000, 5000):
        normal, mixed = _NormalDesign(5, RHO), "M4"
        cells.append(
            (
                f"normal, M = 5, rho = {RHO}: dependence halved",
                n,
                lambda s, n=n, d=normal: (d.draw(n, s), Worse(d, halve_dependence)),
            )
        )
        cells.append(
            (
                f"normal, M = 5, rho = {RHO}: spread halved",
                n,
                lambda s, n=n, d=normal: (d.draw(n, s), Worse(d, halve_spread)),
            )
        )
        cells.append(
            (
                "mixed, M = 4, rho = 0.5: a level a third rarer",
                n,
                lambda s, n=n, m=mixed: (
                    mixed_design(m, 0.5, s).draw(n, s),
                    Worse(mixed_design(m, 0.5, s), thin_a_level),
                ),
            )
        )
        cells.append(
            (
                "mixed, M = 4, rho = 0.9: dependence halved",
                n,
                lambda s, n=n, m=mixed: (
                    mixed_design(m, 0.9, s).draw(n, s),
                    Worse(mixed_design(m, 0.9, s), halve_dependence),
                ),
            )
        )
    return cells


class _NormalDesign:
    """Normals with equal correlations, as a design."""

    def __init__(self, n_features: int, rho: float) -> None:
        self.n_features, self.rho = n_features, rho
        self.truth = GaussianTruth(np.zeros(n_features), rho + (1 - rho) * np.eye(n_features))
        self.truth.fit(None, None, plan=None, seed=0)

    def draw(self, n: int, seed: int) -> pd.DataFrame:
        return normals(self.n_features, self.rho, n, seed)

    def sample_conditional(self, X: Any, masks: Any, n_samples: int, *, seed: int, keys: Any) -> Any:
        return self.truth.sample(X, masks, n_samples, keys=keys, seed=seed).rows


def hidden_tables() -> dict[str, Make]:
    """Dependence that is hard to see; the columns are drawn as if there were none, or by a copula."""

    def table_of(columns: Callable[[Any, int], list[Any]]) -> Make:
        def make(n: int, seed: int) -> pd.DataFrame:
            values = columns(np.random.default_rng([seed, n]), n)
            return pd.DataFrame({f"x{j + 1}": column for j, column in enumerate(values)})

        return make

    def square(rng: Any, n: int) -> list[Any]:
        x = rng.normal(size=n)
        return [x, x**2 + 0.3 * rng.normal(size=n), rng.normal(size=n)]

    def circle(rng: Any, n: int) -> list[Any]:
        angle = rng.uniform(0, 2 * np.pi, size=n)
        return [np.cos(angle) + 0.1 * rng.normal(size=n), np.sin(angle) + 0.1 * rng.normal(size=n), rng.normal(size=n)]

    def wave(rng: Any, n: int) -> list[Any]:
        x = rng.uniform(-1, 1, size=n)
        return [x, np.sin(4 * np.pi * x) + 0.2 * rng.normal(size=n), rng.normal(size=n)]

    def tails(rng: Any, n: int) -> list[Any]:
        x, y = rng.normal(size=(2, n))
        return [x, np.where(np.abs(x) > 1.645, x, np.clip(y, -1.645, 1.645)), rng.normal(size=n)]

    def by_level(rng: Any, n: int) -> list[Any]:
        level, x = rng.integers(0, 2, size=n), rng.normal(size=n)
        return [x, 0.9 * x * (2 * level - 1) + 0.44 * rng.normal(size=n), pd.Categorical(np.where(level, "up", "down"))]

    def parity(rng: Any, n: int) -> list[Any]:
        a, b = rng.integers(0, 2, size=(2, n))
        return [pd.Categorical(one.astype(str)) for one in (a, b, a ^ b)]

    def scale(rng: Any, n: int) -> list[Any]:
        x = rng.normal(size=n)
        return [x, np.exp(0.8 * x) * rng.normal(size=n), rng.normal(size=n)]

    kinds = {
        "y = x^2": square, "a circle": circle, "y = sin(4 pi x)": wave, "equal in the tails only (10 % of rows)": tails,
        "sign by a third column's level (rho = ±.9)": by_level, "parity of three levels": parity,
        "spread that grows with x": scale,
    }  # fmt: skip
    return {name: table_of(columns) for name, columns in kinds.items()}


class Margins(cs.approaches.Independence):
    """Features by their margins alone, each from a row of its own."""

    name: ClassVar[str] = "margins"

    def sample(self, X: Any, masks: Any, n_samples: int, *, keys: Any, seed: int) -> DrawnRows:
        """Draw every unknown column by itself."""
        rng = np.random.default_rng([seed, *masks.sum(axis=1)])
        drawn = np.repeat(np.repeat(X[None, :, None], len(masks), axis=0), n_samples, axis=2)
        for c, mask in enumerate(masks):
            for j in np.flatnonzero(~mask):
                drawn[c, ..., j] = rng.choice(self.rows_[:, j], size=drawn.shape[1:3])
        return DrawnRows(drawn)


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
    for title, approach, n, make, seeds in right_cells(quick):
        if networks_only and approach != "vaeac":
            continue
        scores = [found(*make(seed), seed).score for seed in range(seeds)]
        about = {"data": title, "approach": approach, "N": n, "fits": seeds}
        lines.append({**about, "alarms": sum(s >= 1 for s in scores), "largest score": max(scores)})
        print(lines[-1], flush=True)
    return lines


def run_wrong(quick: bool) -> list[dict[str, Any]]:
    """Score the truth made worse."""
    lines = []
    for title, n, make in wrong_cells()[: 2 if quick else None]:
        scores = [found(*make(seed), seed).score for seed in range(1 if quick else 10)]
        lines.append({"draws": title, "N": n, **alarms_in(scores)})
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


def main(arguments: list[str] | None = None) -> None:
    options = parser("draw_check", __doc__)
    options.add_argument("--quick", action="store_true", help="one seed and few rows, for a test")
    options.add_argument("--networks", action="store_true", help="run networks again, and keep the other results")
    given = options.parse_args(arguments)
    before = read("draw_check") if given.networks else None
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
        "cost": [] if given.quick else [*cost(1000, 10), *cost(100_000, 20)],
    }
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
        "cost": "What it costs",
    }
    for name, title in titles.items():
        if results[name]:
            parts += [f"### {title}", table([_shown_line(line) for line in results[name]])]
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
