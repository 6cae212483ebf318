"""Lines of the league -> ratios to the best approach with paired intervals, and a page of tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

from benchmarks.league.tables import BY_NAME
from benchmarks.lib.report import table

DEFAULT = "vaeac"
NEAR, NOT_FAR = 1.05, 1.10
"""MSEv over that of the table's best approach: 5 % more is hard to notice, 10 % more is no reason to look further."""
Line = dict[str, Any]


@dataclass(frozen=True)
class Ratio:
    """Ratio of two means over the same rows, with the ends of its interval."""

    value: float
    low: float
    high: float


def paired_ratio(ours: Sequence[float], best: Sequence[float], level: float = 0.95) -> Ratio:
    """Mean of (R,) numbers over the mean of others of the same rows; interval by the delta method and Student's t."""
    a, b = np.asarray(ours), np.asarray(best)
    ratio, n = a.mean() / b.mean(), len(a)
    half = stdtrit(n - 1, (1 + level) / 2) * (a - ratio * b).std(ddof=1) / np.sqrt(n) / abs(b.mean())
    return Ratio(float(ratio), float(ratio - half), float(ratio + half))


def contests(lines: Iterable[Line]) -> dict[tuple[Any, ...], dict[str, Line]]:
    """Lines by approach for each table, model and seed, where all have explained the same fitted model."""
    found: dict[tuple[Any, ...], dict[str, Line]] = {}
    for line in lines:
        key = (line["table"], line["model"], line["seed"], line["model_mark"])
        found.setdefault(key, {})[line["approach"]] = line
    return found


def best_of(by_approach: dict[str, Line], rivals: Iterable[str] | None = None) -> Line:
    """Line with the least MSEv, of all or of some approaches."""
    return min((by_approach[name] for name in rivals or by_approach), key=lambda line: line["msev"])


def default_over_best(by_approach: dict[str, Line], default: str = DEFAULT) -> Ratio | None:
    """Ratio of the default to the best, 1 where it is the best; other versions of the default are no rivals."""
    if default not in by_approach:
        return None
    rivals = [name for name in by_approach if name == default or not name.startswith("vaeac")]
    return paired_ratio(by_approach[default]["per_row"], best_of(by_approach, rivals)["per_row"])


def page(lines: Sequence[Line], half: str) -> str:
    """All tables of one half."""
    mine = [line for line in lines if BY_NAME[line["table"]].half == half]
    if not mine:
        return f"## Half {half}\n\nNo results.\n"
    names = sorted({line["approach"] for line in mine if line["approach"].startswith("vaeac")})
    parts = [f"## Half {half}", "MSEv over the best approach's.", table(ratio_lines(mine))]
    parts += [summary(mine, name) for name in names]
    parts += ["CPU seconds of fit and explain.", table(second_lines(mine))]
    checked = sanity_lines(mine)
    parts += ["Draws beside training rows, forest.", table(checked)] if checked else []
    near = pair_lines(mine)
    return "\n\n".join([*parts, *(["Correlation of the nearest columns.", table(near)] if near else [])]) + "\n"


def approaches_of(lines: Iterable[Line]) -> list[str]:
    return sorted({line["approach"] for line in lines}, key=lambda name: (not name.startswith("vaeac"), name))


def ratio_lines(lines: Sequence[Line]) -> list[dict[str, str]]:
    """A line for each contest: every approach's MSEv over the best one's."""
    made = []
    for (name, model, seed, _), found in contests(lines).items():
        best, ratio = best_of(found), default_over_best(found)
        entry = {"table": name, "kind": BY_NAME[name].kind, "model": model, "seed": str(seed)}
        entry |= {
            approach: f"{found[approach]['msev'] / best['msev']:.3f}" if approach in found else ""
            for approach in approaches_of(lines)
        }
        paired = f"{ratio.value:.3f} ({ratio.low:.3f} to {ratio.high:.3f})" if ratio else ""
        made.append({**entry, "best": best["approach"], f"{DEFAULT} over best": paired})
    return sorted(made, key=lambda line: (line["table"], line["model"], line["seed"]))


