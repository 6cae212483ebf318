"""On which machine the results of a store were made.

Results themselves do not say it. A file beside the store, with the ending .machines.jsonl, has a line for each of them: its
key and the machine.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from benchmarks.measure import machine
from condshap.studies.store import Key, Result, Store

UNNAMED_GPU = "16 cores of an Intel Xeon with an NVIDIA H200, forests evaluated on the GPU"
"""Where results with forests on an accelerator were made before machines were noted, as those tell who ran them."""
UNKNOWN = "a machine that was not noted"


@contextmanager
def noted(store: Path) -> Iterator[None]:
    """Note this machine for all results that are added to a store, or replaced, meanwhile; also if that fails."""
    before = Store(store).read()
    try:
        yield
    finally:
        now = Store(store).read()
        added = [result for key, result in now.items() if before.get(key) != result]
        _append(store, {result.key: _machine_of(result) for result in added})


def origins(store: Path, found: Mapping[Key, Result]) -> list[tuple[str, int]]:
    """Machines on which results were made, and how many on each, the most first."""
    known = _read(store)
    return Counter(known.get(key) or _unnoted(result) for key, result in found.items()).most_common()


def machine_of_result(store: Path, result: Result) -> str:
    """Machine on which a result of a store was made, as far as it is known."""
    return _read(store).get(result.key) or _unnoted(result)


def _machine_of(result: Result) -> str:
    return machine(gpu=result.device != "cpu" or result.forest == "cuda")


def _unnoted(result: Result) -> str:
    return f"{UNNAMED_GPU} (told by who ran it, not noted at the time)" if result.forest == "cuda" else UNKNOWN


def _path(store: Path) -> Path:
    return store.with_suffix(".machines.jsonl")


def _append(store: Path, machines: Mapping[Key, str]) -> None:
    if machines:
        with _path(store).open("a") as file:
            file.writelines(json.dumps({**asdict(key), "machine": name}) + "\n" for key, name in machines.items())


def _read(store: Path) -> dict[Key, str]:
    """Machines by the keys of results; of several with the same key the last one counts."""
    if not _path(store).exists():
        return {}
    lines = [json.loads(line) for line in _path(store).read_text().splitlines()]
    return {Key(**line): name for line in lines if (name := line.pop("machine"))}
