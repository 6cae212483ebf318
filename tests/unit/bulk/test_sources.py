"""Every kind of source gives the numbers of `explain` for the same rows, and rows that are like those of the training."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import condshap as cs
from tests.unit.bulk.small import FEATURES, assert_same, explainer_of, make_rows, write_files


def as_parquet(rows, folder):
    return write_files(folder / "many", rows, 20, 27)


def as_one_file(rows, folder):
    return str(write_files(folder / "one", rows, 47) / "a.parquet")


def as_glob(rows, folder):
    return str(write_files(folder / "globbed", rows, 20, 20, 7) / "*.parquet")


def as_csv(rows, folder):
    rows.to_csv(folder / "rows.csv", index=False)
    return folder / "rows.csv"


def as_zipped_csv(rows, folder):
    rows.to_csv(folder / "rows.csv.gz", index=False)
    return folder / "rows.csv.gz"


def as_arrow(rows, folder):
    rows.to_feather(folder / "rows.arrow")
    return folder / "rows.arrow"


def as_stream(rows, folder):
    table = pa.Table.from_pandas(rows, preserve_index=False)
    with pa.ipc.new_stream(folder / "rows.arrows", table.schema) as stream:
        stream.write_table(table, max_chunksize=9)
    return folder / "rows.arrows"


def as_dataset(rows, folder):
    return ds.dataset(as_parquet(rows, folder))


def as_memory(rows, folder):
    return ds.dataset(pa.Table.from_pandas(rows, preserve_index=False))


def as_filtered(rows, folder):
    more = pd.concat([rows, rows.assign(id=-1)])
    return ds.dataset(as_parquet(more, folder)).filter(ds.field("id") >= 0)


def as_lazy(rows, folder):
    return pl.scan_parquet(as_parquet(rows, folder) / "*.parquet").filter(pl.col("id") > 0)


SOURCES = [
    as_parquet, as_one_file, as_glob, as_csv, as_zipped_csv, as_arrow, as_stream, as_dataset, as_memory, as_filtered,
    as_lazy,
]  # fmt: skip


@pytest.mark.parametrize("make", SOURCES, ids=lambda make: make.__name__)
def test_every_source_gives_the_numbers_of_explain(make, explainer, rows, tmp_path):
    found = explainer.explain_dataset(make(rows, tmp_path), tmp_path / "out", rows_per_part=9)
    expected = explainer.explain(rows[FEATURES])
    assert found.is_complete
    assert len(found) == 47
    assert_same(found.to_explanation(), expected)


@pytest.mark.parametrize("size", [1, 20, 1000])
def test_parts_do_not_change_a_bit(size, explainer, rows, source, tmp_path):
    found = explainer.explain_dataset(source, tmp_path / "out", rows_per_part=size)
    assert_same(found.to_explanation(), explainer.explain(rows[FEATURES]))


def test_parts_have_at_most_so_many_rows_and_do_not_cross_files(explainer, source, tmp_path):
    found = explainer.explain_dataset(source, tmp_path / "out", rows_per_part=15)
    assert [(done.part.piece, done.part.start, done.part.n_rows) for done in found.parts] == [
        ("'a.parquet'", 0, 15), ("'a.parquet'", 15, 5), ("'b.parquet'", 0, 15), ("'b.parquet'", 15, 5),
        ("'c.parquet'", 0, 7),
    ]  # fmt: skip


def numbers_only(X):
    return np.asarray(X)[:, 0] * np.asarray(X)[:, 1] + np.asarray(X)[:, 2]


@pytest.mark.parametrize("backend", ["numpy", "polars", "pyarrow", "pandas"])
def test_rows_are_of_the_library_of_the_training_rows(backend, rows, source, tmp_path):
    columns = ["age", "income", "code"]
    train = make_rows(120)[columns].astype({"code": float})
    as_native = {
        "numpy": lambda X: X.to_numpy(),
        "polars": pl.from_pandas,
        "pyarrow": lambda X: pa.Table.from_pandas(X, preserve_index=False),
        "pandas": lambda X: X,
    }[backend]
    fitted = cs.Explainer(numbers_only, approach="gaussian", n_samples=8, progress=False).fit(as_native(train))
    if backend == "numpy":  # names of an array's columns are made up, so columns go by position
        source = write_files(tmp_path / "plain", rows[columns], 47)
    found = fitted.explain_dataset(source, tmp_path / "out", rows_per_part=10).to_explanation()
    expected = fitted.explain(as_native(rows[columns].astype({"code": float})))
    assert type(found.data) is type(expected.data)
    assert_same(found, expected)


def test_text_codes_words_and_gaps_of_a_csv_are_read_as_the_training_rows_have_them(tmp_path):
    train = pd.DataFrame({"zip": ["01", "1", "NA", "02"] * 30, "size": np.arange(120) / 7, "old": [True, False] * 60})

    def model(X):
        return (X["zip"] == "01").to_numpy() + X["size"].to_numpy(dtype=float) * X["old"].to_numpy(dtype=float)

    fitted = cs.Explainer(model, approach="independence", n_samples=8, progress=False).fit(train)
    text = "old,zip,size\nTrue,01,1.5\nFalse,1,NA\nTRUE,NA,3\n"
    (tmp_path / "rows.csv").write_text(text.replace("NA\nTRUE", "2\nTRUE"))
    found = fitted.explain_dataset(tmp_path / "rows.csv", tmp_path / "out").to_explanation()
    rows = pd.DataFrame({"zip": ["01", "1", "NA"], "size": [1.5, 2.0, 3.0], "old": [True, False, True]})
    assert_same(found, fitted.explain(rows))
    assert found.data["zip"].tolist() == ["01", "1", "NA"]


def test_gaps_stay_gaps(tmp_path):
    X = make_rows(120)
    X.loc[::7, "age"] = np.nan
    X.loc[::11, "class"] = np.nan

    def model(X):
        is_high = (X["class"].astype(object) == "high").to_numpy()
        return X["income"].to_numpy() * is_high + X["age"].isna().to_numpy()

    fitted = cs.Explainer(model, approach="independence", n_samples=8, progress=False).fit(X)
    for source in (X[:30].to_parquet, X[:30].to_csv):
        name = tmp_path / ("rows" + (".csv" if "csv" in source.__name__ else ".parquet"))
        source(name, index=False)
        found = fitted.explain_dataset(name, tmp_path / f"out{name.suffix}", rows_per_part=7).to_explanation()
        assert_same(found, fitted.explain(X[:30]))


def test_whole_numbers_with_gaps_keep_their_digits(tmp_path):
    X = pd.DataFrame({"a": np.arange(120.0), "b": np.arange(120.0)[::-1]})
    fitted = cs.Explainer(lambda X: X["a"].to_numpy(), approach="independence", n_samples=4, progress=False).fit(X)
    table = pa.table({"a": pa.array([2**53 + 1, None]), "b": pa.array([1, 2])})
    with pytest.raises(cs.CondShapError, match=r"column 'a' must hold integers below 2\*\*53"):
        fitted.explain_dataset(ds.dataset(table), tmp_path / "out")
    (tmp_path / "rows.csv").write_text("a,b\n9007199254740993,1\n")
    with pytest.raises(cs.CondShapError, match=r"rows.csv.*column 'a' must hold integers below 2\*\*53"):
        fitted.explain_dataset(tmp_path / "rows.csv", tmp_path / "out2")


def test_a_column_that_the_path_states_can_be_carried_along(explainer, rows, tmp_path):
    for month, some in (("2024-01", rows[:20]), ("2024-02", rows[20:])):
        folder = tmp_path / "source" / f"month={month}"
        folder.mkdir(parents=True)
        some.to_parquet(folder / "rows.parquet")
    found = explainer.explain_dataset(tmp_path / "source", tmp_path / "out", columns="month")
    assert found.to_frame()["month"].tolist() == ["2024-01"] * 20 + ["2024-02"] * 27


def test_groups_outputs_auto_and_causal_orders_give_the_numbers_of_explain(rows, source, tmp_path):
    def two(X):
        high = (np.asarray(X["class"]) == "high").astype(float)
        return np.column_stack([X["age"] * high, X["income"] + X["code"] * X["age"]])

    ways = {
        "groups": {"groups": {"money": ["income", "class"], "rest": ["age", "code"]}},
        "auto": {"n_coalitions": "auto", "tolerance": 0.5, "n_samples": 64},
        "order": {"causal_ordering": [["age"], ["income", "code"], ["class"]], "confounding": False},
    }
    for name, options in ways.items():
        fitted = cs.Explainer(two, **{"approach": "independence", "n_samples": 8, "progress": False} | options).fit(
            make_rows(120)
        )
        for values in ("full", "compact"):
            found = fitted.explain_dataset(source, tmp_path / f"{name}-{values}", rows_per_part=11, values=values)
            joined, expected = found.to_explanation(), fitted.explain(rows[FEATURES])
            if name == "auto":  # parts need different coalitions
                joined = joined if joined.value_table is None else joined.without_table(joined.data)
            assert_same(joined, expected)
            assert found.summary().shape[0] == len(expected.player_names) * 2


def test_a_seed_that_was_set_after_the_fit_counts(explainer, source, rows, tmp_path):
    other = explainer_of(make_rows(120))
    other.seed = 5
    found = other.explain_dataset(source, tmp_path / "out").to_explanation()
    assert_same(found, other.explain(rows[FEATURES]))
    assert not np.array_equal(found.values, explainer.explain(rows[FEATURES]).values)


def test_a_log_says_how_many_rows_were_read_and_explained(source, tmp_path, capsys):
    fitted = explainer_of(make_rows(120), progress=True)
    capsys.readouterr()
    fitted.explain_dataset(source, tmp_path / "out", rows_per_part=10)
    assert re.fullmatch(r"reading: 47 rows, .*\nexplaining: 47 of 47 rows, .*\n", capsys.readouterr().err)
