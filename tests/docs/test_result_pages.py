"""Pages of results say what the stored results say: each is what its command prints."""

import importlib.util
import re
from pathlib import Path

import pytest

from condshap.studies.commands import main
from condshap.studies.running.catalogue import STUDIES
from condshap.studies.running.defaults import is_present
from condshap.studies.running.store import Store

ROOT = Path(__file__).parents[2]
DATA = ROOT / "docs" / "results" / "data"


def result_pages():
    spec = importlib.util.spec_from_file_location("result_pages", ROOT / "docs" / "result_pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


COMMANDS = result_pages().page_commands()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_page_is_what_its_command_writes(name, monkeypatch):
    monkeypatch.chdir(ROOT)
    pages = []

    def keep(text, path):
        pages.append((text, path))
        return 0

    monkeypatch.setattr("condshap.studies.commands._deliver", keep)
    assert main(COMMANDS[name]) == 0
    ((text, path),) = pages
    assert text == (ROOT / path).read_text(), "make it again: python docs/result_pages.py"


def test_every_page_has_a_command():
    assert {path.stem for path in (ROOT / "docs" / "results").glob("*.md")} == set(COMMANDS)


@pytest.mark.parametrize("path", sorted(DATA.glob("*.jsonl")), ids=lambda path: path.stem)
def test_stores_hold_results_by_the_present_defaults_only(path):
    assert path.stem in STUDIES
    assert [key for key in Store(path).read() if not is_present(key)] == []


@pytest.mark.parametrize("path", sorted((DATA / "older").glob("*.jsonl")), ids=lambda path: path.stem)
def test_the_archive_holds_results_by_older_defaults_only(path):
    assert [key for key in Store(path).read() if is_present(key)] == []


def test_pictures_of_notes_exist():
    for notes in DATA.glob("*.notes.md"):
        for picture in re.findall(r"!\[[^]]*\]\(([^)]+)\)", notes.read_text()):
            assert (DATA.parent / picture).is_file(), f"{picture} of {notes.name}"
