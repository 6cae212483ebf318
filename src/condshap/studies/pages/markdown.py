"""Heads and lines, or prose -> Markdown: tables, and paragraphs that are wrapped."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence

WIDTH = 100
_ITEM = re.compile(r"\s*(?:[-*+:]|\d+[.)]) ")
_INDENT = re.compile(r"\s*")
_AS_IT_IS = ("|", "#", "<!--", "![", ">")
_SHORT_CODE = re.compile(r"`[^`]{1,60}`")  # stays on one line
_BEGINS_A_BLOCK = re.compile(r" (?=(?:[-*+=>:]|#+|\d+[.)]|\|) )")  # where a line would begin with it


def markdown(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Table as Markdown."""
    rows = [f"| {' | '.join(parts)} |" for parts in (heads, *lines)]
    rows.insert(1, f"|{' --- |' * len(heads)}")
    return "\n".join(rows)


def wrapped(text: str, width: int = WIDTH) -> str:
    """Markdown whose paragraphs and items have no line beyond the width; tables, code and short lines stay as they are.

    >>> print(wrapped("- one two three four", width=12))
    - one two
      three four
    """
    made: list[str] = []
    block: list[str] = []  # lines of the paragraph or item so far
    is_code = False
    for line in text.splitlines():
        is_fence = line.lstrip().startswith("```")
        is_prose = bool(line.strip()) and not (is_code or is_fence or line.lstrip().startswith(_AS_IT_IS))
        is_code ^= is_fence
        if not is_prose or _ITEM.match(line):
            made, block = made + _filled(block, width), []
        if is_prose:
            block.append(line)
        else:
            made.append(line)
    return "\n".join(made + _filled(block, width)) + "\n" * text.endswith("\n")


def _filled(lines: list[str], width: int) -> list[str]:
    """Lines of one paragraph or item, filled again if one of them is too long."""
    if all(len(line) <= width for line in lines):
        return lines
    begun = _ITEM.match(lines[0]) or _INDENT.match(lines[0])
    first = begun[0] if begun else ""
    words = " ".join(" ".join([lines[0][len(first) :], *lines[1:]]).split())
    words = _SHORT_CODE.sub(lambda code: code[0].replace(" ", "\0"), words)
    filled = textwrap.wrap(
        _BEGINS_A_BLOCK.sub("\0", words),
        width,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace("\0", " ") for line in filled]
