"""Name of a range -> the figures that it spans, from the stored results: what prose sums up as "0.52 to 0.88"."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from benchmarks.league.report import best_of, contests
from benchmarks.league.tables import names_of
from benchmarks.lib.figures import load


def slopes(along: str) -> list[float]:
    """How CPU seconds grow: exponents of all problems."""
    return [one["slope"] for one in load("growth")[along]]


def league_lines(half: str) -> list[dict[str, Any]]:
    """Lines of all tables of a half."""
    return [line for name in names_of(half) for line in load(f"league-{name}")]


def league_seconds(approach: str) -> list[float]:
    """CPU seconds to fit and explain a table."""
    return [line["seconds"]["cpu"] for line in league_lines("all") if line["approach"] == approach]


def league_over_best(approach: str) -> list[float]:
    """MSEv over that of the best, on the tables that were not used for tuning."""
    found = []
    for by_approach in contests(league_lines("unseen")).values():
        rivals = [name for name in by_approach if name == "vaeac" or not name.startswith("vaeac")]
        if approach in by_approach:
            found.append(by_approach[approach]["msev"] / best_of(by_approach, rivals)["msev"])
    return found


def default_with_300_rows() -> list[float]:
    """Mean error of the default over that of the best other approach, design by design."""
    by_design = defaultdict(list)
    for line in load("draw_check")["values"]:
        by_design[line["data"]].append(line["errors"])
    means = [{name: mean(one[name] for one in errors) for name in errors[0]} for errors in by_design.values()]
    return [own["vaeac"] / min(error for name, error in own.items() if name != "vaeac") for own in means]


def coverage(errors: str) -> list[float]:
    """Percentage of values inside their 90 % intervals by some errors, design by design."""
    by_design = defaultdict(list)
    for line in load("model-errors"):
        if "design" in line and line["approach"] == "vaeac":
            by_design[line["design"]].append(100 * line[errors])
    return [mean(shares) for shares in by_design.values()]


def moved_over_reported() -> list[float]:
    """How far values move from seed to seed over what is reported, of approaches that move."""
    return [line["ratio"] for line in load("model-errors") if "table" in line and line["reported"] > 0]


def mean(figures: Iterable[float]) -> float:
    """Of one or more figures."""
    some = list(figures)
    return sum(some) / len(some)


OTHERS = ("gaussian", "ctree", "copula", "regression_surrogate")
OF_STORES: dict[str, Callable[[], list[float]]] = {
    **{f"growth-{along}": partial(slopes, along) for along in ("rows", "K", "coalitions")},
    **{
        f"league-seconds-{name}": partial(league_seconds, name)
        for name in ("vaeac", "gaussian", "regression_surrogate")
    },
    "300-rows": default_with_300_rows,
    **{f"coverage-{errors}": partial(coverage, errors) for errors in ("refits", "members")},
    "seeds": moved_over_reported,
    **{f"league-over-best-{name}": partial(league_over_best, name) for name in OTHERS},
}
