"""Every test file can be run alone: what it imports is found without any other test file.

The quick test looks for the packages only. The slow one collects each file in a process of its own, a copy of one that has
loaded the large libraries but no test and nothing of condshap.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "tests").rglob("test_*.py"))
OF_THE_FOLDER = {
    "fuzz": {"fuzz"},
    "frozen": {"cases"},
    "browser": {"browser"},
}  # what a folder makes known to its own tests

FIND = """
import sys
from importlib.util import find_spec

print(*(name for name in sys.argv[1:] if find_spec(name) is None))
"""
COLLECT = """
import contextlib, io, os, sys
import matplotlib, numba, numpy, pandas, polars, pyarrow, pytest, scipy.stats, sklearn.ensemble, torch

def is_collected(path):
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        status = pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", path])
    if status not in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}:  # none: all are slow, or for a device
        print(said.getvalue(), flush=True)
        return False
    return True

failed = []
for path in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        os._exit(0 if is_collected(path) else 1)
    if os.waitpid(child, 0)[1]:
        failed.append(path)
if failed:
    sys.exit("these files cannot be collected alone: " + ", ".join(failed))
"""


def packages(path: Path) -> set[str]:
    """Packages and modules on their own that a test file imports, less those of its folder."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import, but tests are no package"
            names.add(str(node.module))
    return {name.partition(".")[0] for name in names} - OF_THE_FOLDER.get(path.parent.name, set())


def fresh(script: str, words: list[str]) -> subprocess.CompletedProcess[str]:
    """A process that knows the root of the project, as pytest does, and what is installed."""
    return subprocess.run([sys.executable, "-c", script, *words], cwd=ROOT, capture_output=True, text=True)


def test_every_test_file_finds_its_imports_alone():
    by_file = {path.relative_to(ROOT).as_posix(): packages(path) for path in FILES}
    done = fresh(FIND, sorted(set().union(*by_file.values())))
    assert done.returncode == 0, done.stderr
    missing = set(done.stdout.split())
    assert {path: names & missing for path, names in by_file.items() if names & missing} == {}


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be copied here")
def test_every_test_file_can_be_collected_alone():
    done = fresh(COLLECT, [path.relative_to(ROOT).as_posix() for path in FILES])
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
