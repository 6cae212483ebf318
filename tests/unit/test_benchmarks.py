"""What the benchmarks print; what they measure is in benchmarks/README.md."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from condshap.studies.runner import TRUTH
from condshap.studies.store import Result, Store

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # benchmarks are not installed

from benchmarks import origins, vaeac_speed  # noqa: E402
from benchmarks.sections import replace_section  # noqa: E402
from benchmarks.vaeac_bars import APPROACHES, BURR, STUDIES, USUAL  # noqa: E402
from benchmarks.vaeac_speed import Line, Seconds, best_of, proper_coalitions, table_line  # noqa: E402
from benchmarks.vaeac_tables import accuracy_text, ratio_of_means, short_name, verdict  # noqa: E402


def make_result(study, cell, method, repetition, ec1, forest="cpu"):
    key = STUDIES[study].key(cell, method, repetition)
    return Result(
        key, ec1=ec1, ec2=0.1, ec3=0.2, cpu_fit=1.0, cpu_explain=2.0, wall=3.0, n_evaluations=4, forest=forest
    )


@pytest.fixture
def store(tmp_path):
    """Burr study, M = 5 and N = 1000, with two repetitions: the paper's method at 0.6 of gaussian's EC1."""
    path = tmp_path / "vaeac.jsonl"
    levels = {TRUTH: 0.001, "independence": 0.1, "gaussian": 0.05, "vaeac-paper": 0.03, "vaeac": 0.0285}
    for repetition in range(2):
        for method, ec1 in levels.items():
            result = make_result("burr", BURR[5, 1000], method, repetition, ec1 * (1 + repetition))
            Store(path).append(result)
    return path


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


@pytest.mark.parametrize("name", ["vaeac accuracy", "vaeac speed", "vaeac speed cuda"])
def test_the_page_of_measurements_has_the_sections_that_are_written(name):
    assert "new" in replace_section((ROOT / "benchmarks/README.md").read_text(), name, "new")


def test_tables_tell_which_bars_hold(store):
    lines = accuracy_text(store, ["burr"], quick=False).splitlines()
    over_gaussian = next(line for line in lines if line.startswith("| M=5, N=1000 |"))
    assert over_gaussian.endswith("| 0.62 | 0.600 ± 0.000 | 0.62 + 0.000 | yes |")
    assert any(line.endswith("| 0.950 ± 0.000 | 0.85 | **no** |") for line in lines)
    assert any("not run" in line and line.startswith("| M=10, N=1000 |") for line in lines)
    assert "1 of 2 bars that were run hold." in lines
    assert "R = 2; the truth's error is at most 0.0015." in lines


def test_tables_are_printed_for_an_empty_store(tmp_path):
    text = accuracy_text(tmp_path / "none.jsonl", [*USUAL, APPROACHES], quick=False)
    assert text.startswith("No results.")
    assert "No repetition is complete." in text


def test_results_of_other_methods_are_in_no_table(store):
    before = accuracy_text(store, ["burr"], quick=False)
    Store(store).append(make_result("burr", BURR[5, 1000], "vaeac:width=64", 0, 9.0, forest="cuda"))
    assert accuracy_text(store, ["burr"], quick=False) == before


def test_the_machine_is_noted_for_results_that_are_added_or_replaced(store, monkeypatch):
    old = Store(store).read()
    first = next(iter(old.values()))
    monkeypatch.setattr(origins, "machine", lambda *, gpu: "here with a GPU" if gpu else "here")
    with origins.noted(store):
        Store(store).append(replace(first, ec1=7.0))
        Store(store).append(make_result("burr", BURR[10, 1000], "vaeac", 0, 0.1, forest="cuda"))
    found = dict(origins.origins(store, Store(store).read()))
    assert found == {origins.UNKNOWN: len(old) - 1, "here": 1, "here with a GPU": 1}


def test_the_machine_is_noted_for_what_was_finished_before_a_failure(store, monkeypatch):
    monkeypatch.setattr(origins, "machine", lambda *, gpu: "here")

    def finish_one_and_stop():
        with origins.noted(store):
            Store(store).append(make_result("burr", BURR[10, 1000], "vaeac", 0, 0.1))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        finish_one_and_stop()
    assert dict(origins.origins(store, Store(store).read()))["here"] == 1


def test_only_forests_on_an_accelerator_are_told_to_come_from_it_where_no_machine_was_noted(store):
    Store(store).append(make_result("burr", BURR[10, 1000], "vaeac", 0, 0.1, forest="cuda"))
    found = origins.origins(store, Store(store).read())
    assert [(name.startswith(origins.UNNAMED_GPU), count) for name, count in found] == [(False, 10), (True, 1)]


def test_names_of_cells_tell_them_apart_within_a_study():
    for study in STUDIES.values():
        names = [short_name(cell) for cell in study.cells]
        assert len(set(names)) == len(names)
        assert max(map(len, names)) <= 25


def test_all_approaches_stand_beside_the_paper(tmp_path):
    path, study = tmp_path / "vaeac.jsonl", STUDIES[APPROACHES]
    for repetition in range(2):
        for method, ec1 in zip((TRUTH, *study.methods), (0.001, 0.1, 0.05, 0.04, 0.06, 0.04, 0.02), strict=True):
            Store(path).append(make_result(APPROACHES, study.cells[0], method, repetition, ec1))
    lines = accuracy_text(path, [APPROACHES], quick=False).splitlines()
    assert any(
        line.startswith("| gaussian | 0.0400 ± 0.0000 | 0.0424 | 0.400 ± 0.000 | 0.387 | 15 % |") for line in lines
    )
    assert any(line.startswith("| copula |") and "| **neither** |" in line for line in lines)
    assert any(line.startswith("| vaeac |") and "| neither: better |" in line for line in lines)


def test_a_ratio_is_judged_by_either_rule():
    assert verdict(1.1, 0.01, 1.0) == "15 %"
    assert verdict(1.3, 0.2, 1.0) == "2 standard errors"
    assert verdict(1.1, 0.2, 1.0) == "15 % and 2 standard errors"


def test_the_error_of_a_ratio_vanishes_where_both_sides_move_together():
    values = np.array([1.0, 2.0, 4.0])
    assert ratio_of_means(values, 2 * values) == (0.5, 0.0)


def test_speed_is_judged_by_the_cpu_and_on_an_accelerator_by_the_wall():
    quick_cpu, quick_wall = Seconds(cpu=1.0, wall=5.0), Seconds(cpu=4.0, wall=2.0)
    assert best_of([quick_cpu, quick_wall], "cpu") == quick_cpu
    assert best_of([quick_cpu, quick_wall], "cuda") == quick_wall
    assert table_line(Line("x", 3, 92), quick_wall, "cuda", quick=False) == "| x | 4.00 | 2.00 | 92 | 3 wall | yes |"
    assert table_line(Line("x", 3), quick_wall, "cpu", quick=False) == "| x | 4.00 | 2.00 | - | 3 CPU | **no** |"
    assert table_line(Line("x", None), quick_wall, "cuda", quick=False) == "| x | 4.00 | 2.00 | - | - | - |"


def test_speed_asks_for_every_coalition_but_the_empty_and_the_full_one():
    masks = proper_coalitions(vaeac_speed.FULL)
    assert len(np.unique(masks, axis=0)) == len(masks) == 1022
    assert masks.any(axis=1).all()
    assert not masks.all(axis=1).any()


@pytest.mark.parametrize("name", list(vaeac_speed.CASES["cpu"]))
def test_every_case_of_speed_has_a_line_for_each_call(name, tmp_path, capsys):
    if name.startswith("sample"):
        vaeac_speed.train_default(tmp_path, "cpu", vaeac_speed.QUICK)
    vaeac_speed.main(name, "cpu", str(tmp_path), "quick")
    found = json.loads(capsys.readouterr().out)
    assert len(found) == len(vaeac_speed.CASES["cpu"][name].lines)
    assert all(seconds["wall"] > 0 for seconds in found)
