"""Explanations come back from their file as they went in, or not at all."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import condshap as cs
from condshap.exceptions import StorageError
from condshap.storage.explanations import parquet_bytes
from condshap.storage.tables import restore_table, store_table

RNG = np.random.default_rng(3)
N = 40
MIXED = pd.DataFrame(
    {
        "x": RNG.normal(size=N),
        "small": RNG.normal(size=N).astype("float32"),
        "n": RNG.integers(0, 5, N).astype("int16"),
        "gaps": pd.array([None if i % 7 == 3 else i % 4 for i in range(N)], dtype="Int64"),
        "c": pd.Categorical(RNG.choice(["u", "v", "w"], N), categories=["w", "never", "v", "u"], ordered=True),
        "s": RNG.choice(["p", "q"], N),
        "b": RNG.random(N) < 0.5,
    }
)


def f(X):
    return np.asarray(X["x"]) + 0.0


def f2(X):
    return np.column_stack([np.asarray(X["x"]), np.asarray(X["n"])])


def same(a, b):
    for name in ("values", "base_values", "predictions", "std_errors"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    np.testing.assert_array_equal(a.value_table.coalitions, b.value_table.coalitions)
    np.testing.assert_array_equal(a.value_table.values, b.value_table.values)
    np.testing.assert_array_equal(a.value_table.std_errors, b.value_table.std_errors)
    assert a.value_table.n_evaluations == b.value_table.n_evaluations
    for name in ("feature_names", "player_names", "output_names", "membership", "provenance"):
        assert getattr(a, name) == getattr(b, name), name
    same_table(a.data, b.data)


def same_table(a, b):
    assert type(a) is type(b)
    if isinstance(a, pd.DataFrame):
        pd.testing.assert_frame_equal(a, b)
    elif isinstance(a, pl.DataFrame):
        assert a.schema == b.schema
        assert a.equals(b)
    elif isinstance(a, pa.Table):
        assert a.schema.equals(b.schema, check_metadata=True)
        assert a.equals(b)
    else:
        assert a.dtype == b.dtype
        assert repr(a.tolist()) == repr(b.tolist())


def mixed_tables():
    polars = pl.from_pandas(MIXED.assign(c=MIXED["c"].astype(str)))
    polars = polars.with_columns(pl.col("c").cast(pl.Enum(["w", "never", "v", "u"])), pl.col("s").cast(pl.Categorical))
    return {"pandas": MIXED, "polars": polars, "pyarrow": pa.Table.from_pandas(MIXED)}


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("model", [f, f2])
@pytest.mark.parametrize("groups", [None, {"numbers": ["x", "small", "n", "gaps"], "labels": ["c", "s", "b"]}])
def test_explanation_comes_back_from_its_file(tmp_path, backend, model, groups):
    X = mixed_tables()[backend]
    explanation = cs.explain(model, X, X[:4], approach="independence", groups=groups, n_samples=8)
    explanation.save(tmp_path / "e.parquet")
    same(cs.load_explanation(tmp_path / "e.parquet"), explanation)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int8"])
def test_explanation_of_an_array_comes_back(tmp_path, dtype):
    X = RNG.integers(0, 100, size=(30, 3)).astype(dtype)
    explanation = cs.explain(lambda A: A.sum(axis=1), X, X[:4], approach="gaussian", n_samples=8)
    explanation.save(str(tmp_path / "e.parquet"))
    same(cs.load_explanation(str(tmp_path / "e.parquet")), explanation)


TABLES = {
    "objects": pd.DataFrame({"a": pd.Series(["u", None], dtype=object), "b": pd.Series([np.nan, "v"], dtype=object)}),
    "object numbers": pd.DataFrame({"a": pd.Series([1, None], dtype=object), "b": pd.Series([0.5, 2], dtype=object)}),
    "nullable": pd.DataFrame(
        {"a": pd.array([True, None]), "b": pd.array(["u", None], "string"), "c": pd.array([0.5, None])}
    ),
    "arrow dtypes": pd.DataFrame(
        {"a": pd.array([1, None], "int64[pyarrow]"), "b": pd.array([0.5, None], "double[pyarrow]")}
    ),
    "categories": pd.DataFrame(
        {"a": pd.Categorical([3, None], [3, 1]), "b": pd.Categorical([True, False], [True, False])}
    ),
    "integer names": pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], columns=[7, 3]),
    "default names": pd.DataFrame([[1.0, 2.0], [3.0, 4.0]]),
    "two-level names": pd.DataFrame(
        [[1.0, 2.0]], columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2)], names=["p", None])
    ),
    "named index": pd.DataFrame({"a": [1.0, 2.0]}, index=pd.Index(["r", "s"], name="who")),
    "dated index": pd.DataFrame({"a": [1.0, 2.0]}, index=pd.DatetimeIndex(["2020-01-01", "2021-02-03"], tz="UTC")),
    "two-level index": pd.DataFrame(
        {"a": [1.0, 2.0]}, index=pd.MultiIndex.from_tuples([("u", 1), ("v", 2)], names=["k", "l"])
    ),
    "part of a range": pd.DataFrame({"a": [1.0, 2.0, 3.0]}).iloc[1:],
    "name like an index": pd.DataFrame({"index/0": [1.0, 2.0], "index/0_": [3.0, 4.0]}, index=[5, 9]),
    "sparse": pd.DataFrame({"a": pd.Series([0.0, 1.5], dtype=pd.SparseDtype(float))}),
    "empty": pd.DataFrame({"a": [1.0], "c": pd.Categorical(["u"])}).iloc[:0],
    "polars": pl.DataFrame(
        {"a": [1.5, None], "b": [True, None], "c": pl.Series([1, None], dtype=pl.Int8), "d": ["u", None]}
    ),
    "polars NaN": pl.DataFrame({"a": [1.5, np.nan, None]}),
    "arrow": pa.table({"a": pa.array(["u", None], pa.large_string()), "b": pa.array([1, None], pa.uint8())}),
    "arrow labels": pa.table(
        {"a": pa.DictionaryArray.from_arrays(pa.array([1, None], pa.int8()), [30, 10, 20], ordered=True)}
    ),
    "array of objects": np.array([["u", 1, 0.5, True], [None, 2, np.nan, False]], dtype=object),
    "array of text": np.array([["u", "vv"], ["www", "x"]]),
    "array of booleans": np.array([[True, False], [False, False]]),
}


@pytest.mark.parametrize("name", TABLES)
def test_table_comes_back_through_parquet_exactly(tmp_path, name):
    table = TABLES[name]
    stored = store_table(table)
    pq.write_table(pa.table(stored.columns), tmp_path / "t.parquet")
    read = pq.read_table(tmp_path / "t.parquet")
    columns = {key: read.column(key) for key in read.column_names}
    same_table(restore_table(type(stored)(columns, json.loads(json.dumps(stored.about)))), table)


def test_levels_that_json_cannot_hold_are_refused_with_advice():
    with pytest.raises(
        StorageError, match=r"levels of column 'c' must be text, numbers or booleans.*Interval.*rename_cat"
    ):
        store_table(pd.DataFrame({"c": pd.cut([0.5, 1.5], [0, 1, 2])}))


def test_all_coalitions_of_ten_players_come_back(tmp_path):
    X = RNG.normal(size=(20, 10))
    explanation = cs.explain(lambda A: A.sum(axis=1), X, X[:2], approach="independence", n_samples=2)
    assert explanation.value_table.coalitions.shape == (1024, 10)
    explanation.save(tmp_path / "e.parquet")
    same(cs.load_explanation(tmp_path / "e.parquet"), explanation)


def test_sampled_coalitions_of_many_players_and_a_single_player_come_back(tmp_path):
    X = RNG.normal(size=(40, 17))
    for columns, n_coalitions in ((17, 60), (1, None)):
        part = X[:, :columns]
        explanation = cs.explain(
            lambda A: A.sum(axis=1), part, part[:2], approach="independence", n_samples=2, n_coalitions=n_coalitions
        )
        explanation.save(tmp_path / "e.parquet")
        same(cs.load_explanation(tmp_path / "e.parquet"), explanation)


@pytest.fixture
def saved(tmp_path):
    explanation = cs.explain(f, MIXED, MIXED[:4], approach="independence", n_samples=4, n_coalitions=9)
    path = tmp_path / "explanation.parquet"
    explanation.save(path)
    return path


def test_file_is_plain_parquet_that_anyone_can_read(saved):
    frame = pd.read_parquet(saved)
    assert frame["data/c"].tolist() == MIXED["c"].tolist()[:4]
    assert len(frame["shapley/0"].iloc[0]) == 1


def test_loading_needs_no_pickle(saved, monkeypatch):
    assert b"sklearn" not in saved.read_bytes()

    def refuse(*_args, **_options):
        raise AssertionError("pickle was used")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    assert len(cs.load_explanation(saved)) == 4


@pytest.mark.parametrize("share", [0.0, 0.3, 0.95])
def test_truncated_file_is_refused(saved, share):
    content = saved.read_bytes()
    saved.write_bytes(content[: int(share * len(content))])
    with pytest.raises(StorageError, match=r"explanation.parquet' must be a complete Parquet file, but cannot be read"):
        cs.load_explanation(saved)


def test_missing_file_and_directory_are_refused(tmp_path, saved):
    with pytest.raises(StorageError, match=r"must be an existing file, got '.*nowhere.parquet'"):
        cs.load_explanation(tmp_path / "nowhere.parquet")
    explanation = cs.load_explanation(saved)
    with pytest.raises(StorageError, match="must be saved to a writable path, got"):
        explanation.save(tmp_path / "no" / "such" / "folder.parquet")


def test_foreign_parquet_is_refused(tmp_path):
    MIXED.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(StorageError, match=r"must be an explanation saved by condshap, but is some other Parquet file"):
        cs.load_explanation(tmp_path / "rows.parquet")


def change(path, alter):
    table = pq.read_table(path)
    about = json.loads(table.schema.metadata[b"condshap"])
    altered = alter(table, about)
    path.write_bytes(parquet_bytes(altered, json.dumps(about)))  # sealed, as if nothing were wrong


def test_file_of_another_format_version_is_refused_with_its_writer(saved):
    def alter(table, about):
        about["format_version"] = 99
        about["written_by"] = "7.1"
        return table

    change(saved, alter)
    with pytest.raises(StorageError, match=r"must have format version 4, got 99, written by condshap 7.1"):
        cs.load_explanation(saved)


def test_file_that_tells_nothing_but_its_version_is_refused(saved):
    def alter(table, about):
        about.clear()
        about["format_version"] = 5
        return table

    change(saved, alter)
    with pytest.raises(StorageError, match="must have format version 4, got 5, written by condshap of unknown version"):
        cs.load_explanation(saved)


@pytest.mark.parametrize(
    "alter",
    [
        lambda table, about: table.drop_columns(["shapley/1"]),
        lambda table, about: table.drop_columns(["data/c"]),
        lambda table, about: about.pop("names") and table,
        lambda table, about: (about["provenance"].pop("seed") and table) or table,
        lambda table, about: about.update(coalitions="AAAA") or table,
        lambda table, about: about["data"].update(columns=3) or table,
    ],
    ids=["a player", "a column", "names", "provenance", "coalitions", "dtypes"],
)
def test_file_with_a_part_missing_or_damaged_is_refused(saved, alter):
    change(saved, alter)
    with pytest.raises(StorageError, match="part of it is missing or damaged"):
        cs.load_explanation(saved)


def test_damaged_metadata_are_refused(saved):
    table = pq.read_table(saved)
    pq.write_table(table.replace_schema_metadata({b"condshap": b"{not json"}), saved)
    with pytest.raises(StorageError, match="part of it is missing or damaged"):
        cs.load_explanation(saved)
