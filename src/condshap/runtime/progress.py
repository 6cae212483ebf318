"""Long work -> one line that says what is done, how far, how fast and how long still: on a terminal, notebook or log.

There is one line at a time. Work within other work takes the line over while it lasts, or goes on with it if both are called
the same; work in other threads has none. A thread of its own draws the line, so that it also moves while the work does not
report, and the work itself writes nothing.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from shutil import get_terminal_size
from typing import Any

PATIENCE = 0.5  # seconds that nobody needs a line for
EVERY = 0.2  # seconds between two looks of a line on a screen
LOG_EVERY = 30.0  # and between two lines of a log


@dataclass
class Line:
    """What is being done and how far it has come; to be told by `update` or `reach`, from any thread.

    Attributes
    ----------
    doing : in a word or two: "training"
    unit : what is counted, in the plural
    total : how many of them there are, None where nobody knows
    done : how many are done; fractions count towards the time left
    note : what else is worth saying
    leads : whether what is done within stands behind `doing`, instead of in its place
    may_end_early : whether the time left is an upper limit
    """

    doing: str
    unit: str = "rows"
    total: float | None = None
    done: float = 0.0
    note: str = ""
    leads: bool = False
    may_end_early: bool = False
    share: float | None = None
    start: float = field(default_factory=time.monotonic)

    def update(self, n: float = 1, *, note: str | None = None) -> None:
        """Tell that n more are done."""
        self.reach(self.done + n, note=note)

    def reach(
        self, done: float, *, total: float | None = None, note: str | None = None, share: float | None = None
    ) -> None:
        """Tell how many are done, and, where that differs from the share of these in `total`, the share of the work."""
        self.total = self.total if total is None else total
        self.note = self.note if note is None else note
        self.done, self.share = done, share

    @contextmanager
    def counting(self, unit: str, total: float | None, *, may_end_early: bool) -> Iterator[Line]:
        """Count something for a while, which may end before its total."""
        self.unit, self.total, self.may_end_early = unit, total, may_end_early
        yield self
        self.total = self.done

    @property
    def way(self) -> float:
        """Share of the work that is done, 0 where nobody knows."""
        share = self.done / self.total if self.share is None and self.total else self.share or 0.0
        return min(1.0, share)

    def text(self) -> str:
        """The line: what, how far, how fast, and how long still, or how long it took."""
        seconds, parts = time.monotonic() - self.start, []
        if self.total is not None or self.done:
            of = "" if self.total is None else f" of {self.total:,.0f}"
            parts.append(f"{int(self.done + 1e-6):,}{of} {self.unit}")
        if self.unit == "rows" and self.done and seconds:
            parts.append(_speed(self.done / seconds))
        if self.note:
            parts.append(self.note)
        if 0 < self.way < 1:
            limit = "at most " if self.may_end_early else ""
            parts.append(f"{limit}{duration(seconds / self.way - seconds)} left")
        else:
            parts.append(duration(seconds))
        return f"{self.doing}: {', '.join(parts)}"


def duration(seconds: float) -> str:
    """Seconds as people say them.

    >>> [duration(7.3), duration(100), duration(5400)]
    ['7 s', '1 min 40 s', '1 h 30 min']
    """
    whole = round(seconds)
    hours, minutes = whole // 3600, whole // 60 % 60
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {whole % 60} s" if minutes else f"{whole} s"


def _speed(rate: float) -> str:
    """Rows a second, or seconds a row where these are few."""
    return f"{rate:,.0f} rows a second" if rate >= 1.5 else f"{1 / rate:.1f} s a row"


@contextmanager
def progress_line(
    doing: str,
    *,
    show: bool | None,
    total: float | None = None,
    unit: str = "rows",
    leads: bool = False,
    may_end_early: bool = False,
) -> Iterator[Line]:
    """Show a line while something is done; the work tells what is yielded how far it is.

    Parameters
    ----------
    doing, total, unit, leads, may_end_early : see `Line`
    show : always, never, or None for a terminal or notebook where something takes its time
    """
    line = Line(doing, unit, total, leads=leads, may_end_early=may_end_early)
    if show is False or (show is None and not is_watched()):
        yield line
        return
    with _painter(patient=show is None) as painter:
        if painter is None:
            yield line
            return
        if painter.lines and painter.lines[-1].doing == doing:
            with painter.lines[-1].counting(unit, total, may_end_early=may_end_early) as line:
                yield line
            return
        painter.lines.append(line)
        try:
            yield line
        finally:
            painter.finish(line)


class _Painter:
    """Draws the innermost line, until it is closed."""

    def __init__(self, *, patient: bool) -> None:
        self.owner = (os.getpid(), threading.get_ident())
        self.lines: list[Line] = []
        self.patience = PATIENCE if patient else 0.0
        self.draw, self.erase, self.every = _find_screen()
        self.is_log = self.every == LOG_EVERY
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._work, name="condshap progress", daemon=True)
        self._thread.start()

    def text(self) -> str:
        """What to show now: the innermost line, behind those that lead."""
        lines = self.lines.copy()
        leading = [line.doing for line in lines[:-1] if line.leads]
        return ", ".join([*leading, lines[-1].text()]) if lines else ""

    def finish(self, line: Line) -> None:
        """Give the line back to what is done around it; a log says how it ended."""
        if self.is_log and not line.leads:
            self.draw(self.text())
        self.lines.remove(line)

    def close(self) -> None:
        """Leave nothing on the screen."""
        self._done.set()
        self._thread.join(timeout=5.0)
        self.erase()

    def _work(self) -> None:
        wait, last = self.every if self.is_log else self.patience, ""
        while not self._done.wait(wait):
            text, wait = self.text(), self.every
            if text not in ("", last):
                self.draw(text)
            last = text


_LOCK = threading.Lock()
_open: _Painter | None = None


@contextmanager
def _painter(*, patient: bool) -> Iterator[_Painter | None]:
    """Yield the painter of the work around this one, or a new one; None where another thread or process has it."""
    global _open
    here = (os.getpid(), threading.get_ident())
    with _LOCK:
        found = _open
        is_new = found is None or not found.lines or found.owner[0] != here[0]
        if is_new:
            found = _open = _Painter(patient=patient)
    assert found is not None
    if not is_new:
        yield found if found.owner == here else None
        return
    try:
        yield found
    finally:
        _open = None
        found.close()


def write_above(text: str) -> None:
    """Write a line that stays, above the one that moves."""
    found = _open
    if found is not None:
        found.erase()
    _write(sys.stderr, f"{text}\n")


def is_watched() -> bool:
    """Whether somebody sees what is written to stderr: a terminal, or a notebook, whose kernel is no terminal."""
    return _is_notebook() or bool(getattr(sys.stderr, "isatty", bool)())


def _is_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return hasattr(shell, "kernel")


def _find_screen() -> tuple[Callable[[str], None], Callable[[], None], float]:
    """How to draw a line, how to erase it, and how often: for a notebook, a terminal, or a log."""
    if _is_notebook():
        with suppress(ImportError):
            return _in_notebook()
    return _on_terminal() if is_watched() else _in_log()


def _in_notebook() -> tuple[Callable[[str], None], Callable[[], None], float]:
    """One output of a notebook, of plain text, which every front end can replace; no widgets are needed."""
    display: Any = import_module("IPython.display").display
    handles: list[Any] = []

    def draw(text: str) -> None:
        content = {"text/plain": text}
        if handles:
            handles[0].update(content, raw=True)
        else:
            handles.append(display(content, raw=True, display_id=True))

    def erase() -> None:
        if handles:
            draw("")

    return draw, erase, EVERY


def _on_terminal() -> tuple[Callable[[str], None], Callable[[], None], float]:
    """The last line of a terminal, which is overwritten and cut to its width; the cursor stays as it is."""
    stream, longest = sys.stderr, 0

    def draw(text: str) -> None:
        nonlocal longest
        text = text[: max(10, get_terminal_size().columns - 1)]
        _write(stream, f"\r{text}{' ' * (longest - len(text))}")
        longest = len(text)

    def erase() -> None:
        if longest:
            _write(stream, f"\r{' ' * longest}\r")

    return draw, erase, EVERY


def _in_log() -> tuple[Callable[[str], None], Callable[[], None], float]:
    """Lines one below the other, now and then."""
    stream = sys.stderr
    return lambda text: _write(stream, f"{text}\n"), lambda: None, LOG_EVERY


def _write(stream: object, text: str) -> None:
    with suppress(OSError, ValueError, AttributeError):  # a screen that is gone is no reason to stop
        stream.write(text)  # type: ignore[attr-defined]
        stream.flush()  # type: ignore[attr-defined]
