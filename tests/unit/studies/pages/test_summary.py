"""Means, standard errors, ratios and ranks of hand-made results are what one finds by hand."""

from dataclasses import replace

import numpy as np
import pytest

from condshap.exceptions import StorageError
from condshap.studies.pages.study_page import study_csv, study_page
from condshap.studies.pages.summary import Results, agreements, best_method, ratio_of_means, read_results, summarise
from condshap.studies.problems.abalone import AbaloneCell
from condshap.studies.problems.cells import BurrCell, MixedCell
from condshap.studies.running.catalogue import Entry
from condshap.studies.running.runner import TRUTH, Study
from condshap.studies.running.store import Key, Result, Store

CELL, OTHER = BurrCell(5, 1000), BurrCell(10, 1000)
STUDY = Study("s", (CELL, OTHER), ("gaussian", "ctree", "vaeac"), ())
ENTRY = Entry(STUDY, "a study", criteria=("ec1", "ec3"))


def result(method, repetition, ec1, ec3=1.0, cell=CELL, **more):
    key = Key("s", cell.key, method, repetition, 0, "0.1.0")
    return Result(key, ec1, 2 * ec1, ec3, 1.0, 2.0, 3.0, 100, machine="a machine", date="2026-01-02", **more)


def gathered(*found, study=STUDY):
    return Results.gather(study, found, "0.1.0")


def line_of(summary, method, criterion="ec1", cell=CELL):
    fits = (summary["method"] == method) & (summary["criterion"] == criterion) & (summary["cell"] == cell.key)
    (line,) = summary[fits].to_dict("records")
    return line


def test_means_errors_and_ratios_to_the_paper():
    summary = summarise(gathered(result("vaeac", 0, 0.02), result("vaeac", 1, 0.04)), ("ec1",))
    line = line_of(summary, "vaeac")
    assert (line["M"], line["N"], line["repetitions"]) == (5, 1000, 2)
    assert line["mean"] == pytest.approx(0.03)
    assert line["std_error"] == pytest.approx(0.01)  # 0.0141 / sqrt(2)
    assert line["paper"] == 0.0264
    assert line["ratio"] == pytest.approx(0.03 / 0.0264)
    assert line["ratio_error"] == pytest.approx(0.01 / 0.0264)
    assert (line["cpu_fit"], line["cpu_explain"]) == (1.0, 2.0)


def test_what_was_not_run_has_a_line_without_a_mean():
    summary = summarise(gathered(result("vaeac", 0, 0.02)), ("ec1",))
    lacking = line_of(summary, "ctree", cell=OTHER)
    assert lacking["repetitions"] == 0
    assert np.isnan(lacking["mean"])
    assert lacking["paper"] > 0
    assert np.isnan(line_of(summary, "vaeac")["std_error"])  # one repetition tells no error
    assert len(summary) == 2 * 3


def test_the_best_is_found_over_repetitions_that_all_have():
    """Gaussian looks best over all of its repetitions, because it alone ran the easy ones."""
    easy = [result("gaussian", r, 0.001) for r in range(2, 9)]
    both = [result(m, r, e) for r in (0, 1) for m, e in (("gaussian", 0.05), ("vaeac", 0.03))]
    results = gathered(*easy, *both)
    assert results.values(CELL, "gaussian", "ec1").mean() < results.values(CELL, "vaeac", "ec1").mean()
    assert best_method(results, CELL, "ec1") == "vaeac"
    summary = summarise(results, ("ec1",))
    assert line_of(summary, "vaeac")["is_best"]
    assert not line_of(summary, "gaussian")["is_best"]


def test_without_common_repetitions_or_rivals_nobody_is_best():
    assert best_method(gathered(result("vaeac", 0, 0.1), result("ctree", 1, 0.2)), CELL, "ec1") is None
    assert best_method(gathered(result("vaeac", 0, 0.1)), CELL, "ec1") is None


