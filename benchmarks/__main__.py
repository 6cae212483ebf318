"""Name -> that benchmark: ``python -m benchmarks`` lists them, ``python -m benchmarks NAME`` runs one."""

from __future__ import annotations

import ast
import runpy
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
WORKERS = ("__main__", "peers_worker", "vaeac_speed")  # run by others, in processes of their own


def find_benchmarks() -> dict[str, str]:
    """Benchmarks by name with the first line of what they say about themselves: every file here that can be run."""
    texts = {path.stem: path.read_text() for path in sorted(FOLDER.glob("*.py")) if path.stem not in WORKERS}
    runnable = {name: text for name, text in texts.items() if '__name__ == "__main__"' in text}
    return {name: (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0] for name, text in runnable.items()}


def main(arguments: list[str]) -> int:
    """List the benchmarks, or run the one that is named first with the other arguments."""
    found = find_benchmarks()
    if not arguments or arguments[0] in ("-h", "--help"):
        print("python -m benchmarks NAME [options], where NAME is one of")
        width = max(map(len, found))
        print("\n".join(f"  {name:{width}}  {about}" for name, about in found.items()))
        return 0
    name, *rest = arguments
    if name not in found:
        print(f"A benchmark must be one of {', '.join(found)}, got {name!r}.", file=sys.stderr)
        return 2
    sys.argv = [f"benchmarks.{name}", *rest]
    runpy.run_module(f"benchmarks.{name}", run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
