"""Tables inside a Markdown file, each between ``<!-- its name -->`` and ``<!-- end -->``."""

from __future__ import annotations

from pathlib import Path

from condshap.storage.writing import write_whole

END = "<!-- end -->"


def write_section(path: Path, name: str, text: str) -> None:
    """Replace what stands between the marks of a section."""
    write_whole(path, replace_section(path.read_text(), name, text), "results")


def replace_section(page: str, name: str, text: str) -> str:
    """Page with another text between the marks of one of its sections, which keep a line each."""
    mark = f"<!-- {name} -->"
    before, found, after = page.partition(mark)
    old, closed, rest = after.partition(END)
    if not found or not closed or "<!-- " in old:
        raise ValueError(f"the page must have {mark} with {END} after it and no other mark between, which it has not.")
    return f"{before}{mark}\n\n{text.strip()}\n\n{END}{rest}"
