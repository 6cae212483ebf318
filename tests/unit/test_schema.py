"""What the gate learns from a table, and how it reads others by it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import condshap as cs
from condshap.exceptions import CondShapWarning, SchemaError
from condshap.schema import FeatureSchema, Kind


@pytest.fixture
def mixed() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "x": [0.5, np.nan, 2.5, -1.0],
            "n": [3, 1, 2, 2],
            "c": pd.Categorical(["v", "u", None, "u"], categories=["w", "v", "u"]),
            "s": ["q", "p", "p", "q"],
            "b": [True, False, False, True],
        }
    )


def test_kinds_levels_and_support_come_from_the_dtypes(mixed):
    schema = FeatureSchema.learn(mixed)
    assert schema.names == ("x", "n", "c", "s", "b")
    assert len(schema) == 5
    assert schema.of_kind(Kind.CONTINUOUS) == ("x", "n")
    assert schema.of_kind(Kind.CATEGORICAL) == ("c", "s", "b")
    x, n, c, s, b = schema.features
    assert (x.support, x.is_integer, x.levels) == ((-1.0, 2.5), False, None)
    assert (n.support, n.is_integer) == ((1.0, 3.0), True)
    assert c.levels == ("v", "u")  # the order of the dtype, without what no row has
    assert s.levels == ("p", "q")  # sorted
    assert b.levels == (False, True)


def test_levels_become_codes_in_their_order_and_gaps_nan(mixed):
    rows = FeatureSchema.learn(mixed).encode(mixed)
    expected = [[0.5, 3, 0, 1, 1], [np.nan, 1, 1, 0, 0], [2.5, 2, np.nan, 0, 0], [-1.0, 2, 1, 1, 1]]
    np.testing.assert_array_equal(rows, expected)
    assert rows.dtype == np.float64
    assert rows.flags.c_contiguous


def test_the_same_rows_in_any_table_and_any_order_give_the_same_codes(mixed):
    schema = FeatureSchema.learn(mixed)
    rows = schema.encode(mixed)
    plain = mixed.assign(c=mixed["c"].astype(object))
    others = {
        "polars": pl.from_pandas(mixed),
        "pyarrow": pa.Table.from_pandas(mixed),
        "array": mixed.astype(object).to_numpy(),
        "other order": mixed[["b", "c", "x", "s", "n"]],
        "other order in polars": pl.from_pandas(mixed[["s", "b", "c", "x", "n"]]),
        "other categories": mixed.assign(c=pd.Categorical(plain["c"], categories=["u", "extra", "v"])),
        "objects": plain,
        "nullable": mixed.convert_dtypes(),
    }
    for name, other in others.items():
        np.testing.assert_array_equal(schema.encode(other), rows, err_msg=name)
    enum = pl.from_pandas(plain).with_columns(pl.col("c").cast(pl.Enum(["w", "v", "u"])))
    for table in (enum, pa.Table.from_pandas(mixed)):
        np.testing.assert_array_equal(FeatureSchema.learn(table).encode(mixed), rows)


def test_a_row_whose_values_are_all_missing_fits_every_kind(mixed):
    schema = FeatureSchema.learn(mixed)
    for gap in (None, np.nan, pd.NA):
        row = pd.DataFrame({name: pd.Series([gap], dtype=object) for name in mixed.columns})
        assert np.isnan(schema.encode(row)).all()
    assert np.isnan(schema.encode(pl.DataFrame({name: [None] for name in mixed.columns}))).all()


def test_columns_of_an_array_are_taken_by_position():
    named = pd.DataFrame({"x2": [1.0, 2.0], "x0": [3.0, 4.0], "x1": [5.0, 6.0]})
    schema = FeatureSchema.learn(named)
    np.testing.assert_array_equal(schema.encode(named.to_numpy()), named.to_numpy())
    nameless = FeatureSchema.learn(named.to_numpy())
    np.testing.assert_array_equal(nameless.encode(named[["x1", "x2", "x0"]]), named[["x0", "x1", "x2"]].to_numpy())
    np.testing.assert_array_equal(nameless.encode(named.set_axis(list("abc"), axis=1)), named.to_numpy())
    for table in (named.iloc[:, :2].to_numpy(), named.iloc[:, :2].set_axis(["a", "b"], axis=1)):
        with pytest.raises(SchemaError, match="rows must have 3 columns as in training, got 2"):
            nameless.encode(table)


def test_categorical_columns_are_declared_by_name_or_position():
    frame = pd.DataFrame({"a": [1.0, np.nan, 2.0], "b": [5, 6, 7]})
    for declared in (["a"], "a", [0], 0, [-2], (np.int64(0),), {"a"}):
        schema = FeatureSchema.learn(frame, categorical=declared)
        assert schema.of_kind(Kind.CATEGORICAL) == ("a",)
        assert schema.features[0].levels == (1, 2)
        np.testing.assert_array_equal(schema.encode(frame)[:, 0], [0.0, np.nan, 1.0])
    assert FeatureSchema.learn(frame.to_numpy(), categorical=[1, "x0"]).of_kind(Kind.CATEGORICAL) == ("x0", "x1")


def test_a_declared_name_counts_before_a_position():
    frame = pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], columns=[1, 2])
    assert FeatureSchema.learn(frame, categorical=[1]).of_kind(Kind.CATEGORICAL) == ("1",)
    assert FeatureSchema.learn(frame, categorical=[0]).of_kind(Kind.CATEGORICAL) == ("1",)
    assert FeatureSchema.learn(frame, categorical=["2"]).of_kind(Kind.CATEGORICAL) == ("2",)


@pytest.mark.parametrize("declared", [["z"], [2], [-3], [1.5], [None]])
def test_a_declared_column_that_does_not_exist_is_refused(declared):
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [5, 6]})
    with pytest.raises(SchemaError, match=r"categorical must name columns of the table, got \[.+The columns are \['a'"):
        FeatureSchema.learn(frame, categorical=declared)


def test_declared_fractions_are_levels_in_ascending_order():
    schema = FeatureSchema.learn(pd.DataFrame({"dose": [2.5, 0.5, 2.5]}), categorical=["dose"])
    assert schema.features[0].levels == (0.5, 2.5)
    with pytest.raises(
        SchemaError, match=r"'dose' must hold the levels \[0.5, 2.5\], got unseen levels \[1.0\] in rows \[1\]"
    ):
        schema.encode(pd.DataFrame({"dose": [0.5, 1.0]}))


def test_unseen_level_names_column_level_and_row(mixed):
    schema = FeatureSchema.learn(mixed)
    rows = mixed.assign(s=["p", "new", "q", "newer"])
    with pytest.raises(
        SchemaError, match=r"'s' must hold the levels \['p', 'q'\], got unseen levels \['new', 'newer'\] in"
    ):
        schema.encode(rows)
    with pytest.raises(SchemaError, match=r"in rows \[1, 3\]"):
        schema.encode(rows)


def test_unused_category_of_the_rows_is_no_unseen_level():
    schema = FeatureSchema.learn(pd.DataFrame({"c": ["u", "v"]}))
    rows = pd.DataFrame({"c": pd.Categorical(["v"], categories=["never", "v"])})
    np.testing.assert_array_equal(schema.encode(rows), [[1.0]])


def test_labels_in_a_column_of_numbers_are_refused(mixed):
    with pytest.raises(
        SchemaError, match=r"'x' must hold numbers as in training, got levels such as \['high', 'low'\]"
    ):
        FeatureSchema.learn(mixed).encode(mixed.assign(x=["low", "high", "low", "low"]))


def test_integers_too_large_for_float_are_refused_and_not_rounded():
    frame = pd.DataFrame({"id": [1, 2**53 + 1]})
    with pytest.raises(SchemaError, match=r"column 'id' must hold integers below 2\*\*53.+rows \[1\]"):
        FeatureSchema.learn(frame)
    FeatureSchema.learn(frame.astype(float))


def test_constant_feature_is_announced_with_its_value():
    for column in ([2.0, 2.0], ["u", "u"], [True, True]):
        with pytest.warns(CondShapWarning, match=f"feature 'k' is constant in the training rows .value {column[0]!r}"):
            FeatureSchema.learn(pd.DataFrame({"k": column}))
    FeatureSchema.learn(pd.DataFrame({"k": [2.0, np.nan]}))  # it varies: sometimes it is missing
    FeatureSchema.learn(pd.DataFrame({"k": ["u", None]}))


def test_constant_features_are_announced_together():
    frame = pd.DataFrame({"k": [2.0, 2.0], "x": [1.0, 2.0], "u": ["u", "u"], "gap": [1.0, np.nan], "code": [3, 3]})
    with pytest.warns(CondShapWarning) as caught:
        FeatureSchema.learn(frame, categorical=["code"])
    (said,) = [str(one.message) for one in caught]
    assert (
        said.startswith("features 'k', 'u' and 'code' are constant in the training rows") or "'k', 'u', 'code'" in said
    )


@pytest.mark.parametrize("column", [[np.nan, np.nan], [None, None], pd.Categorical([None, None], categories=["u"])])
def test_column_without_a_value_is_refused(column):
    with pytest.raises(SchemaError, match="column 'k' must have at least one value, but all are missing"):
        FeatureSchema.learn(pd.DataFrame({"k": column}))


def test_names_that_are_no_text_are_matched_as_text():
    frame = pd.DataFrame([[1.0, 2.0], [3.0, 5.0]], columns=[10, 20])
    schema = FeatureSchema.learn(frame)
    assert schema.names == ("10", "20")
    np.testing.assert_array_equal(schema.encode(frame[[20, 10]]), frame.to_numpy())
    np.testing.assert_array_equal(schema.encode(pl.DataFrame({"20": [2.0], "10": [1.0]})), [[1.0, 2.0]])


def test_encoding_does_not_share_memory_with_the_users_table():
    frame = pd.DataFrame({"a": [1.0, 2.0]})
    array = np.array([[1.0], [2.0]])
    assert not np.shares_memory(FeatureSchema.learn(frame).encode(frame), frame.to_numpy())
    assert not np.shares_memory(FeatureSchema.learn(array).encode(array), array)


def test_levels_that_rows_do_not_share_are_announced():
    names = pd.DataFrame({"id": [f"customer {i}" for i in range(60)], "x": np.arange(60.0)})
    with pytest.warns(
        CondShapWarning, match="column 'id' should hold levels that rows share, got 60 different ones in 60"
    ):
        FeatureSchema.learn(names)


def test_levels_that_rows_share_are_no_names(recwarn):
    FeatureSchema.learn(pd.DataFrame({"town": [f"town {i % 20}" for i in range(60)], "x": np.arange(60.0)}))
    FeatureSchema.learn(pd.DataFrame({"few": [f"row {i}" for i in range(20)], "x": np.arange(20.0)}))
    assert not recwarn


def test_few_whole_numbers_may_be_codes():
    frame = pd.DataFrame({"code": np.arange(60) % 4, "flag": np.arange(60) % 2, "x": np.linspace(0, 1, 60)})
    with pytest.warns(CondShapWarning, match=r"columns \['code'\] hold few different whole numbers"):
        cs.Explainer(lambda t: t["x"], approach="independence", check_draws=False).fit(frame)


@pytest.mark.parametrize("categorical", [[], ["code"]])
def test_whoever_says_what_is_categorical_is_not_asked(categorical, recwarn):
    frame = pd.DataFrame({"code": np.arange(60) % 4, "x": np.linspace(0, 1, 60)})
    cs.Explainer(lambda t: t["x"], approach="independence", check_draws=False).fit(frame, categorical=categorical)
    assert not recwarn


def test_a_single_row_must_stay_a_table():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    with pytest.raises(SchemaError, match=r"got a pandas Series with 2 entries.*X\.iloc\[\[i\]\]"):
        FeatureSchema.learn(frame).encode(frame.iloc[0])
