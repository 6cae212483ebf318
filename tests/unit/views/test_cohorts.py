"""Cohorts: by labels, by a column, by a tree, and side by side in a plot."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import condshap as cs
from condshap.exceptions import OptionError

mpl.use("Agg")

RNG = np.random.default_rng(6)
N = 90
X = pd.DataFrame(
    {
        "a": RNG.normal(size=N),
        "n": RNG.integers(0, 3, N).astype(float),
        "s": pd.Categorical(RNG.choice(["low", "high"], N), categories=["low", "mid", "high"]),
    },
    index=RNG.permutation(N),
)


def model(rows):
    sign = np.where(rows["s"] == "high", 1.0, -1.0)
    return 5 * sign * (rows["n"].to_numpy() > 0) + rows["a"].to_numpy()


@pytest.fixture(scope="module")
def explanation():
    return cs.explain(model, X, X[:40], approach="independence", n_samples=30)


def test_labels_are_taken_as_shap_takes_them(explanation):
    labels = RNG.choice(["x", "y"], 40)
    ours, theirs = explanation.cohorts(labels), explanation.to_shap().cohorts(labels)
    assert list(ours) == list(theirs.cohorts)
    for name, one in ours.items():
        np.testing.assert_array_equal(one.values, theirs.cohorts[name].values)
        assert isinstance(one, cs.Explanation)
        assert one.others is None


def test_a_series_is_matched_by_its_index(explanation):
    by = X["s"].sort_index()  # of all rows, in another order
    for name, one in explanation.cohorts(by).items():
        assert set(one.data["s"]) == {name}
    by_place = pd.Series(["p"] * 10 + ["q"] * 30, index=[f"other {i}" for i in range(40)])
    assert [len(one) for one in explanation.cohorts(by_place).values()] == [10, 30]


def test_columns_make_cohorts_in_the_order_of_their_levels(explanation):
    assert list(explanation.cohorts("s")) == ["s = low", "s = high"]
    assert list(explanation.cohorts("n")) == ["n = 0", "n = 1", "n = 2"]
    assert sum(len(one) for one in explanation.cohorts("n").values()) == 40


def test_classes_of_numbers_keep_their_order(explanation):
    found = explanation.cohorts(pd.qcut(explanation.data["a"], 3))
    means = [one.data["a"].mean() for one in found.values()]
    assert len(found) == 3
    assert means == sorted(means)


def test_missing_labels_are_a_cohort_of_their_own(explanation):
    by = pd.Series([None, "u"] * 20, index=explanation.data.index, dtype=object)
    assert {name: len(one) for name, one in explanation.cohorts(by).items()} == {"u": 20, "missing": 20}


def test_a_tree_finds_rows_that_are_explained_alike(explanation):
    found = explanation.cohorts(4)
    assert 2 <= len(found) <= 4
    assert sum(len(one) for one in found.values()) == 40
    theirs = explanation.to_shap()
    theirs.data = theirs.data.astype(float)
    spread = sum(((one.values - one.values.mean(0)) ** 2).sum() for one in found.values())
    shaps = sum(((one.values - one.values.mean(0)) ** 2).sum() for one in theirs.cohorts(4).cohorts.values())
    assert spread <= 1.1 * shaps
    assert len(explanation.cohorts(2)) == 2
    assert list(explanation.cohorts(1)) == ["all rows"]


def test_names_of_a_tree_say_who_is_in(explanation):
    for name, one in explanation.cohorts(6).items():
        for condition in name.split(" & "):
            if "a" in condition.split():
                low, high = -np.inf, np.inf
                parts = condition.split()
                if "<" in parts:
                    low = float(parts[0])
                if ">" in parts:
                    low = float(parts[-1])
                if "≤" in parts:
                    high = float(parts[-1])
                assert (one.data["a"] > low - 1e-3).all()
                assert (one.data["a"] <= high + 1e-3).all()


def test_a_tree_takes_gaps_and_several_outputs():
    rows = X.copy()
    rows.loc[rows.index[::4], "a"] = np.nan

    def two(given):
        gone = given["a"].isna().to_numpy()
        return np.column_stack([np.where(gone, 4.0, 0.0) + given["n"], given["n"].to_numpy()])

    found = cs.explain(two, rows, rows[:40], approach=cs.approaches.VAEAC(epochs=2), n_samples=8).cohorts(3)
    assert sum(len(one) for one in found.values()) == 40
    gappy = [name for name, one in found.items() if one.data["a"].isna().any() and not one.data["a"].isna().all()]
    assert all("missing" in name or "a" not in name.split() for name in gappy)


def test_bars_stand_side_by_side(explanation):
    found = explanation.cohorts("s")
    ax = cs.plots.bar(found)
    assert len(ax.patches) == 2 * 3
    widths = np.array([bar.get_width() for bar in ax.patches]).reshape(2, 3)
    for row, one in zip(widths, found.values(), strict=True):
        np.testing.assert_allclose(np.sort(row), np.sort(np.abs(one.values).mean(0)))
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == [f"{name} ({len(one)} rows)" for name, one in found.items()]
    cs.plots.bar({name: one.mean(0) for name, one in found.items()})


@pytest.mark.parametrize(
    ("by", "text"),
    [
        ("z", r"feature among \['a', 'n', 's'\].*'z'"),
        ("a", r"at most 10 different numbers.*qcut\(rows\['a'\], 4\)"),
        (0, "at least 1"),
        (True, "integer"),
        (None, "integer"),
        (["x"] * 39, "40 explained rows, got 39"),
        ([1, "1"] * 20, "differ as text"),
        (np.zeros((40, 2)), "label for each of 40"),
    ],
    ids=str,
)
def test_bad_cohorts_are_refused(explanation, by, text):
    with pytest.raises(OptionError, match=text):
        explanation.cohorts(by)


def test_what_cannot_stand_side_by_side_is_refused(explanation):
    with pytest.raises(OptionError, match="same players"):
        cs.plots.bar({"all": explanation, "one": explanation[:, "a"]})
    with pytest.raises(OptionError, match="empty mapping"):
        cs.plots.bar({})
    with pytest.raises(OptionError, match="got int"):
        cs.plots.bar({"a": 1})
