"""What is wrong with a part is said with its file and rows; parts that are finished are kept, and repaired files go on."""

from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest

import condshap as cs
from condshap.bulk import part_files
from condshap.exceptions import StorageError
from tests.unit.bulk.small import FEATURES, assert_same, make_rows, write_files


def new_level(some):
    levels = some["class"].astype(str)
    return some.assign(**{"class": levels.where(np.arange(20) != 12, "purple")})


def text_for_numbers(some):
    return some.assign(income="much")


def gap(some):
    return some.assign(age=[np.inf, *some["age"][1:]])


BAD = {
    r"part 3 \(rows 10 to 19 of 'b.parquet'\).*unseen levels \['purple'\] in rows \[2\]": new_level,
    r"part 2 \(rows 0 to 9 of 'b.parquet'\).*column 'income' must hold numbers": text_for_numbers,
    r"part 2 \(rows 0 to 9 of 'b.parquet'\).*column 'age' must be finite or missing": gap,
}


@pytest.mark.parametrize("message", BAD)
def test_a_bad_file_is_named_what_is_finished_is_kept_and_a_repaired_one_goes_on(message, explainer, rows, tmp_path):
    source = write_files(tmp_path / "source", rows, 20, 20, 7)
    good = (source / "b.parquet").read_bytes()
    BAD[message](rows[20:40]).to_parquet(source / "b.parquet")
    with pytest.raises(cs.CondShapError, match=message):
        explainer.explain_dataset(source, tmp_path / "out", rows_per_part=10)
    kept = cs.open_explanations(tmp_path / "out")
    assert len(kept) in (20, 30)
    assert_same(kept.to_explanation(20), explainer.explain(rows[FEATURES][:20]))
    with pytest.raises(cs.CondShapError, match=message):  # again, and nothing is lost
        explainer.explain_dataset(source, tmp_path / "out", rows_per_part=10)
    (source / "b.parquet").write_bytes(good)
    found = explainer.explain_dataset(source, tmp_path / "out", rows_per_part=10)
    assert_same(found.to_explanation(), explainer.explain(rows[FEATURES]))


def test_a_repair_must_leave_finished_parts_as_they_were(explainer, rows, tmp_path):
    source = write_files(tmp_path / "source", rows, 20, 20, 7)
    new_level(rows[20:40]).to_parquet(source / "b.parquet")
    with pytest.raises(cs.CondShapError, match="unseen"):
        explainer.explain_dataset(source, tmp_path / "out", rows_per_part=10)
    rows[20:40].assign(age=0.0).to_parquet(source / "b.parquet")
    with pytest.raises(cs.CondShapError, match=r"part 2 \(rows 0 to 9 of 'b.parquet'\) has changed"):
        explainer.explain_dataset(source, tmp_path / "out", rows_per_part=10)


def missing_column(path, some):
    some.drop(columns="income").to_parquet(path)


def cut_off(path, some):
    some.to_parquet(path)
    path.write_bytes(path.read_bytes()[:-100])


def forbidden(path, some):
    path.unlink()
    path.symlink_to(path.parent / "nowhere")


UNREADABLE = {
    r"'b.parquet': rows must have the columns .* but lack \['income'\]": missing_column,
    r"'b.parquet' must be readable, but ArrowInvalid": cut_off,
    r"'b.parquet' must be readable, but FileNotFoundError": forbidden,
}


@pytest.mark.parametrize("message", UNREADABLE)
def test_an_unreadable_file_ends_the_run_after_what_comes_before_it(message, explainer, rows, tmp_path):
    source = write_files(tmp_path / "source", rows, 20, 20, 7)
    good = (source / "b.parquet").read_bytes()
    UNREADABLE[message](source / "b.parquet", rows[20:40])
    with pytest.raises(cs.CondShapError, match=message):
        explainer.explain_dataset(source, tmp_path / "out", rows_per_part=10, key="id")
    kept = cs.open_explanations(tmp_path / "out")
    assert not kept.is_complete
    assert_same(kept.to_explanation(), explainer.explain(rows[FEATURES][:20]))
    (source / "b.parquet").unlink(missing_ok=True)
    (source / "b.parquet").write_bytes(good)
    found = explainer.explain_dataset(source, tmp_path / "out", key="id")
    assert_same(found.to_explanation(), explainer.explain(rows[FEATURES]))


