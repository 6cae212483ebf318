"""``Explainer.sample`` shows the rows that v(S) averages over."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import condshap as cs
from condshap.approaches import VAEAC
from condshap.exceptions import ApproachError, OptionError

RNG = np.random.default_rng(0)
A = RNG.normal(size=300)
X = pd.DataFrame(
    {"a": A, "b": A + 0.1 * RNG.normal(size=300), "c": RNG.normal(size=300)}, index=[f"r{i}" for i in range(300)]
)


def total(frame):
    return np.asarray(frame).sum(axis=1)


@pytest.fixture(scope="module")
def fitted():
    return {name: cs.Explainer(total, approach=name).fit(X) for name in ("gaussian", "copula", "ctree", "empirical")}


@pytest.mark.parametrize("name", ["gaussian", "copula", "ctree", "empirical"])
def test_the_mean_prediction_of_drawn_rows_is_v(fitted, name):
    explainer, rows = fitted[name], X[:3]
    drawn = explainer.sample(rows, known=["a"], n=2000)
    table = explainer.explain(rows).value_table
    only_a = next(i for i, mask in enumerate(table.coalitions) if mask.tolist() == [True, False, False])
    predictions = total(drawn).reshape(3, 2000)
    errors = np.hypot(predictions.std(axis=1) / np.sqrt(2000), table.std_errors[only_a])
    # the seed is fixed; at 5 standard errors, fresh seeds would raise a false alarm once in 10^5 runs
    assert (np.abs(predictions.mean(axis=1) - table.values[only_a]) < 5 * errors + 0.02).all()


def test_known_features_stay_and_unknown_ones_follow_them(fitted):
    drawn = fitted["gaussian"].sample(X[:2], known=["a"], n=400)
    assert (drawn["a"].to_numpy().reshape(2, 400) == X["a"].to_numpy()[:2, None]).all()
    assert drawn.loc["r1"]["b"].std() == pytest.approx(0.1, rel=0.2)  # a tenth of the spread of all rows
    assert drawn.loc["r1"]["b"].mean() == pytest.approx(X["a"].iloc[1], abs=0.1)
    assert drawn.index.names == ["row", "draw"]


def test_nothing_or_everything_may_be_known(fitted):
    nothing = fitted["gaussian"].sample(X[:1], known=[], n=500)
    assert nothing["a"].std() == pytest.approx(X["a"].std(), rel=0.15)
    everything = fitted["gaussian"].sample(X[:2], known=["a", "b", "c"], n=2)
    np.testing.assert_array_equal(everything.to_numpy(), np.repeat(X[:2].to_numpy(), 2, axis=0))


def test_a_row_is_drawn_alike_whatever_rows_come_with_it(fitted):
    for explainer in fitted.values():
        alone = explainer.sample(X[4:5], known=["b"], n=30)
        together = explainer.sample(X[2:9], known=["b"], n=30).loc[["r4"]]
        np.testing.assert_array_equal(alone.to_numpy(), together.to_numpy())


def test_levels_groups_and_gaps_come_in_the_type_of_the_training_rows():
    frame = pl.DataFrame({"x": A, "level": np.where(A > 0, "high", "low"), "y": RNG.normal(size=300)})
    explainer = cs.Explainer(
        lambda t: t["x"].to_numpy(),
        approach=VAEAC(epochs=2),
        groups={"both": ["x", "level"], "rest": ["y"]},
        check_draws=False,
    ).fit(frame)
    drawn = explainer.sample(frame[:2], known=["rest"], n=5)
    assert isinstance(drawn, pl.DataFrame)
    assert drawn.schema == frame.schema
    assert set(drawn["level"]) <= {"high", "low"}
    assert drawn["y"].to_list() == np.repeat(frame["y"][:2].to_numpy(), 5).tolist()


@pytest.mark.parametrize(
    ("known", "n", "text"),
    [
        ("a", 3, "known must be a list"),
        (["z"], 3, r"known must name features or groups, got \['z'\]"),
        (["a"], 0, "n must"),
    ],
)
def test_bad_options_are_refused(fitted, known, n, text):
    with pytest.raises(OptionError, match=text):
        fitted["gaussian"].sample(X[:1], known, n)


def test_approaches_that_do_not_sample_are_refused():
    explainer = cs.Explainer(total, approach="regression_separate").fit(X)
    with pytest.raises(ApproachError, match="rows can only be drawn by an approach that samples"):
        explainer.sample(X[:1], ["a"])
