"""The manifest of a folder of parts: what was asked, of which rows, and which parts are finished. It is the only truth.

A file of JSON lines, of which each ends with its own checksum; a line that a killed run could not finish counts for
nothing, and neither does a part without a line. Lines are of these kinds: ``run`` (first), ``plan`` (parts of the source;
a later one takes the place of an earlier one), ``done`` (a part) and ``failed`` (why a run ended).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from condshap.bulk.parts import Part, Plan
from condshap.exceptions import OptionError, StorageError
from condshap.storage.file_kinds import clear_damage, new_header, read_header
from condshap.storage.sealing import checksum
from condshap.storage.writing import append_line

NAME, KIND = "manifest.jsonl", "explained dataset"
PREFIX, PARTIAL = "part-", ".part"
_WHAT = "the manifest"
_DIGESTS = {
    "made_by": "training rows, approach, options and model, of which at least one differs",
    "amortised": "the network that was taught",
}


@dataclass(frozen=True, slots=True)
class Done:
    """A finished part.

    Attributes
    ----------
    part : its rows
    file : name of the file in the folder
    checksum : of the file's bytes
    seconds : that explaining and writing took
    keys : smallest and largest key, None without a key
    warnings : what was said about it
    """

    part: Part
    file: str
    checksum: str
    seconds: float
    keys: tuple[Any, Any] | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a manifest says.

    Attributes
    ----------
    folder : with the manifest and the parts
    run : explainer, options and versions of the run
    plan : all parts, None before that is known
    done : finished parts, by piece and start
    failed : piece that the last run failed at, None if it did not
    """

    folder: Path
    run: dict[str, Any]
    plan: Plan | None
    done: dict[tuple[str, int], Done]
    failed: str | None

    @property
    def finished(self) -> list[Done]:
        """Finished parts of the plan, in its order."""
        parts = () if self.plan is None else self.plan.parts
        return [self.done[one.piece, one.start] for one in parts if (one.piece, one.start) in self.done]

    @property
    def missing(self) -> list[Part]:
        """Parts of the plan that are not finished."""
        parts = () if self.plan is None else self.plan.parts
        return [one for one in parts if (one.piece, one.start) not in self.done]


def read_manifest(folder: Path) -> Manifest | None:
    """Read the manifest of a folder; None if there is none, or its first line was never finished."""
    path = folder / NAME
    try:
        texts = path.read_bytes().decode(errors="replace").split("\n")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(f"{_WHAT} must be readable, got '{path}': {error.strerror}. Check the path.") from None
    lines = [line for line in map(_parse, texts) if line is not None]
    if not lines or "run" not in lines[0]:
        if any(texts[1:]):
            raise StorageError(
                f"'{path}' must begin with the options of its run, but that line is damaged. Choose another folder."
            )
        return None
    run = read_header(json.dumps(lines[0]["run"]), KIND, f"'{path}'")
    with clear_damage(f"'{path}' must be a manifest", "Choose another folder."):
        return _replay(folder, run, lines[1:])


def _replay(folder: Path, run: dict[str, Any], lines: Sequence[dict[str, Any]]) -> Manifest:
    plan, done, failed = None, {}, None
    for line in lines:
        if "plan" in line:
            plan, failed = Plan(tuple(Part(*one) for one in line["plan"]), line["broken_at"]), None
        elif "done" in line:
            one = _done_from_json(line["done"])
            done[one.part.piece, one.part.start] = one
        elif "failed" in line:
            failed = str(line["failed"])
    return Manifest(folder, run, plan, done, failed)


def _done_from_json(facts: dict[str, Any]) -> Done:
    keys = facts["keys"]
    lists = {"keys": None if keys is None else tuple(keys), "warnings": tuple(facts["warnings"])}
    return Done(**{**facts, **lists, "part": Part(**facts["part"])})


def begin(folder: Path, facts: dict[str, Any]) -> None:
    """Write the first line."""
    _append(folder, run=json.loads(new_header(KIND, **facts)))


def note_plan(folder: Path, plan: Plan) -> None:
    """Write down which parts there are."""
    _append(folder, plan=[list(asdict(part).values()) for part in plan.parts], broken_at=plan.broken_at)


def note_done(folder: Path, done: Done) -> None:
    """Write down that a part is finished: from now on it counts."""
    _append(folder, done=asdict(done))


def note_failed(folder: Path, piece: str) -> None:
    """Write down at which piece a run failed: that one may be repaired; where that is impossible, nothing is lost."""
    with suppress(StorageError):
        _append(folder, failed=piece)


def _append(folder: Path, **line: Any) -> None:
    text = json.dumps(line, default=str)
    append_line(folder / NAME, f"{checksum(text.encode())} {text}", _WHAT)


def _parse(line: str) -> dict[str, Any] | None:
    """What a line says, None for one that was never finished or is damaged."""
    seal, _, text = line.partition(" ")
    if checksum(text.encode()) != seal:
        return None
    return dict(json.loads(text))


def check_run(known: dict[str, Any], now: dict[str, Any], folder: Path) -> None:
    """Refuse to go on with what was begun for another explainer or with other options, and say what differs."""
    was, wanted = ({**one["explainer"], **one["options"]} for one in (known, json.loads(json.dumps(now))))
    changed = [name for name in {**was, **wanted} if was.get(name) != wanted.get(name)]
    if changed:
        differs = "; ".join(_change(name, was.get(name), wanted.get(name)) for name in changed)
        raise OptionError(_refusal(folder, "explainer and options", differs))


def _change(name: str, was: Any, now: Any) -> str:
    """What differs; a digest tells people nothing, so what it is of stands beside it."""
    if name in _DIGESTS:
        short = [None if one is None else f"{str(one)[:8]}..." for one in (was, now)]
        return f"{name} was {short[0]!r} and is {short[1]!r}, which tells of {_DIGESTS[name]}"
    return f"{name} was {was!r} and is {now!r}"


def check_source(known: Manifest, plan: Plan) -> bool:
    """Whether the plan has changed because the piece was repaired at which the last run failed; else a change is refused."""
    assert known.plan is not None
    was, now = ({(one.piece, one.start): one for one in some.parts} for some in (known.plan, plan))
    changed = [place for place in {**was, **now} if _content(was.get(place)) != _content(now.get(place))]
    if not changed and known.plan.broken_at == plan.broken_at:
        return False
    old = {piece for piece, _ in was}
    may_change = {known.failed} | ({piece for piece, _ in now if piece not in old} if known.plan.broken_at else set())
    if any(place in known.done or place[0] not in may_change for place in changed):
        raise OptionError(_refusal(known.folder, "source", _difference(changed[0], was, now, plan)))
    return True


def _content(part: Part | None) -> tuple[int, str] | None:
    return None if part is None else (part.n_rows, part.digest)


def _difference(place: tuple[str, int], was: dict[Any, Part], now: dict[Any, Part], plan: Plan) -> str:
    if plan.broken is not None and place not in now:
        return f"now {plan.broken}"
    if place not in now:
        return f"{was[place].text} is gone"
    return f"{now[place].text} {'has changed' if place in was else 'is new'}"


def _refusal(folder: Path, what: str, differs: str) -> str:
    return (
        f"'{folder}' must be continued with the {what} that it was begun with, but {differs}. Repeat the same call, or "
        "choose another folder."
    )
