"""A run that ends early, by a kill or an error, is continued by the same call; any other call is refused."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import condshap as cs
from condshap.bulk import manifest as manifests
from condshap.bulk import running
from tests.unit.bulk.small import FEATURES, assert_same, explainer_of, make_rows, write_files

KILLED = """
    import os, signal, sys
    from pathlib import Path

    import condshap.storage.writing as writing
    from condshap.bulk import manifest, part_files, running
    from tests.unit.bulk.small import explainer_of, make_rows

    moment, source, out = sys.argv[1:]

    def die(*_, **__):
        os.kill(os.getpid(), signal.SIGKILL)

    def third(call):
        calls = iter(range(100))
        return lambda *given, **named: die() if next(calls) == 2 else call(*given, **named)

    if moment == "in a part":
        part_files.explanation_bytes = third(part_files.explanation_bytes)
    elif moment == "between part and manifest":
        running.note_done = third(running.note_done)
    elif moment == "in the rename":
        Path.replace = third(Path.replace)
    explainer_of(make_rows(120)).explain_dataset(source, out, rows_per_part=9, key="id")
"""


def run_until_killed(moment: str, source: Path, out: Path) -> None:
    from textwrap import dedent

    root = Path(__file__).parents[3]
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}:{root}", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", dedent(KILLED), moment, str(source), str(out)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr


@pytest.mark.parametrize("moment", ["in a part", "between part and manifest", "in the rename"])
def test_a_kill_loses_only_the_part_in_flight(moment, explainer, source, rows, tmp_path):
    out = tmp_path / "out"
    run_until_killed(moment, source, out)
    begun = cs.open_explanations(out)
    assert not begun.is_complete
    assert len(begun.parts) == 2
    assert_same(begun.to_explanation(), explainer.explain(rows[FEATURES][:18]))
    before = {done.file: (out / done.file).stat().st_mtime_ns for done in begun.parts}
    found = explainer.explain_dataset(source, out, rows_per_part=9, key="id")
    assert found.is_complete
    assert_same(found.to_explanation(), explainer.explain(rows[FEATURES]))
    assert found.to_frame()["id"].tolist() == rows["id"].tolist()  # every row once
    assert {name: (out / name).stat().st_mtime_ns for name in before} == before  # finished parts were left alone
    assert sorted(path.name for path in out.iterdir()) == sorted(["manifest.jsonl", *(d.file for d in found.parts)])


def test_a_finished_run_is_not_repeated(explainer, source, tmp_path, monkeypatch):
    explainer.explain_dataset(source, tmp_path / "out")
    monkeypatch.setattr(
        running, "run_here", lambda *_: pytest.fail("must not explain again") if list(_[1]) else iter(())
    )
    assert explainer.explain_dataset(source, tmp_path / "out").is_complete


def test_ctrl_c_leaves_a_folder_that_can_be_continued(explainer, source, rows, tmp_path, monkeypatch):
    note_done, calls = running.note_done, iter(range(100))

    def stop(*given):
        if next(calls) == 2:
            raise KeyboardInterrupt
        note_done(*given)

    monkeypatch.setattr(running, "note_done", stop)
    with pytest.raises(KeyboardInterrupt):
        explainer.explain_dataset(source, tmp_path / "out", rows_per_part=9)
    monkeypatch.setattr(running, "note_done", note_done)
    found = explainer.explain_dataset(source, tmp_path / "out", rows_per_part=9)
    assert_same(found.to_explanation(), explainer.explain(rows[FEATURES]))


def test_a_part_whose_file_is_gone_is_made_again(explainer, source, rows, tmp_path):
    first = explainer.explain_dataset(source, tmp_path / "out", rows_per_part=9, key="id")
    gone = tmp_path / "out" / first.parts[2].file
    gone.write_bytes((tmp_path / "out" / first.parts[0].file).read_bytes())
    with pytest.raises(cs.CondShapError, match="Delete it, and make the call to explain_dataset again"):
        first.to_explanation()
    gone.unlink()
    found = explainer.explain_dataset(source, tmp_path / "out", rows_per_part=9, key="id")
    assert len(found) == len(rows)
    assert_same(found.to_explanation(), explainer.explain(rows[FEATURES]))


def test_rows_per_part_is_that_of_the_run_unless_it_is_given(explainer, source, tmp_path):
    explainer.explain_dataset(source, tmp_path / "out", rows_per_part=9)
    assert len(explainer.explain_dataset(source, tmp_path / "out").parts) == 7


def test_a_misspelt_option_is_named_with_the_nearest_and_with_all_that_there_are(explainer, source, tmp_path):
    with pytest.raises(cs.CondShapError) as caught:
        explainer.explain_dataset(source, tmp_path / "out", row_per_part=9)
    assert str(caught.value) == (
        "explain_dataset has no option 'row_per_part'. Did you mean 'rows_per_part'? Choose among ['rows_per_part', "
        "'columns', 'key', 'cluster', 'resume', 'values']."
    )
    assert not (tmp_path / "out").exists()


DIFFERENT = {
    "seed was 0 and is 1": ({"seed": 1}, {}),
    "approach was 'independence' and is 'ctree'": ({"approach": "ctree"}, {}),
    "n_samples was 8 and is 9": ({"n_samples": 9}, {}),
    "made_by was .* training rows, approach, options and model": ({"base_value": 0.5}, {}),
    "values was 'full' and is 'compact'": ({}, {"values": "compact"}),
    "key was 'id' and is None": ({}, {"key": None}),
    r"columns was \[\] and is \['branch'\]": ({}, {"columns": ["branch"]}),
    "rows_per_part was 10 and is 11": ({}, {"rows_per_part": 11}),
}


@pytest.mark.parametrize("message", DIFFERENT)
def test_another_explainer_or_option_is_refused_with_what_differs(message, explainer, source, tmp_path):
    given = {"key": "id", "rows_per_part": 10}
    explainer.explain_dataset(source, tmp_path / "out", **given)
    options, call = DIFFERENT[message]
    other = explainer_of(make_rows(120), **options)
    with pytest.raises(cs.CondShapError, match=message):
        other.explain_dataset(source, tmp_path / "out", **{**given, **call})


def test_other_training_rows_are_another_explainer(explainer, source, tmp_path):
    explainer.explain_dataset(source, tmp_path / "out")
    with pytest.raises(cs.CondShapError, match="made_by was"):
        explainer_of(make_rows(120, seed=9)).explain_dataset(source, tmp_path / "out")


def test_another_source_is_refused_with_what_differs(explainer, rows, source, tmp_path):
    out = tmp_path / "out"
    explainer.explain_dataset(source, out, rows_per_part=10)
    changed = rows.copy()
    changed.loc[33, "income"] += 1e-9
    write_files(source, changed, 20, 20, 7)
    with pytest.raises(cs.CondShapError, match=r"rows 10 to 19 of 'b.parquet'\) has changed"):
        explainer.explain_dataset(source, out, rows_per_part=10)
    write_files(source, rows, 20, 20, 7)
    rows[:5].to_parquet(source / "d.parquet")
    with pytest.raises(cs.CondShapError, match=r"'d.parquet'\) is new"):
        explainer.explain_dataset(source, out, rows_per_part=10)
    (source / "d.parquet").unlink()
    (source / "a.parquet").unlink()
    with pytest.raises(cs.CondShapError, match=r"'a.parquet'\) is gone"):
        explainer.explain_dataset(source, out, rows_per_part=10)
    write_files(source, rows, 20, 20, 7)
    assert explainer.explain_dataset(source, out, rows_per_part=10).is_complete


def test_rows_that_are_not_finished_must_not_change_either(explainer, source, rows, tmp_path):
    run_until_killed("in a part", source, tmp_path / "out")
    rows.iloc[40:].assign(age=0.0).to_parquet(source / "c.parquet")
    with pytest.raises(cs.CondShapError, match=r"'c.parquet'\) has changed"):
        explainer.explain_dataset(source, tmp_path / "out", rows_per_part=9, key="id")


def test_a_source_may_move(explainer, source, tmp_path):
    explainer.explain_dataset(source, tmp_path / "out")
    moved = source.rename(tmp_path / "moved")
    assert explainer.explain_dataset(moved, tmp_path / "out").is_complete


def test_a_new_run_needs_a_new_folder(explainer, source, tmp_path):
    explainer.explain_dataset(source, tmp_path / "out", resume=False)
    with pytest.raises(cs.CondShapError, match="with an earlier run in it"):
        explainer.explain_dataset(source, tmp_path / "out", resume=False)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("all of it")
    with pytest.raises(cs.CondShapError, match=r"other files, such as 'thesis.txt'"):
        explainer.explain_dataset(source, tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


def test_two_runs_do_not_write_to_the_same_folder(explainer, source, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    with running._alone(out), pytest.raises(cs.CondShapError, match="no other run is writing to"):
        explainer.explain_dataset(source, out)


def test_a_damaged_line_of_the_manifest_counts_for_nothing(explainer, source, rows, tmp_path):
    out = tmp_path / "out"
    explainer.explain_dataset(source, out, rows_per_part=9)
    path = out / manifests.NAME
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:3], lines[3].replace("seconds", "sec0nds"), *lines[4:], lines[2][:20]]))
    assert len(cs.open_explanations(out).parts) == 6
    found = explainer.explain_dataset(source, out)
    assert_same(found.to_explanation(), explainer.explain(rows[FEATURES]))


def test_a_manifest_without_its_beginning_is_refused(explainer, source, tmp_path):
    out = tmp_path / "out"
    explainer.explain_dataset(source, out)
    path = out / manifests.NAME
    path.write_text("\n".join(path.read_text().splitlines()[1:]))
    with pytest.raises(cs.CondShapError, match="must begin with the options of its run"):
        cs.open_explanations(out)


def test_a_later_version_of_the_manifest_is_told_from_a_damaged_one(explainer, source, tmp_path, monkeypatch):
    explainer.explain_dataset(source, tmp_path / "out")
    monkeypatch.setattr("condshap.storage.file_kinds.FORMAT_VERSION", 99)
    with pytest.raises(cs.CondShapError, match="must have format version 99"):
        cs.open_explanations(tmp_path / "out")


def test_a_manifest_says_what_was_asked_and_by_which_versions(explainer, source, tmp_path):
    explainer.explain_dataset(source, tmp_path / "out", rows_per_part=20)
    lines = [
        json.loads(line.partition(" ")[2]) for line in (tmp_path / "out" / manifests.NAME).read_text().splitlines()
    ]
    assert [next(iter(line)) for line in lines] == ["run", "plan", "done", "done", "done"]
    run = lines[0]["run"]
    assert run["explainer"]["approach"] == "independence"
    assert run["options"]["values"] == "full"
    assert {"python", "condshap", "pyarrow"} <= set(run["versions"])
    assert [line["done"]["part"]["n_rows"] for line in lines[2:]] == [20, 20, 7]


def test_resuming_after_a_time_is_not_slowed_by_what_is_done(explainer, source, tmp_path):
    explainer.explain_dataset(source, tmp_path / "out", rows_per_part=1)
    start = time.process_time()
    explainer.explain_dataset(source, tmp_path / "out", rows_per_part=1)
    assert time.process_time() - start < 2.0


def test_a_lazy_frame_whose_rows_change_between_readings_is_refused(explainer, rows, tmp_path):
    import polars as pl

    if not hasattr(pl.LazyFrame, "collect_batches"):
        pytest.skip("this Polars reads no lazy frame in batches; test_bad_parts.py has what users are told")

    class Shuffled:
        """Looks like a lazy frame that is not sorted."""

        def __init__(self):
            self.seed = iter(range(10))

        def collect_schema(self):
            return pl.from_pandas(rows[FEATURES]).lazy().collect_schema()

        def select(self, names):
            frame = pl.from_pandas(rows[FEATURES])
            return frame.sample(fraction=1.0, shuffle=True, seed=next(self.seed)).lazy().select(names)

        def collect_batches(self, **options):
            raise AssertionError

    with pytest.raises(cs.CondShapError, match="must hold the same rows every time it is read"):
        explainer.explain_dataset(Shuffled(), tmp_path / "out", rows_per_part=10)


def test_types_count_as_content(explainer, tmp_path):
    import pyarrow.dataset as ds

    train = make_rows(30)
    table = pa.Table.from_pandas(train, preserve_index=False)
    explainer.explain_dataset(ds.dataset(table), tmp_path / "out")
    place = table.schema.get_field_index("code")
    floats = table.set_column(place, "code", table.column("code").cast(pa.float64()))
    with pytest.raises(cs.CondShapError, match="has changed"):
        explainer.explain_dataset(ds.dataset(floats), tmp_path / "out")
    assert np.array_equal(
        explainer.explain(train).values, cs.open_explanations(tmp_path / "out").to_explanation().values
    )
