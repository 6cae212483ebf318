"""Results of the league as lines of JSON, one file a table, one line a cell, written as soon as it is finished."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KEY = ("table", "model", "approach", "seed")


@dataclass(frozen=True)
class LeagueStore:
    """Folder with a file ``league-TABLE.jsonl`` for each table; several processes may write to it."""

    folder: Path

    def append(self, line: dict[str, Any]) -> None:
        """Write a result in one call of the system, so that lines of several processes do not mix."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.path_of(line["table"]).open("ab", buffering=0) as file:
            file.write((json.dumps(line) + "\n").encode())

    def read(self, tables: Iterable[str]) -> dict[tuple[Any, ...], dict[str, Any]]:
        """Results of tables by their key; the last of several counts, and a line that was never finished does not."""
        found = {}
        for table in tables:
            path = self.path_of(table)
            for text in path.read_text().splitlines() if path.exists() else ():
                line = parse(text)
                if line is not None:
                    found[key_of(line)] = line
        return found

    def path_of(self, table: str) -> Path:
        """File of a table."""
        return self.folder / f"league-{table}.jsonl"


def key_of(line: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(line[part] for part in KEY)


def parse(text: str) -> dict[str, Any] | None:
    """Line of a file, None if a run was killed while it wrote."""
    try:
        line: dict[str, Any] = json.loads(text)
    except json.JSONDecodeError:
        return None
    return line


def rounded(value: Any, digits: int = 6) -> Any:
    """Numbers in lists and dictionaries with so many significant digits, to keep files small; NaN becomes None."""
    if isinstance(value, dict):
        return {name: rounded(part, digits) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(part, digits) for part in value]
    if isinstance(value, float):
        return None if value != value else float(f"{value:.{digits}g}")
    return value
