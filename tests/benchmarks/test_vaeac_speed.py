"""What the benchmark of networks prints, and that every case of it runs."""

import json

import numpy as np
import pytest

from benchmarks.speed import vaeac_speed
from benchmarks.speed.vaeac_speed import Line, Seconds, best_of, proper_coalitions, table_line


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
    vaeac_speed.main(["--line", name, "cpu", str(tmp_path), "quick"])
    found = json.loads(capsys.readouterr().out)
    assert len(found) == len(vaeac_speed.CASES["cpu"][name].lines)
    assert all(seconds["wall"] > 0 for seconds in found)
