"""Markdown prose is wrapped at 100 columns, so that pages and their diffs can be read in an editor, written or generated."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WIDTH = 100
MARKS = re.compile(r"<!-- [^>]*?-->")
BUILT = {"_build", "auto_examples"}
PAGES = sorted(
    page
    for page in chain(ROOT.glob("*.md"), *((ROOT / folder).rglob("*.md") for folder in ("docs", "benchmarks")))
    if not BUILT & set(page.relative_to(ROOT).parts)
)


def prose(text: str) -> list[tuple[int, str]]:
    """Numbered lines outside code, display formulas, tables and pictures."""
    found, block = [], ""
    text = MARKS.sub("", text)  # of figures that a benchmark fills in
    for number, line in enumerate(text.splitlines(), start=1):
        fence = next((mark for mark in ("```", "$$") if line.lstrip().startswith(mark)), "")
        if block:
            block = "" if fence == block else block
        elif fence:
            block = fence
        elif not line.lstrip().startswith(("|", "![")):
            found.append((number, line))
    return found


def too_long(text: str) -> list[str]:
    """Lines of prose beyond the width; a single word such as an address may stand alone on its line."""
    return [
        f"line {number} has {len(line)} columns: {line[:60]}..."
        for number, line in prose(text)
        if len(line) > WIDTH and len(line.split()) > 1
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_prose_of_the_page_is_wrapped(page):
    assert too_long(page.read_text()) == []


def test_only_prose_counts():
    words = "word " * 30
    kept = [f"```python\n{words}\n```", f"$$\n{words}\n$$", f"| {words} |", f"![{words}](picture.png)", "x" * 200]
    assert too_long("\n\n".join(kept)) == []
    assert too_long("\n".join(chain(kept, [words]))) == [f"line {len(kept) + 5} has 150 columns: {words[:60]}..."]


def test_pages_are_found():
    names = {page.relative_to(ROOT).as_posix() for page in PAGES}
    assert {"README.md", "docs/guide/mixed_data.md", "docs/results/abalone.md", "benchmarks/results/league.md"} <= names
