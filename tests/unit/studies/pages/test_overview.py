"""The page of all cells says what was found, what is missing and why, by hand-made results."""

import numpy as np
import pytest

from condshap.studies.commands import main
from condshap.studies.pages.overview import OTHER_LAW, PAPER, overview_lines, overview_page
from condshap.studies.pages.reasons import Reasons
from condshap.studies.pages.summary import Results
from condshap.studies.problems.cells import BurrCell, MixedCell
from condshap.studies.running.catalogue import STUDIES
from condshap.studies.running.defaults import VERSION
from condshap.studies.running.expected import Expected
from condshap.studies.running.runner import TRUTH
from condshap.studies.running.store import Key, Result, Store

LOW = STUDIES["continuous-low"].study.cells[1]  # M = 5, N = 1000, the paper's VAEAC 0.0264
HIGH = STUDIES["mixed-high-formula"].study.cells[3]  # M = 10, rho = 0.5, the paper's 1.5721 and 1.9940 of independence
NOTHING = Reasons((), Expected({}, {}, {}))


def result(study, cell, method, ec1=0.1, ec3=1.0, repetition=0, version=VERSION, wall=3.0):
    key = Key(study, cell.key, method, repetition, 0, version)
    return Result(key, ec1, 0.1, ec3, 0.0, wall, wall, 100, machine="a machine", date="2026-01-02")


def gathered(new=(), older=()):
    return {name: Results.gather(STUDIES[name].study, new, None, older) for name in (*PAPER, *OTHER_LAW)}


def line_of(lines, cell, study=None):
    (line,) = [line for line in lines if line.cell == cell and study in (None, line.study)]
    return line


def test_every_cell_of_the_papers_tables_has_a_line():
    lines = [line for line in overview_lines(gathered()) if line.study in PAPER]
    assert len(lines) == 6 + 9 + 36 + 36 + 36 + 1
    assert all(line.paper > 0 and line.repetitions == 0 for line in lines)
    page = overview_page(lines, "command", NOTHING)
    assert page.count("| 0 | not run: not yet |") == len(lines)
    assert "Of 124 cells, 0 were run." in page


def test_a_line_has_ours_the_papers_and_the_best():
    new = [result("continuous-low", LOW, "vaeac", ec1, repetition=r) for r, ec1 in enumerate((0.02, 0.04, 9.0))]
    new += [result("continuous-low", LOW, "ctree", ec1, repetition=r) for r, ec1 in enumerate((0.01, 0.03))]
    line = line_of(overview_lines(gathered(new)), LOW)
    assert (line.repetitions, line.paper, line.best, line.versions) == (3, 0.0264, "ctree", (VERSION,))
    assert line.mean == pytest.approx(9.06 / 3)
    assert line.over_best == pytest.approx(0.06 / 0.04)  # over the repetitions that both have
    assert not line.is_close
    assert np.isnan(line.over_truth)
    page = overview_page(overview_lines(gathered(new)), "command", NOTHING)
    assert "- continuous-low, M = 5, N = 1000: 1.50 of `ctree`" in page
    assert "Not below the paper's:\n\n- continuous-low, M = 5, N = 1000: 3.0200 ± 2.9900 against 0.0264, 114.39" in page
    assert "in 0 of 1." in page


def test_older_defaults_are_marked_and_counted():
    page = overview_page(
        overview_lines(gathered(older=[result("continuous-low", LOW, "vaeac", 0.02, version="0.1.0")])), "c", NOTHING
    )
    assert "| 5 | 1000 | 1 | 0.0200† | 0.0264 | 0.76 |" in page
    assert "| {doc}`continuous-low` | 6 | 1 | 1 | 0.76 | 1 | 0 |" in page


def test_the_third_criterion_stands_beside_truth_and_independence():
    found = [(TRUTH, 1.0), ("independence", 2.0), ("vaeac", 1.02)]
    new = [result("mixed-high-formula", HIGH, name, ec3=ec3) for name, ec3 in found]
    line = line_of(overview_lines(gathered(new)), HIGH)
    assert (line.criterion, line.best) == ("ec3", "vaeac")
    assert line.over_truth == pytest.approx(1.02)
    assert line.over_independence == pytest.approx((0.51, 1.5721 / 1.9940), rel=1e-9)
    page = overview_page(overview_lines(gathered(new)), "command", NOTHING)
    assert "Its EC3 is within 3 % of the truth's in 1 of 1 cells." in page
    assert f"| 1.020 | 0.510 / 0.788 | {VERSION} |" in page


def test_cells_of_another_law_are_shown_and_not_counted():
    other = STUDIES["mixed-high"].study.cells[3]
    new = [result("mixed-high", other, "vaeac", ec3=2.5)]
    page = overview_page(overview_lines(gathered(new)), "command", NOTHING)
    assert "Of 124 cells, 0 were run." in page
    assert "### mixed-high: EC3, coalitions by the law of R's shapr" in page


def test_a_reason_was_told_or_is_the_time():
    lines = (
        {"study": "s", "M": "25", "method": "ctree", "reason": "too slow"},
        {"study": "s", "M": "", "method": "copula", "reason": "no words"},
    )
    cell = BurrCell(25, 100)
    known = Expected.of_results([result("s", cell, "gaussian", wall=90.0)], [cell, BurrCell(25, 400)])
    reasons = Reasons(lines, known)
    assert reasons.of("s", cell, ["ctree"]) == "too slow"
    assert reasons.of("s", BurrCell(50, 100), ["ctree"]) == "not yet"
    assert reasons.of("s", MixedCell("M4", 0.5, 100), ["copula"]) == "no words"
    assert reasons.of("t", cell, ["copula"]) == "not yet"
    assert reasons.of("s", cell, ["gaussian"]) == "not yet, 1.5 minutes"
    assert reasons.of("s", BurrCell(25, 400), ["gaussian"]) == "not yet, 3.0 minutes, extrapolated"
    assert reasons.of("s", cell, ["ctree", "gaussian"]) == "not yet, 1.5 minutes, extrapolated"


def test_the_command_reads_stores_older_ones_and_reasons(tmp_path, capsys):
    (tmp_path / "older").mkdir()
    Store(tmp_path / "continuous-low.jsonl").append(result("continuous-low", LOW, "vaeac", 0.02))
    Store(tmp_path / "older" / "mixed-low.jsonl").append(
        result("mixed-low", STUDIES["mixed-low"].study.cells[0], "vaeac", 0.05, version="0.1.0")
    )
    (tmp_path / "not-run.csv").write_text("study,M,method,reason\nabalone,8,vaeac,the snails are asleep\n")
    (tmp_path / "summary.notes.md").write_text("Because.")
    words = ["summary", "--store", str(tmp_path), "--older", str(tmp_path / "older")]
    assert main(words) == 0
    page = capsys.readouterr().out
    assert "Of 124 cells, 2 were run." in page
    assert "not run: the snails are asleep" in page
    assert "0.0500†" in page
    assert page.endswith("## Notes\n\nBecause.\n")
    assert main([*words, "--write", str(tmp_path / "page.md")]) == 0
    assert "--write" in (tmp_path / "page.md").read_text()