def test_agreement_is_judged_among_methods_that_were_run():
    """The paper's best is vaeac (0.0264), then gaussian (0.0424) and ctree (0.0480)."""
    found = agreements(gathered(result("gaussian", 0, 0.05), result("ctree", 0, 0.06)), "ec1")
    assert [(one.ours, one.paper, one.holds) for one in found] == [("gaussian", "gaussian", True)]
    found = agreements(gathered(result("gaussian", 0, 0.05), result("vaeac", 0, 0.06)), "ec1")
    assert [(one.ours, one.paper, one.holds) for one in found] == [("gaussian", "vaeac", False)]


def test_the_papers_own_method_counts_as_its_vaeac():
    study = replace(STUDY, methods=("vaeac-paper", "vaeac", "gaussian"))
    ours = [result("vaeac-paper", 0, 0.02), result("vaeac", 0, 0.03), result("gaussian", 0, 0.04)]
    (one,) = agreements(gathered(*ours, study=study), "ec1")
    assert one.holds
    assert agreements(gathered(*ours[:2], study=study), "ec1") == []  # one method of the paper cannot be ranked


def test_the_number_of_samples_does_not_make_another_method_of_the_paper():
    study = replace(STUDY, methods=("gaussian:n_samples=16", "vaeac:width=8", "ctree"))
    ours = [result("gaussian:n_samples=16", 0, 0.05), result("vaeac:width=8", 0, 0.01), result("ctree", 0, 0.06)]
    summary = summarise(gathered(*ours, study=study), ("ec1",))
    assert line_of(summary, "gaussian:n_samples=16")["paper"] == 0.0424
    assert np.isnan(line_of(summary, "vaeac:width=8")["paper"])
    (one,) = agreements(gathered(*ours, study=study), "ec1")
    assert (one.ours, one.paper) == ("gaussian", "gaussian")


def test_where_coalitions_are_drawn_the_two_maskings_are_different_methods():
    cell = BurrCell(25, 1000, n_coalitions=1000)
    study = Study("s", (cell,), ("vaeac-uniform", "vaeac"), ())
    ours = [result("vaeac-uniform", 0, 0.02, cell=cell), result("vaeac", 0, 0.03, cell=cell)]
    (one,) = agreements(gathered(*ours, study=study), "ec1")
    assert (one.ours, one.paper) == ("vaeac", "vaeac")  # 0.0321 and 0.0346 in the paper
    summary = summarise(gathered(*ours, study=study), ("ec1",))
    assert line_of(summary, "vaeac", cell=cell)["paper"] == 0.0346
    assert line_of(summary, "vaeac-uniform", cell=cell)["paper"] == 0.0321


def test_ratios_of_means_have_paired_errors():
    """By hand: ratio 6/4; differences values - 1.5 others are -0.5, 0.5 with deviation 0.7071, over sqrt(2) and 2."""
    ratio, error = ratio_of_means(np.array([1.0, 5.0]), np.array([1.0, 3.0]))
    assert ratio == 1.5
    assert error == pytest.approx(0.25)
    assert np.isnan(ratio_of_means(np.array([1.0]), np.array([2.0]))[1])


def test_abalone_has_ratios_to_independence_and_no_first_criteria():
    cell = AbaloneCell()
    study = Study("s", (cell,), ("independence", "vaeac"), ())
    nothing = float("nan")
    pairs = [("independence", 0, 3.0), ("independence", 1, 2.0), ("vaeac", 0, 1.0), ("vaeac", 1, 0.5)]
    found = [replace(result(m, r, nothing, e, cell=cell), ec2=nothing) for m, r, e in pairs]
    summary = summarise(gathered(*found, study=study), ("ec3",), "independence")
    line = line_of(summary, "vaeac", "ec3", cell)
    assert line["over_reference"] == pytest.approx(0.3)
    assert line["over_reference_error"] == pytest.approx(np.std([0.1, -0.1], ddof=1) / np.sqrt(2) / 2.5)
    assert line["paper_over_reference"] == pytest.approx(1.18 / 3.57)
    assert TRUTH not in set(summary["method"])
    page = study_page(Entry(study, "snails", ("ec3",), reference="independence"), gathered(*found, study=study), "c")
    assert "| `vaeac` | 2 | **0.7500** ± 0.2500 / **1.1800** = 0.64 | 0.300 ± 0.040 | 0.331 | 3.000 |" in page
    assert "nan" not in page


