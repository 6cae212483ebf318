"""Results count until the default that made them gives other numbers, and those of older defaults are never mixed in."""

from dataclasses import replace

import pytest

from condshap.exceptions import StorageError
from condshap.studies.pages.study_page import study_page
from condshap.studies.pages.summary import Results, best_method, read_results
from condshap.studies.problems.cells import BurrCell
from condshap.studies.running.catalogue import Entry
from condshap.studies.running.defaults import VERSION, is_present, outdated, since
from condshap.studies.running.runner import TRUTH, Study, missing_tasks, run
from condshap.studies.running.store import Key, Result, Store

CELL = BurrCell(5, 1000)
STUDY = Study("s", (CELL,), ("gaussian", "vaeac-paper", "vaeac"), (0, 1))


def result(method, version, repetition=0, ec1=0.1):
    return Result(Key("s", CELL.key, method, repetition, 0, version), ec1, ec1, 1.0, 1.0, 2.0, 3.0, 100)


def stored(path, *results):
    for one in results:
        Store(path).append(one)
    return path


@pytest.mark.parametrize(
    ("method", "version", "present"),
    [
        ("vaeac", "0.1.0", False), ("vaeac", "0.2.0", False), ("vaeac", VERSION, True), ("vaeac-uniform", "0.1.0", False),
        ("vaeac:width=64", "0.1.0", False), ("vaeac-paper", "0.1.0", True), ("gaussian", "0.1.0", True),
        ("gaussian", "0.0.9", False), ("gaussian", "99.0.0", False), (TRUTH, "0.1.0", True), ("no_more", "0.2.0", False),
        ("vaeac-paper:draws='qmc',n_samples=50", "0.1.0", True),
    ],
)  # fmt: skip
def test_results_count_since_the_default_changed(method, version, present):
    assert is_present(Key("s", "cell", method, 0, 0, version)) == present


def test_of_a_strange_approach_this_version_alone_counts():
    assert since("condshap.approaches.gaussian.Gaussian") == VERSION


def test_only_methods_whose_default_changed_are_run_again(tmp_path):
    path = tmp_path / "s.jsonl"
    stored(path, *(result(m, "0.1.0", r) for m in (TRUTH, "gaussian", "vaeac-paper", "vaeac") for r in (0, 1)))
    assert [(task.repetition, task.methods) for task in missing_tasks(STUDY, path)] == [
        (0, ("vaeac",)),
        (1, ("vaeac",)),
    ]
    assert outdated("s", Store(path)) == ["0.1.0"]
    with pytest.raises(StorageError, match="present defaults"):
        run(STUDY, 1, path)


def test_older_results_stand_in_for_missing_ones_and_are_marked(tmp_path):
    new = stored(tmp_path / "new.jsonl", result("gaussian", "0.1.0", ec1=0.3), result("vaeac-paper", "0.2.0"))
    old = stored(tmp_path / "old.jsonl", result("vaeac", "0.1.0", ec1=0.2), result("vaeac", "0.1.0", 1, ec1=0.2))
    assert read_results(STUDY, [new]).of(CELL, "vaeac") == {}
    results = read_results(STUDY, [new], older=[old])
    assert results.versions == ["0.1.0", "0.2.0"]
    assert results.is_older(CELL, "vaeac")
    assert not results.is_older(CELL, "gaussian")
    assert best_method(results, CELL, "ec1") == "vaeac-paper"
    page = study_page(Entry(STUDY, "a study"), results, "command")
    assert "0.2000† ± 0.0000" in page
    assert page.count("†") == 2  # in the table and below the legend
    assert "† by the default of `vaeac` in condshap 0.1.0, not run again since." in page


def test_new_results_replace_all_older_ones_of_their_place(tmp_path):
    new = stored(tmp_path / "new.jsonl", result("vaeac", VERSION, 1, ec1=0.05))
    old = stored(tmp_path / "old.jsonl", *(result("vaeac", "0.1.0", r, ec1=0.2) for r in range(9)))
    results = read_results(STUDY, [new], older=[old])
    assert results.values(CELL, "vaeac", "ec1").tolist() == [0.05]  # a mean over two defaults would be of neither
    assert "†" not in study_page(Entry(STUDY, "a study"), results, "command")


def test_of_two_older_defaults_the_last_one_is_shown():
    found = [result("vaeac", "0.1.0", r, ec1=0.2) for r in range(3)] + [result("vaeac", "0.1.5", 1, ec1=0.1)]
    results = Results.gather(STUDY, [], older=found)
    assert results.values(CELL, "vaeac", "ec1").tolist() == [0.1]


def test_results_of_two_versions_by_the_same_default_belong_together():
    found = [
        result("gaussian", "0.1.0", 0, 0.1),
        result("gaussian", "0.1.0", 1, 0.2),
        result("gaussian", "0.2.0", 1, 0.3),
    ]
    assert Results.gather(STUDY, found).values(CELL, "gaussian", "ec1").tolist() == [0.1, 0.3]
    only = Results.gather(STUDY, found, "0.1.0")
    assert only.values(CELL, "gaussian", "ec1").tolist() == [0.1, 0.2]
    assert Results.gather(replace(STUDY, seed=1), found).places == {}
