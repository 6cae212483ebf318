"""Name -> that benchmark: ``python -m benchmarks`` lists them, ``python -m benchmarks NAME`` runs one.

A benchmark is a file of ``speed`` or ``investigations`` that can be run, and those in `OTHERS`.
"""

from __future__ import annotations

import ast
import runpy
import sys
from pathlib import Path

HERE = Path(__file__).parent
FOLDERS = {"speed": "How fast, how much memory, beside whom", "investigations": "Questions that were asked once"}
OTHERS = {"league": "benchmarks.league.run", "figures": "benchmarks.figures"}
WORKERS = ("peers_worker", "training_worker")
"""Run by other benchmarks, in processes of their own."""


def find_benchmarks() -> dict[str, dict[str, str]]:
    """Modules of benchmarks by folder and name."""
    found = {
        folder: {path.stem: f"benchmarks.{folder}.{path.stem}" for path in sorted((HERE / folder).glob("*.py"))}
        for folder in FOLDERS
    }
    runnable = {folder: {k: m for k, m in some.items() if _can_run(m)} for folder, some in found.items()}
    return {**runnable, "": OTHERS}


def about(module: str) -> str:
    """First line of what a benchmark says about itself."""
    return (ast.get_docstring(ast.parse(_source(module))) or "").partition("\n")[0]


def _can_run(module: str) -> bool:
    return '__name__ == "__main__"' in _source(module)


def _source(module: str) -> str:
    return HERE.joinpath(*module.split(".")[1:]).with_suffix(".py").read_text()


def listing() -> str:
    """All benchmarks with one line each."""
    found = find_benchmarks()
    width = max(len(name) for some in found.values() for name in some)
    text = ["python -m benchmarks NAME [options]; --help after a name says what it takes"]
    for folder, some in found.items():
        text += ["", FOLDERS.get(folder, "Everything else")]
        text += [f"  {name:{width}}  {about(module)}" for name, module in some.items() if name not in WORKERS]
    return "\n".join(text)


def main(arguments: list[str]) -> int:
    """List the benchmarks, or run the one that is named first with the other arguments."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(listing())
        return 0
    name, *rest = arguments
    modules = {key: module for some in find_benchmarks().values() for key, module in some.items()}
    if name not in modules:
        known = ", ".join(key for key in modules if key not in WORKERS)
        print(f"A benchmark must be one of {known}, got {name!r}.", file=sys.stderr)
        return 2
    sys.argv = [f"benchmarks {name}", *rest]
    runpy.run_module(modules[name], run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