def test_a_page_says_everything():
    found = [
        result("vaeac", 0, 0.10),
        result("vaeac", 1, 0.12),
        result("gaussian", 0, 0.05),
        result("gaussian", 1, 0.05),
    ]
    found += [result(TRUTH, 0, 0.0007), result("vaeac", 0, 0.001, cell=OTHER), result("vaeac", 1, 0.002, cell=OTHER)]
    page = study_page(ENTRY, gathered(*found), "condshap study table s", notes="Because.")
    assert "7 results of condshap 0.1.0, found on 2026-01-02" in page
    assert "- 7 on a machine (networks on cpu, forests by cpu)" in page
    assert "`condshap study table s`" in " ".join(page.split())  # prose is wrapped
    assert (
        "| 5 | 1000 | 2 | **0.0500** ± 0.0000 / 0.0424 = 1.18 | not run / 0.0480 "
        "| 0.1100 ± 0.0100 / **0.0264** = 4.17 |" in page
    )
    assert "our best method is the paper's best in 0 of 1 cells" in page
    assert "- M = 5, N = 1000: ours gaussian, the paper's vaeac" in page
    worse = " ".join(page.partition("is worse than")[2].partition("## Not run")[0].split())
    assert "- M = 5, N = 1000: 0.1100 ± 0.0100 against 0.0264; gaussian is 1.18 of the paper's" in worse
    assert "vaeac over gaussian 2.200, the paper's 0.623" in " ".join(worse.split())  # on two lines
    assert "M = 10" not in worse
    not_run = page.partition("## Not run")[2]
    assert "- M = 5, N = 1000: ctree\n- M = 10, N = 1000: gaussian, ctree\n" in not_run
    assert "sampling error is at most 0.0007" in page
    assert page.endswith("## Notes\n\nBecause.\n")


def test_being_worse_takes_more_than_two_standard_errors():
    """Paper 0.0264. Mean 0.0364 with error 0.004 is 2.5 errors above, with error 0.006 it is 1.7."""
    for half, is_worse in ((0.004, True), (0.006, False)):
        found = [result("vaeac", 0, 0.0364 - half), result("vaeac", 1, 0.0364 + half)]
        page = study_page(ENTRY, gathered(*found), "c")
        assert ("- M = 5, N = 1000: 0.0364" in page) == is_worse
        assert ("Nowhere." in page) != is_worse


def test_csv_has_a_line_for_each_cell_method_and_criterion():
    import io

    import pandas as pd

    table = pd.read_csv(io.StringIO(study_csv(ENTRY, gathered(result("vaeac", 0, 0.02)))))
    assert len(table) == 2 * 3 + 2 * 4  # EC3 has the truth as well
    assert {"cell", "M", "N", "method", "criterion", "mean", "std_error", "paper", "ratio"} <= set(table.columns)


def mixed_study(*rhos):
    return Study("s", tuple(MixedCell("M4", rho, 1000) for rho in rhos), ("independence", "vaeac"), ())


def test_a_study_of_mixed_cells_shows_rho_and_names_cells_that_were_not_run_once():
    study = mixed_study(0.0, 0.1, 0.5)
    found = [result("vaeac", 0, 0.05, cell=study.cells[2])]
    page = study_page(Entry(study, "mixed"), gathered(*found, study=study), "c")
    assert "| 4 | 4 | 1000 | 0.5 | 1 | not run / 0.3541 | 0.0500 / **0.0792** = 0.63 |" in page
    assert "| 4 | 4 | 1000 | 0 |" not in page
    not_run = page.partition("## Not run\n\n")[2].splitlines()
    assert not_run[0] == "- M = 4, L = 4, N = 1000, rho = 0, 0.1: all methods"
    assert not_run[1] == "- M = 4, L = 4, N = 1000, rho = 0.5: independence"


