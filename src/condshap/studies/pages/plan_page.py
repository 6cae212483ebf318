"""Plan -> text for a screen: minutes by study, cell and method, and of the whole."""

from __future__ import annotations

import math
from itertools import groupby

from condshap.studies.pages.markdown import markdown
from condshap.studies.pages.study_page import cell_name
from condshap.studies.running.planning import SLOW_MINUTES, Open, Plan


def plan_text(plan: Plan) -> str:
    """Table of what is open, and a line on the whole; cells that differ in rho alone share a line."""
    if not plan.open:
        return "Nothing is open: the stores have every result.\n"
    heads = ("study", "cells", "method", "results", "minutes each", "minutes", "known from")
    lines = [_line(list(some)) for _, some in groupby(sorted(plan.open, key=_place), key=_place)]
    whole = (
        f"{plan.results} results are open: about {plan.minutes:.0f} minutes with {plan.jobs} "
        f"{'process' if plan.jobs == 1 else 'processes'} at a time, the slowest repetition about {plan.longest:.1f}"
    )
    notes = [f"{whole}{f', without {plan.unknown} results of unknown cost' if plan.unknown else ''}."]
    if plan.longest > SLOW_MINUTES:
        notes.append(f"Repetitions of more than {SLOW_MINUTES:g} minutes may be 3 instead of 5 (--repetitions 3).")
    return f"{markdown(heads, lines)}\n\n{' '.join(notes)}\n"


def plan_facts(plan: Plan) -> dict[str, object]:
    """The same as plain values, None for what is unknown."""
    found = [
        {
            "study": one.study, "cell": one.cell.key, "method": one.method, "results": one.repetitions,
            "seconds": None if math.isnan(one.each.value) else one.each.value, "source": one.each.source,
        }
        for one in plan.open
    ]  # fmt: skip
    whole = {"jobs": plan.jobs, "minutes": plan.minutes, "longest": plan.longest, "unknown": plan.unknown}
    return {"open": found, **whole}


def _place(one: Open) -> tuple[str, str, str]:
    return one.study, cell_name(one.cell).partition(", rho = ")[0], one.method


def _line(some: list[Open]) -> list[str]:
    """Cells of one size and a method."""
    study, size, method = _place(some[0])
    known = [one for one in some if one.each.source != "unknown"]
    total = sum(one.repetitions * one.each.value for one in known) / 60
    count = sum(one.repetitions for one in some)
    each = total / max(1, sum(one.repetitions for one in known))
    source = ", ".join(sorted({one.each.source for one in some}))
    return [study, size, method, str(count), *((f"{each:.1f}", f"{total:.0f}") if known else ("?", "?")), source]
