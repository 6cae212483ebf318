"""Explanations as the package makes them: columns in another order, other tables, groups, several outputs."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import condshap as cs
from condshap.numerics.readable import feature_value

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(80, 3)), columns=["a", "b", "c"])


def model(rows):
    return rows["a"] * rows["b"] - 2 * rows["c"]


def two(rows):
    first = np.asarray(model(rows))
    return np.column_stack([first, -first])


def names(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


@pytest.mark.parametrize("make", [lambda frame: frame, pl.from_pandas], ids=["pandas", "polars"])
def test_values_belong_to_their_names_when_columns_come_in_another_order(make):
    rows = X[["c", "a", "b"]][:2]
    one = cs.explain(model, make(X), make(rows), approach="gaussian", n_samples=8)
    shown = dict(label.split(" = ") for label in names(cs.plots.bar(one, 1)))
    for name, text in shown.items():
        assert float(text.replace("−", "-")) == pytest.approx(rows[name].iloc[1], rel=0.01)
    ax = cs.plots.waterfall(one, 1)
    assert names(ax)[0] == f"prediction = {one.predictions[1]:.{len(names(ax)[0].split('.')[1])}f}".replace("-", "−")


def test_groups_and_outputs():
    one = cs.explain(two, X, X[:4], approach="gaussian", n_samples=8, groups={"pair": ["a", "b"], "c": ["c"]})
    first, second = cs.plots.facet(cs.plots.bar, one, 0)
    assert sorted(names(first)) == sorted(["pair", f"c = {feature_value(X['c'][0])}"])
    np.testing.assert_allclose([p.get_width() for p in first.patches], [-p.get_width() for p in second.patches])
    assert cs.plots.msev(one, by="size") is not None
    assert cs.plots.scatter(one, "c", output=1).get_xlabel() == "c"


def test_explanations_from_a_file_draw_the_same(tmp_path):
    one = cs.explain(model, X, X[:4], approach="gaussian", n_samples=8)
    one.save(tmp_path / "one.parquet")
    again = cs.load_explanation(tmp_path / "one.parquet")
    assert names(cs.plots.waterfall(one, 2)) == names(cs.plots.waterfall(again, 2))