def test_ratios_to_a_reference_have_a_table_of_their_own():
    """Paper's EC1 at rho = 0.5: 0.0792 over 0.3541. Only repetitions that both have count."""
    study = mixed_study(0.5)
    study = replace(study, cells=(*study.cells, MixedCell("M4", 0.8, 1000)))
    ours = [("independence", 0.2), ("independence", 0.4), ("vaeac", 0.02), ("vaeac", 0.06)]
    found = [result(name, r % 2, ec1, cell=study.cells[0]) for r, (name, ec1) in enumerate(ours)]
    found.append(result("independence", 2, 9.0, cell=study.cells[0]))
    page = study_page(Entry(study, "mixed", reference="independence"), gathered(*found, study=study), "c")
    table = page.partition("## EC1 over that of independence")[2].partition("## Ranking")[0]
    assert "| M | L | N | rho | vaeac |" in table
    assert "| 4 | 4 | 1000 | 0.5 | 0.133 ± 0.022 / 0.224 |" in table
    assert "| 0.8 |" not in table


def test_other_studies_seeds_and_versions_are_not_mixed_in(tmp_path):
    key = Key("s", CELL.key, "vaeac", 0, 0, "0.1.0")
    one = result("vaeac", 0, 0.02)
    strangers = [replace(one, ec1=9.0, key=replace(key, **other)) for other in ({"study": "t"}, {"seed": 1})]
    results = gathered(*strangers, one)
    assert results.values(CELL, "vaeac", "ec1").tolist() == [0.02]
    store = Store(tmp_path / "s.jsonl")
    store.append(replace(one, key=replace(key, version="0.0.9")))
    with pytest.raises(StorageError, match=r"must be of version .*'0.0.9'"):
        read_results(STUDY, [store.path])
    store.append(one)
    assert read_results(STUDY, [store.path], "0.0.9").values(CELL, "vaeac", "ec1").tolist() == [0.02]


def test_several_stores_are_read_together(tmp_path):
    for r in (0, 1):
        Store(tmp_path / f"{r}.jsonl").append(result("vaeac", r, 0.02 + r))
    results = read_results(STUDY, [tmp_path / "0.jsonl", tmp_path / "1.jsonl"], "0.1.0")
    assert results.values(CELL, "vaeac", "ec1").tolist() == [0.02, 1.02]
    assert results.only([1]).values(CELL, "vaeac", "ec1").tolist() == [1.02]
    with pytest.raises(StorageError, match="existing file"):
        read_results(STUDY, [tmp_path / "none.jsonl"])


def test_large_cells_have_minutes_and_memory():
    cell = BurrCell(50, 5000, n_coalitions=1000)
    study = Study("s", (CELL, cell), ("gaussian", "vaeac"), ())
    found = [result("vaeac", r, 0.1, cell=cell, peak=2.0 + r, device_peak=5.0) for r in (0, 1)]
    found = [replace(one, wall=60.0 * (1 + one.key.repetition)) for one in found]
    found += [result("gaussian", 0, 0.1, cell=cell), result("vaeac", 0, 0.1, peak=1.0)]  # not noted; not large
    page = study_page(Entry(study, "a study"), gathered(*found, study=study), "c")
    table = page.partition("## Minutes and memory")[2]
    assert "| M = 50, N = 5000 | `vaeac` | 2.0 | 3.0 | 5.0 |" in table
    assert table.count("\n| M = ") == 1
    assert "## Minutes" not in study_page(Entry(study, "a study"), gathered(*found[2:], study=study), "c")
