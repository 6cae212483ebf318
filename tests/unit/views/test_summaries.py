"""Sizes and summaries over rows, beside those of shap."""

from __future__ import annotations

from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import condshap as cs
from condshap.exceptions import OptionError

mpl.use("Agg")

RNG = np.random.default_rng(4)
X = pd.DataFrame(RNG.normal(size=(60, 3)), columns=list("abc"))


def two(rows):
    a, b, c = (rows[name].to_numpy() for name in "abc")
    return np.column_stack([a * b + c, b - c**2])


@pytest.fixture(scope="module")
def several():
    return cs.explain(two, X, X[:9], approach="gaussian", n_samples=16)


@pytest.mark.parametrize("how", ["mean", "max", "min", "sum"])
def test_summaries_are_those_of_shap(several, how):
    for ours, theirs in ((several, several.to_shap()), (several[..., 0], several.to_shap()[..., 0])):
        np.testing.assert_array_equal(getattr(ours, how)(0).values, getattr(theirs, how)(0).values)
        np.testing.assert_array_equal(getattr(abs(ours), how)(0).values, getattr(theirs.abs, how)(0).values)
        np.testing.assert_array_equal(getattr(ours.abs, how)(0).values, getattr(theirs.abs, how)(0).values)


def test_sizes_are_absolute_values_and_can_be_selected(several):
    np.testing.assert_array_equal(abs(several).values, np.abs(several.values))
    np.testing.assert_array_equal(abs(several)[:2, "b"].values, np.abs(several[:2, "b"].values))
    np.testing.assert_array_equal(np.asarray(abs(several)), np.abs(several.values))
    assert len(abs(several)) == 9


def test_errors_of_means_and_sums_are_bounds_and_those_of_extremes_belong_to_one_row(several):
    one = several[..., 0]
    np.testing.assert_allclose(abs(one).mean(0).errors, one.errors.mean(0))
    np.testing.assert_allclose(abs(one).sum(0).std_errors, one.std_errors.sum(0))
    row = np.abs(one.values[:, 1]).argmax()
    assert abs(one).max(0).errors[1] == one.errors[row, 1]


def test_noise_raises_the_size_of_nothing_by_the_share_that_the_page_says():
    # 20000 values of 0 with error s: the mean size is sqrt(2 / pi) s, off by more than 2 % once in 1000 runs
    base = cs.explain(lambda rows: two(rows)[:, 0], X, X[:9], approach="gaussian", n_samples=16)[:1]
    noise = np.random.default_rng(0).normal(0.0, 0.3, (20000, 3))
    noisy = replace(base, values=noise, std_errors=np.full_like(noise, 0.3), model_errors=np.zeros_like(noise))
    found = abs(noisy).mean(0)
    np.testing.assert_allclose(found.values, np.sqrt(2 / np.pi) * found.std_errors, rtol=0.02)


def test_a_summary_is_a_table(several):
    frame = abs(several[..., 0]).mean(0).to_frame()
    assert list(frame.index) == list("abc")
    assert list(frame.columns) == ["value", "error"]
    long = several.mean(0).to_frame()
    assert long.loc[("b", several.output_names[1]), "value"] == several.values[:, 1, 1].mean()


def test_bars_of_summaries(several):
    one = several[..., 0]
    ax = cs.plots.bar(abs(one).mean(0))
    order = np.argsort(-np.abs(one.values).mean(0))
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], np.abs(one.values).mean(0)[order])
    assert ax.get_xlabel() == "mean |Shapley value| of 9 rows"
    assert cs.plots.bar(several.max(0), output=1).get_xlabel() == "largest Shapley value of 9 rows"
    assert cs.plots.bar(abs(one)).get_xlabel() == "mean |Shapley value| of 9 rows"
    np.testing.assert_allclose(
        sorted(bar.get_width() for bar in cs.plots.bar(one.mean(0)).patches), sorted(one.values.mean(0))
    )


def test_bad_summaries_are_refused(several):
    with pytest.raises(OptionError, match=r"axis must be 0.*got 1"):
        several.mean(1)
    with pytest.raises(OptionError, match="at least one row"):
        abs(several[:0]).mean(0)
    with pytest.raises(OptionError, match="rows cannot be combined with summaries"):
        cs.plots.bar(abs(several).mean(0), 0)
    with pytest.raises(OptionError, match="choose one of 2 outputs"):
        cs.plots.bar(abs(several).mean(0))
    with pytest.raises(OptionError, match="needs an Explanation, got Sizes"):
        cs.plots.beeswarm(abs(several))
