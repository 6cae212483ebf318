"""Address of a figure -> what the stored results say.

``peers/linear/lines/gaussian/cpu`` reads ``benchmarks/results/peers.json``: a step into an object is one of its keys, a step
into a list keeps the items that hold that value, or all of its words. ``continuous-low/M=5 N=1000/vaeac/ec1`` reads lines of
``docs/results/data/continuous-low.jsonl``, and where a cell has none of a method, those of an older default beside them. A
key of several items is their mean, so that repetitions are averaged.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FOLDERS = (ROOT / "benchmarks" / "results", ROOT / "docs" / "results" / "data")


@cache
def load(name: str) -> Any:
    """Results of that name: of a JSON file its results, of a file of lines all of them."""
    for path in (folder / f"{name}{ending}" for folder in FOLDERS for ending in (".json", ".jsonl")):
        if path.suffix == ".json" and path.exists():
            return json.loads(path.read_text())["results"]
        if path.exists():
            return _with_older(_lines(path), path.parent / "older" / path.name)
    raise LookupError(
        f"there are no results named {name!r} in {' or '.join(str(f.relative_to(ROOT)) for f in FOLDERS)}"
    )


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def _with_older(lines: list[dict[str, Any]], older: Path) -> list[dict[str, Any]]:
    """Lines, and those by older defaults of cells and methods that have no others."""
    if not older.exists():
        return lines
    known = {(line["cell"], line["method"]) for line in lines}
    return lines + [line for line in _lines(older) if (line["cell"], line["method"]) not in known]


def find(address: str) -> Any:
    """Figure at an address, a number or the text of a table's cell."""
    name, *steps = address.split("/")
    found = load(name)
    for step in steps:
        found = _into(found, step)
        if found is None:
            raise LookupError(f"the results have nothing at {step!r} of {address!r}")
    if isinstance(found, list):
        raise LookupError(f"{address!r} must lead to one figure, it leads to {len(found)} items")
    return found


def _into(found: Any, step: str) -> Any:
    if isinstance(found, dict):
        return found.get(step)
    if not isinstance(found, list):
        return None
    differ = {key for key in found[0] if any(item.get(key) != found[0][key] for item in found)}
    for keys in (differ, set(found[0])):  # what tells items apart is meant, before what all of them have
        for is_meant in (lambda value: value == step, lambda value: set(step.split()) <= set(value.split())):
            kept = [item for item in found if _holds(item, keys, is_meant)]
            if kept:
                return kept[0] if len(kept) == 1 else kept
    figures = [_number(item[step]) for item in found if step in item]
    return math.fsum(figures) / len(figures) if figures else None


def _holds(item: dict[str, Any], keys: set[str], is_meant: Callable[[str], bool]) -> bool:
    return any(is_meant(str(item[key])) for key in keys if isinstance(item.get(key), str | int))


def shown(address: str, form: str) -> str:
    """Figure as it stands in prose: the text of a table's cell, or a number, before whose % there is a space."""
    return str(find(address)) if form == "s" else format(number_at(address), form).replace("%", " %")


def number_at(address: str) -> float:
    """Number at an address; of two addresses with "over" between them, their ratio."""
    above, over, below = address.partition(" over ")
    return _number(find(above)) / _number(find(below)) if over else _number(find(above))


def _number(found: Any) -> float:
    """Number, or that which the text of a table's cell begins with."""
    return float(found.replace(",", "").split()[0]) if isinstance(found, str) else found
