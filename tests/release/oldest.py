"""Lower bounds in pyproject.toml -> constraints for pip: the oldest versions that condshap claims to work with.

``python tests/release/oldest.py 2.13.0 > constraints.txt`` needs nothing but Python; ``make test-oldest`` installs these
versions. The argument stands in for the bound of torch: of old versions, PyPI has no build for Linux without gigabytes of
CUDA, so make takes the version of constraints.txt. Where a small build of the oldest torch can be had, TORCH=2.8.0 tries it.
"""

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
TOOLS = {"league", "docs", "dev"}  # for developers, who use constraints.txt
REQUIREMENT = re.compile(r"([\w.-]+)>=([\w.]+)")


def oldest(project):
    """Map each package that users get, by an extra or without, or bring along as Polars, to its lower bound."""
    extras = project["optional-dependencies"]
    brought = [line for line in extras["dev"] if line.startswith("polars")]
    lines = [
        *project["dependencies"],
        *(line for name in extras if name not in TOOLS for line in extras[name]),
        *brought,
    ]
    return dict(REQUIREMENT.fullmatch(line).groups() for line in lines)


def main():
    """Print one constraint a line, torch as the command line says."""
    project = tomllib.loads(PROJECT.read_text())["project"]
    for name, bound in {**oldest(project), "torch": sys.argv[1]}.items():
        print(f"{name}=={bound}")


if __name__ == "__main__":
    main()
