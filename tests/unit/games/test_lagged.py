"""Lagged tables: what stands in which column, for every kind of table, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import condshap as cs
from condshap.exceptions import CondShapWarning, OptionError, SchemaError

DAYS = pd.date_range("2024-01-01", periods=8, name="day")
Y = pd.Series(np.arange(8.0), index=DAYS, name="sales")
OTHER = pd.DataFrame(
    {"temp": 10 * np.arange(10.0), "kind": pd.Categorical(list("aabbccaabb"), categories=list("cba"))},
    index=pd.date_range("2024-01-01", periods=10, name="day"),
)


def test_columns_are_lags_then_steps_ahead_variable_by_variable():
    X, y = cs.lagged_table(Y, lags=2, horizon=2, exogenous=OTHER, exogenous_lags=1, known_ahead=["kind"])
    assert list(X) == ["sales lag 1", "sales lag 2", "temp lag 1", "kind lag 1", "kind t+1", "kind t+2"]
    assert list(y) == ["t+1", "t+2"]
    assert X.index.equals(y.index)
    assert X.index.equals(DAYS[1:6])
    at = X.loc["2024-01-04"]  # position 3
    assert at.tolist() == [3.0, 2.0, 30.0, "b", "c", "c"]
    assert y.loc["2024-01-04"].tolist() == [4.0, 5.0]


def test_dtypes_and_levels_are_those_of_the_variables():
    X, _ = cs.lagged_table(Y.astype(int), lags=2, horizon=1, exogenous=OTHER, exogenous_lags=2)
    assert X["sales lag 2"].dtype == int
    assert list(X["kind lag 2"].cat.categories) == list("cba")


def test_without_lags_exogenous_variables_are_known_ahead_and_with_lags_they_are_not():
    assert list(cs.lagged_table(Y, lags=1, horizon=2, exogenous=OTHER[["temp"]])[0]) == [
        "sales lag 1", "temp t+1", "temp t+2",
    ]  # fmt: skip
    assert list(cs.lagged_table(Y, lags=1, horizon=2, exogenous=OTHER[["temp"]], exogenous_lags=1)[0]) == [
        "sales lag 1", "temp lag 1",
    ]  # fmt: skip
    wide = cs.lagged_table(Y, lags=1, horizon=1, exogenous=OTHER[["temp"]], exogenous_lags=1, known_ahead=True)[0]
    assert list(wide) == ["sales lag 1", "temp lag 1", "temp t+1"]


@pytest.mark.parametrize(
    "series",
    [Y, Y.to_frame(), Y.to_numpy(), Y.to_numpy()[:, None], list(Y), pl.Series("sales", Y.to_numpy()),
     pl.DataFrame({"sales": Y.to_numpy()}), Y.reset_index(drop=True), Y.set_axis(DAYS.to_period("D")),
     Y.set_axis(DAYS.strftime("%Y-%m-%d")), Y.set_axis(range(1990, 1998)), pd.Series(Y.to_numpy())],
    ids=lambda one: f"{type(one).__module__.split('.')[0]} {type(one).__name__}",
)  # fmt: skip
def test_all_kinds_of_tables_give_the_same_numbers(series):
    X, y = cs.lagged_table(series, lags=3, horizon=2)
    np.testing.assert_array_equal(X.to_numpy(), [[t, t - 1, t - 2] for t in range(2, 6)])
    np.testing.assert_array_equal(y.to_numpy(), [[t + 1, t + 2] for t in range(2, 6)])
    assert X.columns[0] in {"sales lag 1", "y lag 1", "y0 lag 1"}


def test_several_series_are_lagged_and_the_first_is_forecast():
    X, y = cs.lagged_table(np.column_stack([np.arange(6.0), 100 + np.arange(6.0)]), lags=2, horizon=1)
    assert list(X) == ["y0 lag 1", "y0 lag 2", "y1 lag 1", "y1 lag 2"]
    assert X.iloc[0].tolist() == [1.0, 0.0, 101.0, 100.0]
    assert y["t+1"].tolist() == [2.0, 3.0, 4.0, 5.0]


def test_gaps_stay_among_lags_and_go_among_targets():
    gappy = Y.copy()
    gappy.iloc[3] = np.nan
    X, y = cs.lagged_table(gappy, lags=2, horizon=1)
    assert X.index.tolist() == [DAYS[i] for i in (1, 3, 4, 5, 6)]
    assert X.isna().sum().sum() == 2
    assert y.notna().all().all()


def test_values_ahead_may_end_with_the_series():
    X, _ = cs.lagged_table(Y, lags=1, horizon=3, exogenous=OTHER[:8])
    assert X.index[-1] == DAYS[4]


@pytest.mark.parametrize(
    ("change", "kind", "text"),
    [
        ({"lags": 0}, OptionError, "lags must be an integer of at least 1, got 0"),
        ({"lags": 1.5}, OptionError, "lags must be an integer"),
        ({"horizon": 0}, OptionError, "horizon must be an integer of at least 1"),
        ({"exogenous_lags": -1}, OptionError, "exogenous_lags must be an integer of at least 0"),
        ({"exogenous_lags": 1, "exogenous": None}, OptionError, "need exogenous variables"),
        ({"known_ahead": ["rain"]}, OptionError, r"among \['temp', 'kind'\], got \['rain'\]"),
        ({"known_ahead": 3}, OptionError, r"got \[3\]"),
        ({"known_ahead": False}, OptionError, r"neither for \['temp', 'kind'\]"),
        ({"known_ahead": ["temp"]}, OptionError, r"neither for \['kind'\]"),
        ({"lags": 8}, SchemaError, "at least one time with 8 values up to it and 2 known values"),
        ({"series": Y[::-1]}, SchemaError, r"in chronological order, got '2024-01-07.*' after '2024-01-08"),
        ({"series": pd.concat([Y[:2], Y[1:]])}, SchemaError, r"one row per time, got several for \['2024-01-02"),
        ({"series": Y.set_axis([*DAYS[:-1], pd.NaT])}, SchemaError, "missing ones in its index"),
        ({"series": Y.set_axis(list("abcdefgh")[::-1])}, SchemaError, r"reset_index\(drop=True\)"),
        ({"series": Y.set_axis([0, "a", 1, "b", 2, "c", 3, "d"])}, SchemaError, "in chronological order"),
        ({"series": Y.astype(str)}, SchemaError, "series must hold numbers, got column 'sales'"),
        ({"series": Y.to_frame().set_index([DAYS, DAYS])}, SchemaError, "one level of times, got 2"),
        ({"series": np.zeros((2, 2, 2))}, SchemaError, r"2 dimensions|shape"),
        ({"series": Y[:0]}, SchemaError, "must have rows and columns"),
        ({"series": 3}, SchemaError, "got int"),
        ({"exogenous": OTHER.rename(columns={"temp": "sales"})}, SchemaError, r"different names, got \['sales'\]"),
        ({"exogenous": OTHER[:7]}, SchemaError, "each of the 8 times of the series, got 7"),
        ({"exogenous": OTHER[1:]}, SchemaError, "row 0 is '2024-01-02"),
        ({"exogenous": OTHER[::-1]}, SchemaError, "exogenous must be in chronological order"),
        ({"series": Y.reset_index(drop=True), "exogenous": OTHER.set_axis(range(1, 11))}, SchemaError, "row 0 is '1'"),
    ],
    ids=lambda one: next(iter(one)) if isinstance(one, dict) else None,
)  # fmt: skip
def test_bad_input_is_refused(change, kind, text):
    options = {"series": Y, "lags": 2, "horizon": 2, "exogenous": OTHER} | change
    with pytest.raises(kind, match=text):
        cs.lagged_table(options.pop("series"), **options)


@pytest.mark.parametrize(
    "index",
    [DAYS.delete(4), DAYS.to_period("D").delete(4), pd.Index([1990, 1991, 1992, 1995, 1996, 1997, 1998])],
    ids=lambda one: type(one).__name__,
)
def test_times_that_are_missing_are_warned_of(index):
    with pytest.warns(CondShapWarning, match=r"1 of 6 steps are much wider.*Reindex the series"):
        cs.lagged_table(Y[:7].set_axis(index), lags=2, horizon=1)


@pytest.mark.parametrize(
    "index",
    [pd.bdate_range("2024-01-01", periods=8), pd.date_range("2024-01-31", periods=8, freq="ME"),
     pd.date_range("2020-01-31", periods=8, freq="YE"), pd.Index(np.arange(8) + 0.1 * np.sin(np.arange(8))),
     pd.date_range("2024-01-01", periods=8) + pd.to_timedelta(np.arange(8) ** 2, unit="min"),
     pd.RangeIndex(5, 85, 10), pd.timedelta_range("1h", periods=8, freq="h")],
    ids=lambda one: f"{type(one).__name__} {one[0]}",
)  # fmt: skip
def test_even_times_are_not_warned_of(index, recwarn):
    cs.lagged_table(Y.set_axis(index), lags=2, horizon=1)
    assert len(recwarn) == 0
