"""Figures in prose are those of the stored results."""

import json

import pytest

from benchmarks import figures
from benchmarks.lib import figures as addresses


@pytest.fixture
def results(tmp_path, monkeypatch):
    lines = [{"method": "a", "cpu": 1.25, "about": "M = 5"}, {"method": "a b", "cpu": 2.0, "about": "M = 10"}]
    (tmp_path / "speed.json").write_text(json.dumps({"results": {"lines": lines, "cells": [{"rows": "1,234 or so"}]}}))
    given = ((100, "ctree", 0, 0.1), (100, "ctree", 1, 0.3), (1000, "ctree", 0, 7.0), (100, "vaeac", 0, 5.0))
    runs = [{"study": "ctree", "cell": f"M=5 N={n} x=9", "method": m, "r": r, "ec1": ec1} for n, m, r, ec1 in given]
    (tmp_path / "study.jsonl").write_text("\n".join(map(json.dumps, runs)))
    monkeypatch.setattr(addresses, "FOLDERS", (tmp_path,))
    monkeypatch.setattr(addresses, "ROOT", tmp_path.parent)
    addresses.load.cache_clear()
    yield
    addresses.load.cache_clear()


def test_no_page_says_anything_else_than_the_results(capsys):
    assert figures.main([]) == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    ("address", "form", "expected"),
    [
        ("speed/lines/a/cpu", ".1f", "1.2"),
        ("speed/lines/a b/cpu", ".0f", "2"),
        ("speed/lines/M = 10/cpu", ".2f", "2.00"),
        ("speed/lines/a b/cpu over speed/lines/a/cpu", ".1f", "1.6"),
        ("speed/lines/cpu", ".3f", "1.625"),
        ("study/M=5 N=100/ctree/ec1", ".1%", "20.0 %"),
        ("speed/cells/rows", ",.0f", "1,234"),
        ("study/M=5 N=100/ctree/ec1", ".1f", "0.2"),  # the mean of two runs, although "ctree" is the name of all
        ("study/N=1000/ec1", ".0f", "7"),
    ],
)
def test_an_address_leads_to_a_figure(results, address, form, expected):
    assert addresses.shown(address, form) == expected


@pytest.mark.parametrize(
    "address", ["nothing/a", "speed/lines/c/cpu", "speed/lines", "speed/lines/a/wall", "study/N=100"]
)
def test_an_address_that_leads_nowhere_is_refused(results, address):
    with pytest.raises(LookupError, match=r"nothing|one figure"):
        addresses.find(address)


def test_a_figure_that_has_drifted_is_told_and_put_right(results):
    right = "<!-- figure speed/lines/a b/cpu .0f -->2<!-- end -->"
    page = f"It took <!-- figure speed/lines/a/cpu .2f -->0.48<!-- end --> s, not {right}."
    corrected, wrong = figures.correct(page)
    assert wrong == ["speed/lines/a/cpu is 1.25, not 0.48"]
    assert corrected == page.replace("0.48", "1.25")
    assert figures.correct(corrected) == (corrected, [])


@pytest.mark.parametrize("start", ["", "a\n", "a\n  ", "- "])
def test_a_figure_must_not_begin_a_line(results, start):
    with pytest.raises(LookupError, match="must not begin a line"):
        figures.correct(f"{start}<!-- figure speed/lines/a/cpu .2f -->1.25<!-- end -->")


def test_a_table_is_put_right(monkeypatch):
    monkeypatch.setattr(figures, "TABLES", {"one": lambda: "| a |\n| --- |\n| 1 |"})
    page = "x\n\n<!-- table one -->\n\n| a |\n| --- |\n| 2 |\n\n<!-- end -->\n\ny <!-- end -->"
    corrected, wrong = figures.correct(page)
    assert corrected == page.replace("| 2 |", "| 1 |")
    assert wrong == ["the table one has changed"]
    with pytest.raises(LookupError, match="must be one of one"):
        figures.correct(page.replace("table one", "table two"))


def test_pages_are_written_only_when_asked(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(figures, "ROOT", tmp_path)
    monkeypatch.setattr(figures, "TABLES", {"one": lambda: "| a |"})
    page = tmp_path / "README.md"
    page.write_text("<!-- table one -->\n<!-- end -->\n")
    assert figures.main([]) == 1
    assert "README.md: the table one has changed" in capsys.readouterr().out
    assert "| a |" not in page.read_text()
    assert figures.main(["--write"]) == 0
    assert "| a |" in page.read_text()
    assert figures.main([]) == 0


def test_a_range_is_the_least_and_the_largest_of_its_figures(monkeypatch):
    monkeypatch.setitem(figures.RANGES, "some", lambda: [2.0, 0.5, 1.25])
    page = "It took <!-- range some .1f -->1 to 3<!-- end --> s, at most <!-- most some .2f -->2.00<!-- end -->."
    corrected, wrong = figures.correct(page)
    assert wrong == ["some is 0.5 to 2.0, not 1 to 3"]
    assert corrected == page.replace("1 to 3", "0.5 to 2.0")
    with pytest.raises(LookupError, match="a range must be one of"):
        figures.correct("It took <!-- range none .1f -->1 to 3<!-- end --> s.")


def test_errors_over_the_default_are_those_of_the_table_of_errors():
    lines = [line.split(" | ") for line in figures.errors().splitlines()[2:]]
    mixed = [float(line[4]) / float(line[5]) for line in lines if line[0].startswith("| mixed")]
    assert len(mixed) == 6
    assert figures.RANGES["ctree-over-vaeac-mixed"]() == pytest.approx(mixed, rel=2e-3)
    worst = max(float(line[2]) / float(line[5]) for line in lines if not line[0].endswith("correlation 0"))
    assert max(figures.RANGES["independence-over-vaeac"]()) == pytest.approx(worst, rel=2e-3)


def test_tables_of_the_league_count_once_for_each_model():
    assert len(figures.RANGES["league-seconds-vaeac"]()) == 2 * 23
    assert min(figures.RANGES["league-over-best-ctree"]()) >= 1
    assert len(figures.RANGES["300-rows"]()) == 4
    assert all(0 <= share <= 100 for share in figures.RANGES["coverage-refits"]())
