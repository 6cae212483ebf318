"""Whatever comes in, what goes out is an error of ours, or a right answer."""

from __future__ import annotations

import datetime
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import condshap as cs
from condshap.exceptions import CoalitionError, ModelError, SchemaError

RNG = np.random.default_rng(5)
N = 60
NUMBER = RNG.normal(size=N)
WORDS = ["u", "v", "w"] * (N // 3)


def model(X):
    return X["a"].to_numpy() if not isinstance(X, np.ndarray) else np.asarray(X)[:, 0]


def head(table, n=3):
    return table.slice(0, n) if isinstance(table, pa.Table) else table[:n]


def explain(table, f=model, approach="independence", **options):
    return cs.explain(f, table, head(table), approach=approach, **options)


def dictionary(values, codes=(0, 1, 2)):
    return pa.DictionaryArray.from_arrays(pa.array(list(codes) * (N // 3)), values)


# --- tables of PyArrow ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "levels", "first"),
    [
        (pa.array(WORDS).cast(pa.string_view()), ("u", "v", "w"), ["u", "v", "w"]),
        (dictionary(pa.array(["u", "v", "u"])), ("u", "v"), ["u", "v", "u"]),
        (dictionary(pa.array(["u", None, "w"])), ("u", "w"), ["u", None, "w"]),
        (dictionary(pa.array(["w", "u", None]).cast(pa.string_view())), ("w", "u"), ["w", "u", None]),
        (dictionary(pa.array([5, None, 5])), (5,), [5, None, 5]),
    ],
)
def test_views_and_dictionaries_with_repeated_or_missing_values_are_read(column, levels, first):
    table = pa.table({"a": NUMBER, "s": column})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one level only is constant, but for gaps
        schema = cs.FeatureSchema.learn(table)
    assert schema.features[1].levels == levels
    written = schema.decode(schema.encode(head(table)))
    assert written["s"].type == table["s"].type
    assert written["s"].to_pylist() == first
    assert len(explain(table)) == 3


def test_chunks_with_dictionaries_of_their_own_are_one_column():
    one, two = dictionary(pa.array(["u", "v", "u"])), dictionary(pa.array(["w", "u", None]))
    table = pa.table({"a": [*NUMBER, *NUMBER], "s": pa.chunked_array([one, two])})
    schema = cs.FeatureSchema.learn(table)
    assert schema.features[1].levels == ("u", "v", "w")
    assert schema.decode(schema.encode(table))["s"].to_pylist() == table["s"].to_pylist()


ENCODED = pa.RunEndEncodedArray.from_arrays(pa.array([30, N], pa.int32()), pa.array(["u", "v"]))


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"a": NUMBER, "s": ENCODED}),
        pa.table({"a": NUMBER, "s": [[1]] * N}),
        pa.table({"a": NUMBER, "s": [Decimal(1)] * N}),
        pl.DataFrame({"a": NUMBER, "s": pl.Series([1] * N, dtype=pl.Int128)}),
        pl.DataFrame({"a": NUMBER, "s": pl.Series([object()] * N, dtype=pl.Object)}),
        pd.DataFrame({"a": NUMBER, "s": pd.array(WORDS, dtype=pd.ArrowDtype(pa.string_view()))}),
        pd.DataFrame({"a": NUMBER, "s": pd.array(WORDS, dtype=pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string())))}),
        pd.DataFrame({"a": NUMBER, "s": pd.arrays.SparseArray(np.array(WORDS, dtype=object))}),
        pd.DataFrame({"a": NUMBER, "s": [datetime.date(2020, 1, 1)] * N}),
        np.zeros((5, 2), dtype=[("a", "f8")]),
        np.zeros((5, 2), dtype="V4"),
    ],
    ids=lambda table: str(getattr(table, "schema", getattr(table, "dtypes", "")))[-40:],
)
def test_what_cannot_be_read_is_refused_in_our_words(table):
    with pytest.raises(SchemaError, match=r"must (hold|have|not be)"):
        cs.FeatureSchema.learn(table)


# --- objects, matrices, long doubles ----------------------------------------------------------------------------------


