"""Plans tell what is open and how long it takes; what they tell is what runs go by."""

import math
from dataclasses import replace

import numpy as np
import pytest

from condshap.studies.pages.plan_page import plan_facts, plan_text
from condshap.studies.problems.cells import BurrCell, MixedCell
from condshap.studies.running.defaults import VERSION
from condshap.studies.running.expected import Expected
from condshap.studies.running.planning import make_plan, makespan
from condshap.studies.running.runner import TRUTH, Study, Work, tasks_in_order
from condshap.studies.running.store import Key, Result, Store

SMALL, MIDDLE, LARGE = BurrCell(5, 1000), BurrCell(10, 1000), BurrCell(10, 4000)
CELLS = (SMALL, MIDDLE, LARGE)


def result(cell, method, wall, repetition=0, device="cpu"):
    return Result(Key("s", cell.key, method, repetition, 0, VERSION), 0.1, 0.1, 0.1, 0.0, wall, wall, 1, device=device)


def expected(*results, device="cpu"):
    return Expected.of_results(results, CELLS, device)


def test_seconds_of_a_cell_are_the_median_of_what_was_measured():
    found = expected(*(result(SMALL, "gaussian", wall, r) for r, wall in enumerate((3.0, 4.0, 50.0))))
    assert (found.seconds(SMALL, "gaussian").value, found.seconds(SMALL, "gaussian").source) == (4.0, "measured")
    assert found(SMALL, "gaussian") == 4.0


def test_other_work_on_the_machine_does_not_count():
    """CPU seconds do; wall seconds only of processes that waited for an accelerator."""
    one = replace(result(SMALL, "gaussian", 3.0), wall=50.0)
    assert expected(one)(SMALL, "gaussian") == 3.0
    assert expected(replace(one, forest="cuda"))(SMALL, "gaussian") == 50.0
    assert expected(replace(one, device="cuda"), device="cuda")(SMALL, "gaussian") == 50.0


def test_what_nobody_measured_is_unknown_and_counts_as_nothing():
    found = expected(result(SMALL, "gaussian", 3.0))
    assert found.seconds(SMALL, "ctree").source == "unknown"
    assert found(SMALL, "ctree") == 0.0
    assert found.seconds(MixedCell("M4", 0.5, 1000), "gaussian").source == "unknown"  # another family


def test_larger_cells_take_longer_by_the_slopes_that_were_measured():
    """Walls that do not depend on the rows; a prior slope of one half draws a little."""
    flat = expected(result(BurrCell(10, 100), "gaussian", 8.0), result(BurrCell(10, 5000), "gaussian", 8.0))
    flat = replace(flat, cells={c.key: c for c in (BurrCell(10, 100), BurrCell(10, 5000), LARGE)})
    assert flat.seconds(LARGE, "gaussian").source == "extrapolated"
    assert flat(LARGE, "gaussian") == pytest.approx(8.0, rel=0.05)
    one = expected(result(MIDDLE, "gaussian", 8.0))
    assert one(LARGE, "gaussian") == pytest.approx(8.0 * math.sqrt(4.0))  # nothing but the prior


def test_seconds_of_another_device_are_told_and_not_gone_by():
    found = expected(result(SMALL, "vaeac", 60.0), result(MIDDLE, "vaeac", 5.0, device="cuda"), device="cuda")
    assert found.seconds(MIDDLE, "vaeac").value == 5.0
    assert found.seconds(SMALL, "vaeac").source == "extrapolated"  # from the accelerator's own
    other = expected(result(SMALL, "vaeac", 60.0), device="cuda")
    assert (other.seconds(SMALL, "vaeac").value, other.seconds(SMALL, "vaeac").source) == (60.0, "elsewhere")
    assert other(SMALL, "vaeac") == 0.0


@pytest.mark.parametrize(
    ("durations", "jobs", "end"), [((), 3, 0.0), ((5.0,), 3, 5.0), ((1.0,) * 6, 3, 2.0), ((3.0, 2.0, 2.0), 1, 7.0)]
)
def test_processes_share_the_work(durations, jobs, end):
    assert makespan(durations, jobs) == end


STUDY = Study("s", CELLS, ("gaussian", "ctree"), (7, 8))
KNOWN = [
    result(cell, method, 30.0 * (i + 1)) for i, cell in enumerate(CELLS) for method in (TRUTH, "gaussian", "ctree")
]


def test_a_plan_counts_what_is_lacking_and_its_minutes(tmp_path):
    path = tmp_path / "s.jsonl"
    for cell in CELLS:
        for method in (TRUTH, "gaussian"):
            Store(path).append(result(cell, method, 1.0, 7))
    plan = make_plan([Work(STUDY, path)], Expected.of_results(KNOWN, CELLS), jobs=1)
    counts = {(one.cell, one.method): one.repetitions for one in plan.open}
    wanted = {(cell, m): n for cell in CELLS for m, n in ((TRUTH, 1), ("gaussian", 1), ("ctree", 2))}
    assert counts == wanted
    assert plan.results == 12
    # ctree of repetition 7, and all three of repetition 8, at 30, 60 and 90 seconds a method
    assert plan.minutes == pytest.approx((1 + 3) * (30 + 60 + 90) / 60)
    assert plan.longest == pytest.approx(4.5)
    text = plan_text(plan)
    assert "| s | M = 10, N = 4000 | ctree | 2 | 1.5 | 3 | measured |" in text
    assert "12 results are open: about 12 minutes with 1 process at a time, the slowest repetition about 4.5." in text
    assert plan_facts(plan)["minutes"] == plan.minutes


def test_a_plan_of_nothing_says_so(tmp_path):
    path = tmp_path / "s.jsonl"
    for cell in CELLS:
        for method in (TRUTH, "gaussian", "ctree"):
            for r in (7, 8):
                Store(path).append(result(cell, method, 1.0, r))
    plan = make_plan([Work(STUDY, path)], Expected.of_results(KNOWN, CELLS), jobs=2)
    assert plan_text(plan).startswith("Nothing is open")
    assert (plan.minutes, plan.longest, plan.unknown) == (0.0, 0.0, 0)


def test_unknown_costs_are_counted_apart(tmp_path):
    plan = make_plan([Work(STUDY, tmp_path / "s.jsonl")], Expected.of_results(KNOWN[:1], CELLS), jobs=2)
    assert plan.unknown == 12
    assert "without 12 results of unknown cost" in plan_text(plan)
    assert np.isfinite(plan.minutes)
    assert plan_facts(plan)["open"][1]["seconds"] is None


def test_first_repetitions_come_first_and_of_these_the_longest(tmp_path):
    other = Study("t", (MIDDLE,), ("gaussian",), (0, 1))
    works = [Work(STUDY, tmp_path / "s.jsonl"), Work(other, tmp_path / "t.jsonl")]
    tasks = tasks_in_order(works, expected=Expected.of_results(KNOWN, CELLS))
    found = [(task.study.name, task.repetition, task.cell) for task, _ in tasks]
    first = [("s", 7, LARGE), ("s", 7, MIDDLE), ("t", 0, MIDDLE), ("s", 7, SMALL)]
    assert found == [*first, *((study, repetition + 1, cell) for study, repetition, cell in first)]
    assert [store.name for _, store in tasks][:3] == ["s.jsonl", "s.jsonl", "t.jsonl"]
    assert tasks[0][0].expected == (90.0, 90.0, 90.0)
