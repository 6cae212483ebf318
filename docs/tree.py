"""Docstrings of the modules -> the tree in dataflow.md: python docs/tree.py [--write]

Without --write, exit 1 if the page shows another tree than the source has.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "dataflow.md"
SOURCE = ROOT / "src" / "condshap"
FIRST, LAST = "<!-- tree -->", "<!-- end of tree -->"
PART = re.compile(f"(?<={FIRST}\n).*?(?={LAST})", re.DOTALL)
COLUMN = 38
# in the order of the flow; whatever is not named here follows by name
ORDER = (
    "explainer", "comparison", "learning", "game", "explaining", "assembly", "explanation", "tables", "schema",
    "coalitions", "approaches", "models", "values", "precision", "draw_check", "solvers", "evaluation", "ranking",
    "plots", "reporting", "bulk", "storage", "numerics", "runtime", "vaeac", "ctree", "trees",
)  # fmt: skip


def summary(module: Path) -> str:
    """What a module says about itself in the first sentence of its docstring, on one line."""
    docstring = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or ""
    return " ".join(docstring.split("\n\n")[0].split()).removesuffix(".")


def modules_in(folder: Path) -> list[Path]:
    """Packages and modules of a folder in the order of the page."""
    found = [path for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()]
    rank = {name: i for i, name in enumerate(ORDER)} if folder == SOURCE else {}
    return sorted(
        (path for path in found if path.name != "__init__.py"),
        key=lambda path: (rank.get(path.stem, len(rank)), path.is_dir(), path.stem),
    )


def lines_of(folder: Path, front: str = "") -> Iterator[str]:
    """One line for every module below a folder."""
    inside = modules_in(folder)
    for path in inside:
        is_last = path == inside[-1]
        name = f"{front}{'└── ' if is_last else '├── '}{path.name}{'/' if path.is_dir() else ''}"
        yield f"{name:<{COLUMN}} {summary(path / '__init__.py' if path.is_dir() else path)}"
        if path.is_dir():
            yield from lines_of(path, front + ("    " if is_last else "│   "))


def with_tree(page: str) -> str:
    """Text of the page with the tree that the source has now."""
    if not PART.search(page):
        raise SystemExit(f"the page must have a line {FIRST} and, below it, a line {LAST}.")
    first = f"{'src/condshap/':<{COLUMN}} {summary(SOURCE / '__init__.py')}"
    tree = "\n".join(["```text", first, *lines_of(SOURCE), "```", ""])
    return PART.sub(lambda _: tree, page)


def main(arguments: list[str] | None = None, page: Path = PAGE) -> int:
    """Compare, or write; returns the exit status."""
    parser = argparse.ArgumentParser(description="The tree in dataflow.md, from the docstrings of the modules.")
    parser.add_argument("--write", action="store_true", help="put the tree into the page")
    writes = parser.parse_args(arguments).write
    old = page.read_text(encoding="utf-8")
    new = with_tree(old)
    if writes:
        page.write_text(new, encoding="utf-8")
    elif new != old:
        print(f"{page.name} shows another tree than the source has. Run: python docs/tree.py --write")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
