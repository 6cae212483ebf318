"""Results of the benchmark are adopted by the studies where they mean the same, and nowhere else."""

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

import condshap
from condshap.studies.running.catalogue import STUDIES
from condshap.studies.running.store import Key, Result, Store

sys.path.insert(0, str(Path(__file__).parents[3]))  # benchmarks are not installed

from benchmarks.adopt import adopt

CELL = STUDIES["mixed-low"].study.cells[0].key
KEY = Key("mixed", CELL, "vaeac", 3, 0, condshap.__version__)
RESULT = Result(KEY, 0.1, 0.2, 0.3, 1.0, 2.0, 3.0, 5, forest="cuda")


def test_results_get_the_studys_name_and_their_machine_and_are_taken_once(tmp_path):
    source = Store(tmp_path / "old.jsonl")
    source.append(RESULT)
    source.append(replace(RESULT, key=replace(KEY, method="truth")))
    line = {**asdict(KEY), "machine": "a machine"}
    (tmp_path / "old.machines.jsonl").write_text(json.dumps(line) + "\n")
    assert adopt(source.path, tmp_path / "new") == {"mixed-low": 2}
    found = Store(tmp_path / "new" / "mixed-low.jsonl").read()
    key = replace(KEY, study="mixed-low")
    assert found[key] == replace(RESULT, key=key, machine="a machine")
    assert "not noted" in found[replace(key, method="truth")].machine
    assert adopt(source.path, tmp_path / "new") == {}
    assert len((tmp_path / "new" / "mixed-low.jsonl").read_text().splitlines()) == 2


def test_what_means_something_else_is_left(tmp_path):
    source = Store(tmp_path / "old.jsonl")
    others = ({"study": "missing"}, {"cell": "mixed M4 rho=0.7 N=100 rows=500"}, {"method": "vaeac:width=8"})
    for other in (*others, {"seed": 1}, {"version": "0.0.9"}):
        source.append(replace(RESULT, key=replace(KEY, **other)))
    assert adopt(source.path, tmp_path / "new") == {}
    assert not (tmp_path / "new").exists()
