"""The list of benchmarks, their pages, and what is stored of a run."""

import json
import re
import sys
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks.lib import report
from benchmarks.lib.sections import replace_section, write_section

ROOT = Path(__file__).parents[2]
MODULES = {name: module for some in command.find_benchmarks().values() for name, module in some.items()}
NAMES = [name for name in MODULES if name not in command.WORKERS]


def test_every_benchmark_is_listed_with_what_it_measures(capsys):
    assert command.main([]) == 0
    shown = capsys.readouterr().out
    assert {"approaches", "cases", "growth", "league", "overhead", "peers", "quick", "trees", "figures"} <= set(NAMES)
    assert all(f"  {name} " in shown and command.about(MODULES[name]) in shown for name in NAMES)
    assert not any(f"  {name} " in shown for name in command.WORKERS)


@pytest.mark.parametrize("name", command.find_benchmarks()["investigations"])
def test_an_investigation_says_on_top_what_was_asked_and_what_came_out(name):
    text = command._source(MODULES[name])
    assert command.about(MODULES[name]).endswith("?")
    assert text.split("\n\n")[1].startswith("Answer: ")


def test_a_benchmark_gets_the_arguments_after_its_name(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.delitem(sys.modules, "benchmarks.speed.growth", raising=False)  # as in a process of its own
    with pytest.raises(SystemExit) as stopped:
        command.main(["growth", "--help"])
    assert stopped.value.code == 0
    assert "python -m benchmarks growth" in capsys.readouterr().out


def test_an_unknown_benchmark_is_refused(capsys):
    assert command.main(["nothing"]) == 2
    assert "peers" in capsys.readouterr().err


def test_there_is_one_way_of_calling_them():
    other = re.compile(r"python -m benchmarks\.[a-z]")
    pages = [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("benchmarks/**/*.md"),
        *ROOT.glob("src/**/*.py"),
    ]
    pages += ROOT.glob("benchmarks/**/*.py")
    assert [str(path) for path in pages if "_build" not in path.parts and other.search(path.read_text())] == []


def test_every_page_of_results_is_of_a_benchmark_and_the_page_of_all_names_it():
    overview = (ROOT / "benchmarks" / "README.md").read_text()
    pages = {path.stem for path in report.FOLDER.glob("*.md")}
    assert pages <= set(NAMES)
    assert {name for name in pages if f"(results/{name}.md)" not in overview} == set()
    assert {name for name in NAMES if f"`{name}`" not in overview} == set()


def test_a_section_is_replaced_and_all_else_stays():
    page = "a\n<!-- one -->\nold\n<!-- end -->\nb\n<!-- two -->\nkept\n<!-- end -->\n"
    assert replace_section(page, "one", "new\n") == page.replace("\nold\n", "\n\nnew\n\n")
    assert replace_section(replace_section(page, "two", "x"), "two", "kept") == page.replace("kept", "\nkept\n")


@pytest.mark.parametrize(
    "page", ["", "<!-- one -->", "<!-- end --><!-- one -->", "<!-- one --><!-- two --><!-- end -->"]
)
def test_a_page_without_the_marks_of_a_section_is_refused(page):
    with pytest.raises(ValueError, match="<!-- one -->"):
        replace_section(page, "one", "new")


def test_a_page_that_does_not_exist_is_begun(tmp_path):
    write_section(tmp_path / "new.md", "new", "text")
    assert (tmp_path / "new.md").read_text() == "# new\n\n<!-- new -->\n\ntext\n\n<!-- end -->\n"


def test_every_page_has_the_sections_of_its_marks():
    for path in report.FOLDER.glob("*.md"):
        page = path.read_text()
        for name in re.findall(r"<!-- (?!end)(\S+) -->", page):
            assert "new" in replace_section(page, name, "new"), path


def test_tables_go_into_the_page_of_the_benchmark(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(report, "FOLDER", tmp_path)
    monkeypatch.setattr(report, "store", lambda name, results, **_: tmp_path / f"{name}.json")
    report.publish("one", [], "| a |", write=True, about="here")
    report.publish("two", [], "| b |", write=False)
    assert "here\n\n| a |" in (tmp_path / "one.md").read_text()
    assert not (tmp_path / "two.md").exists()
    assert "| b |" in capsys.readouterr().out


def test_results_are_stored_with_all_about_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["x", "--only", "a b"])
    path = report.store("name", {"a": 1}, tmp_path)
    found = json.loads(path.read_text())
    assert found["command"] == "python -m benchmarks name --only 'a b'"
    assert found["results"] == {"a": 1}
    assert {"date", "machine", "versions"} <= set(found)
    assert report.read("name", tmp_path) == found
    assert report.read("other", tmp_path) is None


def test_tables_have_a_head_and_a_line_each():
    assert report.table([{"a": "1", "b": "2"}, {"a": "3", "b": "4"}]).splitlines() == [
        "| a | b |",
        "| --- | --- |",
        "| 1 | 2 |",
        "| 3 | 4 |",
    ]


def test_lines_of_tables_are_read_back():
    lines = [{"a": "1", "b": "x y"}, {"a": "", "b": "4"}]
    text = f"Some words\n\n{report.table(lines)}\n\n| no table |\n\n{report.table(lines[:1])}"
    assert report.rows_of(text) == [*lines, lines[0]]


def test_stored_commands_name_no_folder_of_one_machine(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--before", "/somewhere/old", "--write"])
    assert report.about_this_run("quick")["command"] == "python -m benchmarks quick --before DIR --write"
