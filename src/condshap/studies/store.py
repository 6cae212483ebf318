"""Results of a study as lines of JSON: one for each finished method of a repetition, written at once.

A run that is killed loses nothing that was finished. What it was writing at that moment is the torn end of the file,
which readers skip and the next run cuts off.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from condshap.exceptions import StorageError

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Key:
    """What tells one result from all others."""

    study: str
    cell: str
    method: str
    repetition: int
    seed: int
    version: str


@dataclass(frozen=True, slots=True)
class Result:
    """What a method achieved in one repetition of a cell.

    Attributes
    ----------
    key : which one it is
    ec1, ec2, ec3 : criteria; EC2 and EC3 are freed of sampling variance. Of the truth itself EC1 is its sampling error.
        NaN, null in the file, for EC1 and EC2 where nobody knows the truth
    cpu_fit, cpu_explain, wall : seconds
    n_evaluations : model rows
    device : where networks lived
    forest : what evaluated forests, see `condshap.studies.runner.run`
    machine, date : where and when it was found, as text; empty if that was not noted
    """

    key: Key
    ec1: float
    ec2: float
    ec3: float
    cpu_fit: float
    cpu_explain: float
    wall: float
    n_evaluations: int
    device: str = "cpu"
    forest: str = "cpu"
    machine: str = ""
    date: str = ""


@dataclass(frozen=True, slots=True)
class Store:
    """A file of results; several processes may append to it."""

    path: Path

    def append(self, result: Result) -> None:
        """Write a result in one piece."""
        line = {"format": FORMAT, **asdict(result.key)}
        line |= {field.name: _as_json(getattr(result, field.name)) for field in fields(result) if field.name != "key"}
        data = (json.dumps(line, allow_nan=False) + "\n").encode()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open(
                "ab", buffering=0
            ) as file:  # one call of the system: lines of several processes do not mix
                written = file.write(data if self._is_whole() else b"\n" + data)
            if written is None or written < len(data):
                raise OSError(f"only {written} of {len(data)} bytes could be written")
        except OSError as error:
            raise StorageError(f"results must be written to {self.path}, but that failed: {error}.") from error

    def _is_whole(self) -> bool:
        """Whether the last line, if there is one, was written to its end."""
        with self.path.open("rb") as file:
            if file.seek(0, os.SEEK_END) == 0:
                return True
            file.seek(-1, os.SEEK_END)
            return file.read() == b"\n"

    def repair(self) -> None:
        """Cut off what a killed run had begun to write; for use while nobody else is writing."""
        if not self.path.exists():
            return
        data = self.path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if _is_torn(data[whole:].decode(errors="replace")) and whole < len(data):
            os.truncate(self.path, whole)

    def other_versions(self, study: str, version: str) -> list[str]:
        """Versions of condshap, other than `version`, that wrote results of a study into this file."""
        return sorted({key.version for key in self.read() if key.study == study} - {version})

    def read(self) -> dict[Key, Result]:
        """All results; of several with the same key the last one counts."""
        if not self.path.exists():
            return {}
        lines = self.path.read_text().split("\n")
        found = [self._parse(i, line) for i, line in enumerate(lines, start=1) if not _is_torn(line)]
        return {result.key: result for result in found}

    def _parse(self, number: int, line: str) -> Result:
        try:
            parts: dict[str, Any] = json.loads(line)
            if parts.pop("format") != FORMAT:
                raise StorageError(f"results in {self.path} must have format {FORMAT}, line {number} has another one.")
            key = Key(**{field.name: parts.pop(field.name) for field in fields(Key)})
            values: dict[str, Any] = {name: math.nan if part is None else part for name, part in parts.items()}
            return Result(key, **values)
        except (json.JSONDecodeError, AttributeError, KeyError, TypeError) as error:
            raise StorageError(
                f"lines of {self.path} must be results of a study, line {number} is not: {error!r}. Remove that line, or "
                "choose another file."
            ) from error


def _as_json(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def _is_torn(line: str) -> bool:
    """Whether a line is empty or only the beginning of a result, as a killed run or a full disk leaves it."""
    start = '{"format"'
    return start.startswith(line[: len(start)]) and not line.endswith("}")