@pytest.mark.parametrize("cell", ["x,1,2,low", '"1,1,2', "1,1,2,low,extra"])
def test_a_broken_line_of_a_csv_names_the_file(cell, explainer, rows, tmp_path):
    rows[FEATURES].to_csv(tmp_path / "rows.csv", index=False)
    with (tmp_path / "rows.csv").open("a") as file:
        file.write(f"{cell}\n")
    with pytest.raises(cs.CondShapError, match=r"'rows.csv' must be readable, but ArrowInvalid"):
        explainer.explain_dataset(tmp_path / "rows.csv", tmp_path / "out")


def test_a_full_disk_names_the_part_and_keeps_what_is_finished(explainer, rows, source, tmp_path, monkeypatch):
    write, calls = part_files.write_whole, iter(range(100))

    def full(path, content, what):
        if next(calls) == 2:
            raise StorageError(f"{what} must be saved to a writable path, got '{path}': No space left on device.")
        write(path, content, what)

    monkeypatch.setattr(part_files, "write_whole", full)
    with pytest.raises(cs.CondShapError, match=r"part 2 \(rows 0 to 9 of 'b.parquet'\).*No space left on device"):
        explainer.explain_dataset(source, tmp_path / "out", rows_per_part=10)
    assert len(cs.open_explanations(tmp_path / "out")) == 20
    found = explainer.explain_dataset(source, tmp_path / "out")
    assert_same(found.to_explanation(), explainer.explain(rows[FEATURES]))


@contextmanager
def files_of_at_most(n_bytes):
    """Let the system refuse to make a file longer, as a full disk does."""
    import resource
    import signal

    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_limit_of_the_system_on_file_sizes_is_a_clear_error(explainer, rows, tmp_path):
    rows[FEATURES].to_parquet(tmp_path / "rows.parquet")
    with files_of_at_most(4096), pytest.raises(cs.CondShapError, match=r"part 0 .*File too large"):
        explainer.explain_dataset(tmp_path / "rows.parquet", tmp_path / "out")
    found = explainer.explain_dataset(tmp_path / "rows.parquet", tmp_path / "out")
    assert_same(found.to_explanation(), explainer.explain(rows[FEATURES]))


def test_a_part_without_room_for_its_line_in_the_manifest_is_named_and_explained_again(
    explainer, rows, source, tmp_path
):
    options = {"rows_per_part": 1, "values": "compact"}
    with files_of_at_most(20_000), pytest.raises(cs.CondShapError, match=r"^part \d+ \(rows .*manifest.*Make room"):
        explainer.explain_dataset(source, tmp_path / "out", **options)
    kept = cs.open_explanations(tmp_path / "out")
    assert 5 < len(kept) < 47
    assert_same(kept.to_explanation(), explainer.explain(rows[FEATURES])[: len(kept)])
    found = explainer.explain_dataset(source, tmp_path / "out", **options)
    assert_same(found.to_explanation(), explainer.explain(rows[FEATURES]))


def test_a_model_that_fails_is_named_with_the_part(rows, tmp_path):
    def picky(X):
        if (np.asarray(X["age"]) > 900).any():
            raise RuntimeError("too old")
        return np.asarray(X["age"], dtype=float)

    fitted = cs.Explainer(picky, approach="independence", n_samples=4, progress=False, additive=False).fit(
        make_rows(60)
    )
    bad = rows.copy()
    bad.loc[25, "age"] = 1000.0
    source = write_files(tmp_path / "source", bad, 20, 20, 7)
    with pytest.raises(cs.CondShapError, match=r"part 2 \(rows 0 to 9 of 'b.parquet'\).*too old"):
        fitted.explain_dataset(source, tmp_path / "out", rows_per_part=10)
    assert len(cs.open_explanations(tmp_path / "out")) == 20


SOURCES = {
    "no file at": "nowhere/*.parquet",
    "source must be a Parquet": 7,
    "Write a table in memory to Parquet": pd.DataFrame({"a": [1]}),
}


