"""Results of a study as lines of JSON: one for each finished method of a repetition, written at once.

A run that is killed loses nothing that was finished. What it was writing at that moment is the torn end of the file,
which readers skip and the next run cuts off. A line ends with a checksum of what stands before it, so that damage is an
error that says where.
"""

from __future__ import annotations

import json
import math
import os
import re
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from condshap.storage.file_kinds import check_version, clear_damage
from condshap.storage.sealing import checksum
from condshap.storage.writing import append_line

FORMAT = 2
_RENAMED = ("draws='nets'", "draws='qmc'")  # in names of methods: what stores of 0.1.0 have, and the word for it now
_UNSEALED = 1  # lines from before there were checksums
_SEALED = re.compile(r'(.*), "sha256": "([0-9a-f]{16})"', re.DOTALL)


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
    forest : what evaluated forests, see `condshap.studies.running.runner.run`
    machine, date : where and when it was found, as text; empty if that was not noted
    peak, device_peak : most memory of the process, and most that tensors had on an accelerator, in GiB; NaN if that was not
        measured
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
    peak: float = math.nan
    device_peak: float = math.nan


@dataclass(frozen=True, slots=True)
class Store:
    """A file of results; several processes may append to it."""

    path: Path

    def append(self, result: Result) -> None:
        """Write a result in one piece."""
        line = {"format": FORMAT, **asdict(result.key)}
        line |= {field.name: _as_json(getattr(result, field.name)) for field in fields(result) if field.name != "key"}
        append_line(self.path, _seal(line), "results")

    def repair(self) -> None:
        """Cut off what a killed run had begun to write; for use while nobody else is writing."""
        if not self.path.exists():
            return
        data = self.path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if _is_torn(data[whole:].decode(errors="replace")) and whole < len(data):
            os.truncate(self.path, whole)

    def read(self) -> dict[Key, Result]:
        """All results; of several with the same key the last one counts."""
        if not self.path.exists():
            return {}
        lines = self.path.read_bytes().split(b"\n")
        found = [self._parse(i, line.decode(errors="replace")) for i, line in enumerate(lines, start=1)]
        return {result.key: result for result in found if result is not None}

    def _parse(self, number: int, line: str) -> Result | None:
        """Result in a line, None for one that was never finished."""
        if _is_torn(line):
            return None
        what = f"line {number} of '{self.path}'"
        with clear_damage(f"{what} must be a result of a study", "Remove that line, or choose another file."):
            parts: dict[str, Any] = json.loads(line)
            form = parts.pop("format")
            if form != _UNSEALED:
                check_version(form, FORMAT, what, parts.get("version"))
            if form == FORMAT and not _is_whole_line(line):
                raise ValueError(f"its checksum {parts.get('sha256')!r} does not match the line")
            parts.pop("sha256", None)
            parts["method"] = parts["method"].replace(*_RENAMED)
            key = Key(**{field.name: parts.pop(field.name) for field in fields(Key)})
            values: dict[str, Any] = {name: math.nan if part is None else part for name, part in parts.items()}
            return Result(key, **values)


def _as_json(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def _seal(line: dict[str, Any]) -> str:
    """JSON of a line, with a checksum of all that is before it at its end."""
    text = json.dumps(line, allow_nan=False).removesuffix("}")
    return f'{text}, "sha256": "{checksum(text.encode())}"}}'


def _is_whole_line(line: str) -> bool:
    found = _SEALED.fullmatch(line.removesuffix("}"))
    return found is not None and checksum(found[1].encode()) == found[2]


def _is_torn(line: str) -> bool:
    """Whether a line is empty or only the beginning of a result, as a killed run or a full disk leaves it.

    One that goes on after its checksum, but not with its end, was finished and then damaged.
    """
    start = '{"format"'
    if not start.startswith(line[: len(start)]) or line.endswith("}"):
        return False
    found = _SEALED.match(line)
    return found is None or found.end() == len(line)
