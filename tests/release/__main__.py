"""Checkout -> wheel and sdist in dist/, tried as a stranger would: ``python tests/release [--python PYTHON] [TESTS ...]``.

Both are checked by twine and installed in environments of their own, outside the checkout. In each of them the README's
example runs; with the wheel, the quick tests of the unpacked sdist do too (or the TESTS given). `make dist-test` runs this
with the environment of the developers, which has build and twine.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
DIST = ROOT / "dist"
EXAMPLE = re.compile(r"```python\n(.*?)```", re.DOTALL)
NOT_FOR_TESTS = ("ruff", "mypy", "pandas-stubs", "build", "twine", "codespell")


def run(*command, cwd=None):
    """Run a command outside the checkout's import path; stop if it fails."""
    print("$", *command, flush=True)
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([str(part) for part in command], cwd=cwd, env=clean, check=True)


def needed_for_tests():
    """Extras of condshap that its tests need, as pip wants them, and packages besides: what developers have but linters."""
    own, *others = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["dev"]
    packages = [one for one in others if not one.startswith(NOT_FOR_TESTS)]
    return own.removeprefix("condshap"), packages


def build():
    """Make sdist and wheel, the wheel from the sdist, and let twine look at them."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", DIST, ROOT)
    files = sorted(DIST.iterdir())
    run(sys.executable, "-m", "twine", "check", "--strict", *files)
    return files


def install(python, folder, file, extras="", tools=()):
    """Install a file into a fresh environment; its Python."""
    run(python, "-m", "venv", folder)
    own = folder / "bin" / "python"
    run(own, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", f"{file}{extras}", *tools)
    run(own, "-m", "pip", "check")
    size = sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    print(f"{file.name}{extras} with all that it needs takes {size / 1e9:.1f} GB", flush=True)
    return own


def explain_readme(python, folder):
    """Run the example of the README, both blocks, in an empty folder."""
    folder.mkdir()
    blocks = EXAMPLE.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    (folder / "example.py").write_text("\n".join(blocks), encoding="utf-8")
    run(python, "example.py", cwd=folder)
    missing = [name for name in ("report.html", "row.png", "all.png") if not (folder / name).is_file()]
    if missing:
        sys.exit(f"The README's example must write {missing}, but did not.")


def run_tests(python, sdist, folder, tests):
    """Run the tests of the sdist against what is installed."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (unpacked,) = folder.iterdir()
    place = "import condshap, sys; sys.exit(not condshap.__file__.startswith(sys.prefix))"
    run(python, "-c", place, cwd=unpacked)
    run(python, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", *tests, cwd=unpacked)


def main():
    """Go through all of it in a temporary folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable, help="for the environments")
    parser.add_argument("tests", nargs="*", default=["tests"], help="paths inside the sdist")
    asked = parser.parse_args()
    wheel, sdist = build()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        python = install(asked.python, folder / "from_wheel", wheel, *needed_for_tests())
        explain_readme(python, folder / "example_of_wheel")
        run_tests(python, sdist, folder / "sdist", asked.tests)
        explain_readme(install(asked.python, folder / "from_sdist", sdist), folder / "example_of_sdist")


if __name__ == "__main__":
    main()
