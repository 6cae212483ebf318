"""Every public name is in the API reference: names of the packages, approaches, and methods of public classes."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from pathlib import Path
from types import ModuleType

import pytest

import condshap as cs

DOCS = Path(__file__).parents[2] / "docs"
DIRECTIVE = re.compile(r"^\.\. auto(?:function|class|data|module):: (\S+)\n((?:   :.*\n)*)", flags=re.MULTILINE)
WHOLE = ("exceptions", "datasets", "evaluation")  # modules without __all__ whose names are all public
INHERITED = {"set_fit_request"}  # made by scikit-learn


def resolve(path: str) -> object:
    """Import the longest prefix that is a module, and get the rest from there."""
    parts = path.split(".")
    for n in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:n]))
        except ModuleNotFoundError:
            continue
        for part in parts[n:]:
            found = getattr(found, part)
        return found
    raise AssertionError(f"nothing is called {path}")


def documented() -> dict[str, set[str]]:
    """Paths of all that is in the reference, and the members that are listed there."""
    text = "".join((DOCS / page).read_text() for page in ("api.md", "designs.md", "studies.md"))
    found: dict[str, set[str]] = {}
    for path, options in DIRECTIVE.findall(text):
        members = re.search(r":members: (.*)", options)
        listed = {name.strip() for name in members[1].split(",")} if members else set()
        found[path] = listed
        found |= {f"{path}.{name}": set() for name in listed}
    return found


DOCUMENTED = documented()
OBJECTS = [resolve(path) for path in DOCUMENTED]


def is_documented(thing: object) -> bool:
    return any(thing is one for one in OBJECTS)


def packages() -> list[ModuleType]:
    """Packages below condshap, and condshap itself, that say what is public."""
    inside = [importlib.import_module(f"condshap.{m.name}") for m in pkgutil.iter_modules(cs.__path__) if m.ispkg]
    inside.append(importlib.import_module("condshap.studies.designs"))
    return [cs] + [module for module in inside if hasattr(module, "__all__")]


def public_names() -> list[str]:
    names = [f"{module.__name__}.{name}" for module in packages() for name in module.__all__]
    for module in WHOLE:
        home = importlib.import_module(f"condshap.{module}")
        own = [name for name, thing in vars(home).items() if getattr(thing, "__module__", None) == home.__name__]
        names += [f"{home.__name__}.{name}" for name in own if not name.startswith("_") and name != "listing"]
    return [*names, "condshap.testing.check_approach"]


@pytest.mark.parametrize("path", public_names())
def test_public_name_is_in_the_reference(path):
    assert is_documented(resolve(path)), f"{path} is in none of the reference pages"


@pytest.mark.parametrize("approach", cs.available_approaches())
def test_approach_is_in_the_reference_and_has_a_section(approach):
    home = importlib.import_module(f"condshap.approaches.{approach}")
    where = f"condshap.approaches.{approach}.{home.APPROACH.__name__}"
    assert is_documented(home.APPROACH), f"add '.. autoclass:: {where}' to docs/api.md"
    page = (DOCS / "approaches.md").read_text()
    assert f"\n## {approach}\n" in page, f"add a section '## {approach}' to docs/approaches.md"


@pytest.mark.parametrize("name", [name for name in cs.__all__ if inspect.isclass(getattr(cs, name))])
def test_public_methods_are_in_the_reference(name):
    cls = getattr(cs, name)
    own = {m for m, thing in vars(cls).items() if inspect.isroutine(thing) or isinstance(thing, property | classmethod)}
    own = {m for m in own if not m.startswith("_") and m not in INHERITED}
    assert own <= DOCUMENTED.get(f"condshap.{name}", set())


def test_the_reference_has_something_to_say_about_everything():
    for path, thing in zip(DOCUMENTED, OBJECTS, strict=True):
        if inspect.isroutine(thing) or inspect.isclass(thing) or inspect.ismodule(thing):
            assert inspect.getdoc(thing), path
