"""Rows are named by position or by label, wherever one row or several are wanted."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import condshap as cs
from condshap.exceptions import OptionError, SchemaError
from condshap.views.rows import find_row, in_index, row_positions

mpl.use("Agg")

X = pd.DataFrame(
    np.random.default_rng(0).normal(size=(60, 3)), columns=["a", "b", "c"], index=[f"A{i}" for i in range(60)]
)


def total(frame):
    return np.asarray(frame).sum(axis=1)


@pytest.fixture(scope="module")
def explanation():
    return cs.explain(total, X, X[10:14], approach="gaussian")


@pytest.mark.parametrize(
    ("labels", "row", "position"),
    [
        (["x", "y", "z"], "y", 1),
        (["x", "y", "z"], 2, 2),
        (["x", "y", "z"], np.int64(-3), 0),
        ([5, 0, 7], 0, 0),  # positions, whatever the labels are: tables that were shuffled keep their old numbers
        ([5, 0, 7], "label:0", 1),
        (range(400, 410), "label:400", 0),
        ([1.5, 2.5], "2.5", 1),
        ([1.5, 2.5], 2.5, 1),
        ([("a", 1), ("b", 2)], ("b", 2), 1),
        (["label:0", "0"], "label:0", 0),
        (pd.date_range("2024-01-30", periods=3), "2024-01-31", 1),
        (pd.date_range("2024-01-30", periods=3), pd.Timestamp("2024-02-01"), 2),
        (pd.date_range("2024-01-30", periods=3, freq="h"), "2024-01-30 02:00:00", 2),
    ],
)
def test_a_row_is_found_by_position_or_label(labels, row, position):
    assert find_row(pd.Index(labels), row) == position


@pytest.mark.parametrize(
    ("labels", "row", "text"),
    [
        (["x", "y"], "z", r"row must be a position below 2 or the label of a row, such as 'x', got 'z'"),
        (["x", "x"], "x", r"row must be the label of one row, but rows \[0, 1\] all have 'x'"),
        ([400, 401], 400, r"row must be a position below 2.*For the row with the label 400, write 'label:400'"),
        ([400, 401], -400, "row must be an integer of at least -2"),
        (range(2), "z", "because these rows have no labels of their own"),
        (["x", "y"], None, "row must be a position"),
        (["x", "y"], True, "row must be a position"),
        (["x", "y"], 1.5, "row must be a position"),
    ],
)
def test_what_names_no_row_is_refused(labels, row, text):
    with pytest.raises(OptionError, match=text):
        find_row(pd.Index(labels), row)


def test_several_rows_are_found_by_their_labels():
    labels = pd.Index(["x", "y", "z"])
    assert row_positions(labels, ["z", "x"]).tolist() == [2, 0]
    assert row_positions(labels, np.array(["z", "x"])).tolist() == [2, 0]
    assert row_positions(labels, pd.Index(["y"])).tolist() == [1]
    assert row_positions(labels, pd.Series(["y", "x"])).tolist() == [1, 0]
    assert row_positions(labels, [True, False, True]).tolist() == [0, 2]


def test_explanations_are_indexed_by_label(explanation):
    assert explanation["A12"].data.index.tolist() == ["A12"]
    np.testing.assert_array_equal(explanation[["A13", "A10"]].values, explanation.values[[3, 0]])
    np.testing.assert_array_equal(explanation["A12", "b"].values, explanation.values[[2], 1:2])
    with pytest.raises(OptionError, match=r"got 'a'\. For a player write explanation\[:, 'name'\]"):
        explanation["a"]


@pytest.mark.parametrize("plot", [cs.plots.waterfall, cs.plots.force, cs.plots.bar, cs.plots.compare])
def test_plots_take_labels(explanation, plot):
    what = {"one": explanation} if plot is cs.plots.compare else explanation

    def texts(row):
        ax = plot(what, row)
        found = [text.get_text() for text in (*ax.texts, *ax.get_yticklabels())]
        mpl.pyplot.close(ax.figure)
        return found

    assert texts("A12") == texts(2) != texts(1)


def test_interactions_and_owen_values_take_labels(explanation):
    pairs = explanation.interactions()
    bars = cs.plots.interaction_bar(pairs, "A12"), cs.plots.interaction_bar(pairs, 2)
    widths = [[patch.get_width() for patch in ax.patches] for ax in bars]
    assert widths[0] == widths[1]
    assert cs.plots.interactions(pairs, row="A12") is not None
    assert cs.plots.waterfall(explanation.owen({"u": ["a", "b"], "v": ["c"]}), "A12") is not None
    mpl.pyplot.close("all")


MIXED = X.assign(c=["u", "v"] * 30, d=range(60))
BAD_CELLS = {
    "infinite": ("a", np.inf),
    "missing values": ("a", np.nan),
    "larger ones": ("a", 1e80),
    "unseen levels": ("c", "w"),
    "integers below": ("d", 2**60),
}


def damaged(rows, column, cell):
    broken = rows.astype({"c": object})
    broken.loc["A12", column] = cell
    return broken


@pytest.mark.parametrize("problem", BAD_CELLS)
def test_an_error_about_rows_to_explain_has_their_labels(problem):
    explainer = cs.Explainer(lambda frame: np.asarray(frame["a"], dtype=float), approach="ctree", n_samples=5).fit(
        MIXED
    )
    rows = damaged(MIXED[10:14], *BAD_CELLS[problem])
    with pytest.raises(SchemaError, match=rf"{problem}.* \[2\].* In the index, these rows are \['A12'\]\.$"):
        explainer.explain(rows)
    with pytest.raises(SchemaError, match=rf"{problem}.* \[2\]") as caught:
        explainer.explain(rows.reset_index(drop=True))
    assert "index" not in str(caught.value)


@pytest.mark.parametrize("problem", [name for name in BAD_CELLS if name != "unseen levels"])
def test_an_error_about_training_rows_has_their_labels(problem):
    with pytest.raises(SchemaError, match=rf"{problem}.* \[12\].* In the index, these rows are \['A12'\]\.$"):
        cs.Explainer(total, approach="ctree").fit(damaged(MIXED, *BAD_CELLS[problem]))


@pytest.mark.parametrize(
    ("index", "shown"),
    [
        (pd.Index([7, 8, 9]), "[8, 9]"),
        (pd.MultiIndex.from_tuples([("x", 1), ("x", 2), ("y", 1)]), "[('x', 2), ('y', 1)]"),
        (pd.Index([1, 2, None], dtype="Int64"), "[2, <NA>]"),
    ],
)
def test_labels_of_any_kind_are_listed(index, shown):
    assert in_index(pd.DataFrame({"x": [1, 2, 3]}, index=index), [1, 2]) == f" In the index, these rows are {shown}."


def test_rows_without_labels_of_their_own_are_named_by_position_only():
    assert in_index(pd.DataFrame({"x": [1, 2]}), [1]) == in_index(np.zeros((2, 1)), [1]) == ""
    assert in_index(pd.DataFrame({"x": [1, 2]}, index=["a", "b"]), []) == ""