@pytest.mark.parametrize("message", SOURCES)
def test_what_is_no_source_is_refused(message, explainer, tmp_path):
    with pytest.raises(cs.CondShapError, match=message):
        explainer.explain_dataset(SOURCES[message], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_lazy_frame_of_a_polars_without_batches_is_told_what_to_do(explainer, tmp_path):
    class Old:
        collect_schema = sink_parquet = None

    with pytest.raises(cs.CondShapError, match=r"Update Polars, or write it to Parquet first"):
        explainer.explain_dataset(Old(), tmp_path / "out")


def test_a_folder_of_two_formats_or_around_the_output_is_refused(explainer, rows, source, tmp_path):
    with pytest.raises(cs.CondShapError, match="out must not be inside the source"):
        explainer.explain_dataset(source, source / "out")
    rows.to_csv(source / "rows.csv")
    with pytest.raises(cs.CondShapError, match=r"all of one format, got files of formats \['csv', 'parquet'\]"):
        explainer.explain_dataset(source, tmp_path / "out")


def test_a_source_without_rows_is_refused(explainer, rows, tmp_path):
    rows[:0].to_parquet(tmp_path / "none.parquet")
    with pytest.raises(cs.CondShapError, match="source must have rows"):
        explainer.explain_dataset(tmp_path / "none.parquet", tmp_path / "out")


OPTIONS = {
    "rows_per_part must be an integer of at least 1": {"rows_per_part": 0},
    "values must be one of": {"values": "half"},
    "resume must be one of": {"resume": "no"},
    r"columns and key must name columns of the source, got \['nobody'\]": {"columns": ["nobody"]},
    "key must be the name of a column": {"key": 3},
    "columns must be names of columns": {"columns": [3]},
    "cluster must be a dask.distributed.Client": {"cluster": 2.5},
}


@pytest.mark.parametrize("message", OPTIONS)
def test_what_is_no_option_is_refused(message, explainer, source, tmp_path):
    with pytest.raises(cs.CondShapError, match=message):
        explainer.explain_dataset(source, tmp_path / "out", **OPTIONS[message])


def test_a_column_of_lists_is_named(explainer, rows, tmp_path):
    rows.assign(tags=[["new"]] * len(rows)).to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(cs.CondShapError, match=r"times, got \['tags: list<\w+: \w+>'\]\. Leave out lists"):
        explainer.explain_dataset(tmp_path / "rows.parquet", tmp_path / "out", columns=["branch", "tags"])


def test_an_explainer_must_be_fitted(source, tmp_path):
    unfitted = cs.Explainer(lambda X: X, approach="independence")
    with pytest.raises(cs.CondShapError, match="must be fitted"):
        unfitted.explain_dataset(source, tmp_path / "out")


def test_keys_must_name_every_row_once(explainer, rows, tmp_path):
    twice = rows.assign(id=[*rows["id"][:-1], rows["id"][3]])
    source = write_files(tmp_path / "twice", twice, 20, 27)
    with pytest.raises(cs.CondShapError, match=r"got 1009 in row 3 of 'a.parquet' and in row 26 of 'b.parquet'"):
        explainer.explain_dataset(source, tmp_path / "out", key="id")
    gaps = rows.assign(id=[None, *rows["branch"][1:]])
    source = write_files(tmp_path / "gaps", gaps, 47)
    with pytest.raises(
        cs.CondShapError, match=r"key 'id' must have a value in every row, but is missing in rows \[0\]"
    ):
        explainer.explain_dataset(source, tmp_path / "out2", key="id")


def test_nested_columns_cannot_be_carried_along(explainer, rows, tmp_path):
    rows.assign(pair=[[1, 2]] * 47).to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(cs.CondShapError, match="columns must hold numbers, text, booleans or times"):
        explainer.explain_dataset(tmp_path / "rows.parquet", tmp_path / "out", columns=["pair"])


def test_columns_of_an_array_must_be_as_many_as_in_training(rows, tmp_path):
    fitted = explainer_of_array()
    rows[["age", "income", "code"]].to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(cs.CondShapError, match="rows must have 2 feature columns as in training"):
        fitted.explain_dataset(tmp_path / "rows.parquet", tmp_path / "out")
    found = fitted.explain_dataset(tmp_path / "rows.parquet", tmp_path / "out2", columns="code").to_explanation()
    assert_same(found, fitted.explain(rows[["age", "income"]].to_numpy()))


def explainer_of_array():
    X = make_rows(60)[["age", "income"]].to_numpy()
    return cs.Explainer(lambda x: x[:, 0] * x[:, 1], approach="gaussian", n_samples=4, progress=False).fit(X)