def summary(lines: Sequence[Line], default: str) -> str:
    """One sentence on a version of the default: contests within the bars, and by table the mean over models and seeds."""
    found = {key: default_over_best(some, default) for key, some in contests(lines).items() if len(some) > 1}
    by_table: dict[str, list[float]] = {}
    for key, ratio in found.items():
        if ratio is not None and BY_NAME[key[0]].name != "penguins_gaps":
            by_table.setdefault(key[0], []).append(ratio.value)
    if not by_table:
        return f"{default}: no rivals yet."
    every = np.concatenate(list(by_table.values()))
    means = {name: float(np.mean(values)) for name, values in by_table.items()}
    worst = max(means, key=lambda name: means[name])
    return (
        f"{default} over the best: {np.mean(every <= NEAR):.0%} of {len(every)} contests at most {NEAR}, "
        f"{np.mean(every <= NOT_FAR):.0%} at most {NOT_FAR:.2f}, largest {every.max():.3f}; geometric mean "
        f"{np.exp(np.log(every).mean()):.3f}. By table {sum(m <= NEAR for m in means.values())} of {len(means)} at most "
        f"{NEAR}, the worst is {worst} with {means[worst]:.3f}."
    )


def second_lines(lines: Sequence[Line]) -> list[dict[str, str]]:
    """CPU seconds of every approach by table, mean over models and seeds."""
    names = approaches_of(lines)
    made = []
    for name in sorted({line["table"] for line in lines}):
        mine = [line for line in lines if line["table"] == name]
        seconds = {a: [line["seconds"]["cpu"] for line in mine if line["approach"] == a] for a in names}
        made.append({"table": name, **{a: f"{np.mean(found):.1f}" if found else "" for a, found in seconds.items()}})
    return made


def sanity_lines(lines: Sequence[Line]) -> list[dict[str, str]]:
    """Means of numbers and values given every level of a column, for approaches that draw."""
    made = []
    for line in lines:
        trees = [other for other in lines if same_contest(line, other) and other["approach"] == "ctree"]
        for column in dict.fromkeys(entry[0] for entry in (line["sanity"] or {}).get("values", ())):
            distance, in_errors, same_side = value_distances(line["sanity"], column)
            reference = value_distances(trees[0]["sanity"], column)[0] if trees and trees[0]["sanity"] else np.nan
            within = [abs(entry[3]) <= 2 for entry in line["sanity"]["means"] if entry[0] == column]
            entry = {"table": line["table"], "given": column, "approach": line["approach"]}
            entry |= {"means within 2 se": f"{sum(within)} of {len(within)}", "distance of v": f"{distance:.3g}"}
            entry |= {"in se": f"{in_errors:.2f}"}
            over = f"{distance / reference:.2f}" if reference else "inf"
            made.append({**entry, "over ctree's": over, "same side of the base": f"{same_side:.2f}"})
    return sorted(made, key=lambda line: tuple(line.values())[:3])


def same_contest(line: Line, other: Line) -> bool:
    return all(line[part] == other[part] for part in ("table", "model", "seed", "model_mark"))


def value_distances(found: dict[str, Any], column: str) -> tuple[float, float, float]:
    """Distances of v from the mean prediction of the rows with a level.

    Returns
    -------
    Their mean over levels, the same in standard errors of the rows' mean, and the share of values on the rows' side of the
    base, where that is more than two standard errors away.
    """
    v, rows, errors = (np.array([entry[i] for entry in found["values"] if entry[0] == column]) for i in (2, 3, 4))
    base = np.array(found["base"])
    clear = np.abs(rows - base) > 2 * errors
    same = np.sign(v - base) == np.sign(rows - base)
    in_errors = np.abs(v - rows)[errors > 0] / errors[errors > 0]
    side = float(same[clear].mean()) if clear.any() else np.nan
    return float(np.abs(v - rows).mean()), float(in_errors.mean()) if len(in_errors) else np.nan, side


def pair_lines(lines: Sequence[Line]) -> list[dict[str, str]]:
    """Correlations of the nearest pair of each table by what was given, among rows and among draws."""
    made = []
    for line in lines:
        nearest: dict[str, list[Any]] = {}
        for pair in (line["sanity"] or {}).get("pairs", ()):
            nearest[pair[2]] = max(nearest.get(pair[2], pair), pair, key=lambda found: abs(found[3]))
        for first, second, given, rows, draws in nearest.values():
            entry = {"table": line["table"], "pair": f"{first}, {second}", "given": given}
            made.append({**entry, "approach": line["approach"], "rows": f"{rows:.3f}", "draws": f"{draws:.3f}"})
    return sorted(made, key=lambda line: tuple(line.values())[:4])