@pytest.mark.parametrize("gap", [pd.NaT, None, np.nan, pd.NA, np.datetime64("NaT")])
@pytest.mark.parametrize("values", [["u", "v"], [1, 2], [1.5, 2.0], [True, False]])
def test_column_of_objects_may_have_any_gap(gap, values):
    table = pd.DataFrame({"a": NUMBER, "s": pd.Series([gap, *values] * (N // 3), dtype=object)})
    rows = cs.FeatureSchema.learn(table).encode(table)
    np.testing.assert_array_equal(np.isnan(rows[:, 1]), np.arange(N) % 3 == 0)


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_matrix_is_an_array():
    X = RNG.normal(size=(N, 3))
    for approach in ("gaussian", "independence", "ctree"):
        plain, odd = (explain(table, approach=approach) for table in (X, np.matrix(X)))
        np.testing.assert_array_equal(odd.values, plain.values)
        assert type(odd.data) is np.ndarray
    np.testing.assert_array_equal(explain(X, lambda rows: np.matrix(rows)[:, 0]).values, explain(X).values)


def test_long_doubles_are_refused_because_digits_would_be_lost():
    X = RNG.normal(size=(N, 2)).astype(np.longdouble)
    for table in (X, pd.DataFrame(X, columns=["a", "b"])):
        with pytest.raises(SchemaError, match="must hold numbers of at most 64 bits, got dtype float128"):
            explain(table)


# --- text that no file can hold ---------------------------------------------------------------------------------------


def test_lone_surrogates_are_refused():
    levels = pd.Series(["u", "\ud800", "w"] * (N // 3), dtype=object)
    with pytest.raises(
        SchemaError, match=r"levels of column 's' must be Unicode .* got \['\\ud800'\] with lone surrogates"
    ):
        explain(pd.DataFrame({"a": NUMBER, "s": levels}))
    with pytest.raises(SchemaError, match="column names must be Unicode"):
        explain(pd.DataFrame(RNG.normal(size=(N, 2)), columns=pd.Index(["a", "\udc00"], dtype=object)))
    with pytest.raises((SchemaError, CoalitionError), match="names of groups must be Unicode"):
        explain(pd.DataFrame({"a": NUMBER, "b": NUMBER}), groups={"\ud800": ["a"], "g": ["b"]})


@pytest.mark.parametrize("dtype", [object, "U3"])
def test_lone_surrogates_in_arrays_are_refused(dtype):
    table = np.array([["u", "\ud800"], ["v", "u"]] * 30, dtype=dtype)
    with pytest.raises(SchemaError, match="levels of an array must be Unicode"):
        explain(table, lambda x: np.ones(len(x)))


@pytest.mark.parametrize("name", ["", " ", "0"])
def test_models_get_the_names_of_columns_as_they_are(name):
    table = pl.DataFrame({name: NUMBER, "s": WORDS})
    schema = cs.FeatureSchema.learn(table)
    assert schema.decode(schema.encode(table)).columns == [name, "s"]
    np.testing.assert_array_equal(explain(table, lambda rows: rows[name].to_numpy()).predictions, NUMBER[:3])


# --- numbers whose squares overflow -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "approach", ["gaussian", "copula", "empirical", "independence", "ctree", "regression_separate"]
)
@pytest.mark.parametrize("size", [1e60, 1e69])
def test_large_numbers_give_finite_errors(approach, size):
    X = RNG.normal(size=(N, 3))
    far = np.where(np.arange(3) == 0, size, X[:2])
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for f, train, rows in (
            (lambda x: x[:, 0] + np.tanh(x[:, 1]), X, far),
            (lambda x: np.abs(x[:, 0]) * size, X, X[:2]),
            (lambda x: np.tanh(x[:, 0]), X * size, X[:2] * size),
        ):
            found = cs.explain(f, train, rows, approach=approach, check_draws=False)
            for numbers in (found.values, found.std_errors, float(found.msev), found.msev.total_std_error()):
                assert np.isfinite(numbers).all()


@pytest.mark.parametrize("size", [1e100, 1e154, 1e200, 1e300])
def test_numbers_whose_powers_overflow_are_refused(size):
    X = RNG.normal(size=(N, 3))
    with pytest.raises(ModelError, match=r"must return numbers of at most 1e\+70 in absolute value"):
        explain(X, lambda x: np.abs(x[:, 0]) * size)
    with pytest.raises(SchemaError, match=r"column 'x0' must hold numbers of at most 1e\+70 in absolute value"):
        explain(X * size, lambda x: np.tanh(x[:, 0]))
    with pytest.raises(SchemaError, match=r"column 'x1' must hold numbers of at most 1e\+70 .* in rows \[0\]"):
        cs.explain(lambda x: x[:, 0], X, np.array([[1.0, size, 1.0]]), approach="gaussian")
