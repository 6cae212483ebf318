"""Tables inside a Markdown file, each between ``<!-- its name -->`` and ``<!-- end -->``."""

from __future__ import annotations

from pathlib import Path

from condshap.storage.writing import write_whole
from condshap.studies.pages.markdown import wrapped

END = "<!-- end -->"


def write_text(path: Path, text: str) -> None:
    """Write a file of results, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text, "results")


def write_section(path: Path, name: str, text: str) -> None:
    """Replace what stands between the marks of a section; a page that does not exist yet is begun."""
    page = path.read_text() if path.exists() else f"# {path.stem}\n\n<!-- {name} -->\n{END}\n"
    write_text(path, replace_section(page, name, wrapped(text)))


def replace_section(page: str, name: str, text: str) -> str:
    """Page with another text between the marks of one of its sections, which keep a line each."""
    mark = f"<!-- {name} -->"
    before, found, after = page.partition(mark)
    old, closed, rest = after.partition(END)
    if not found or not closed or "<!-- " in old:
        raise ValueError(f"the page must have {mark}, then {END}, and no other mark between them.")
    return f"{before}{mark}\n\n{text.strip()}\n\n{END}{rest}"
