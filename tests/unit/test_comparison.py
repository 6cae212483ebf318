"""Only explanations that answer the same question are ranked by MSEv."""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import condshap as cs
from condshap.evaluation import mean_squared_error
from condshap.exceptions import CondShapWarning, OptionError
from condshap.numerics.readable import estimate
from condshap.ranking import comparable, compare_explanations
from condshap.reporting.quality import judge

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 8)) @ (np.eye(8) + 0.3)
ROWS = X[:5]


def f(x):
    return np.sin(x[:, 0]) * x[:, 1] + np.abs(x[:, 2] - x[:, 3]) + x[:, 4]


def explained(rows=ROWS, model=f, train=X, approach="independence", **options):
    return cs.explain(model, train, rows, approach=approach, n_samples=20, check_draws=False, progress=False, **options)


def with_coalitions(explanation, positions):
    table = explanation.value_table
    parts = {name: getattr(table, name)[positions] for name in ("coalitions", "values", "std_errors")}
    return replace(explanation, value_table=replace(table, **parts))


FEW, MORE, ALL = explained(n_coalitions=40), explained(n_coalitions=120), explained()


def test_explanations_with_the_same_coalitions_stay_as_they_are():
    other = explained(approach="gaussian", n_coalitions=40)
    found = comparable({"a": FEW, "b": other})
    assert found["a"] is FEW
    assert found["b"] is other


@pytest.mark.parametrize("two", [(FEW, MORE), (MORE, FEW), (FEW, ALL)])
def test_msev_is_of_the_coalitions_that_all_have(two):
    assert float(two[0].msev) != pytest.approx(float(two[1].msev), rel=0.005)  # the same approach: coalitions make this
    with pytest.warns(
        CondShapWarning, match=r"MSEv can only be compared over the same coalitions.*over the 38 that all of them share"
    ):
        table = compare_explanations(two)
    assert table["msev"][0] == pytest.approx(table["msev"][1], rel=1e-9)  # and here it is gone
    assert table["msev"][0] == pytest.approx(float(FEW.msev), rel=1e-9)


def test_coalitions_are_matched_by_their_members_and_not_by_position():
    some = with_coalitions(ALL, np.array([0, *range(5, 60), *range(90, 256)]))
    with pytest.warns(CondShapWarning, match="38 of '1: independence'"):
        table = compare_explanations([FEW, some])
    both = {m.tobytes() for m in FEW.value_table.coalitions[1:-1]} & {m.tobytes() for m in some.value_table.coalitions}
    at = [m.tobytes() in both for m in FEW.value_table.coalitions]
    expected = mean_squared_error(FEW.predictions, FEW.value_table.values[at], FEW.value_table.std_errors[at])
    assert table["msev"][0] == pytest.approx(float(expected))


def test_plots_and_reports_compare_the_same_coalitions(tmp_path):
    with pytest.warns(CondShapWarning, match="over the 38 that all"):
        ax = cs.plots.msev({"few": FEW, "all": ALL})
    assert ax.lines[1].get_xdata()[0] == pytest.approx(ax.lines[3].get_xdata()[0])
    plt.close(ax.figure)
    with pytest.warns(CondShapWarning, match="over the 38 that all"):
        page = cs.report([ALL, FEW], tmp_path / "r.html").read_text()
    assert "the explanations use different coalitions: MSEv is over the 38" in page
    msev = estimate(float(FEW.msev), FEW.msev.total_std_error())
    assert page.count(f"<td>{msev}</td>") == 2
    assert f"{float(ALL.msev):.5g}" not in page


def test_explanations_of_auto_are_compared_over_what_all_rows_have():
    two = [
        explained(approach=name, n_coalitions="auto", tolerance=0.2, rows=X[:3])
        for name in ("independence", "gaussian")
    ]
    shortened = two[1].value_table.values.copy()
    shortened[10:-10] = np.nan
    two[1] = replace(two[1], value_table=replace(two[1].value_table, values=shortened))
    with pytest.warns(CondShapWarning, match="that all of them share"):
        table = compare_explanations(two)
    assert np.isfinite(table["msev"]).all()


def test_nothing_in_common_is_refused():
    n = len(FEW.value_table.values)
    apart = [with_coalitions(FEW, np.r_[0, some, n - 1]) for some in (np.arange(1, 20), np.arange(20, n - 1))]
    with pytest.raises(OptionError, match=r"must have coalitions in common.*same n_coalitions and seed"):
        compare_explanations(apart)


OTHERS = {
    "rows": (explained(rows=X[5:10]), r"same rows in the same order.*different values of .'x0'"),
    "number": (explained(rows=X[:4]), r"same numbers of rows, got 5 .* and 4"),
    "model": (explained(model=lambda x: 2 * f(x), base_value=0.3), r"same predictions.*same model"),
    "base value": (explained(base_value=3.0), r"same base values.*same training rows"),
    "groups": (explained(groups={"a": ["x0", "x1"], "b": [f"x{j}" for j in range(2, 8)]}), r"same players"),
}


@pytest.mark.parametrize("what", OTHERS)
def test_other_questions_are_refused_with_what_differs(what, tmp_path):
    other, words = OTHERS[what]
    for ask in (
        lambda: compare_explanations([ALL, other]),
        lambda: cs.plots.msev([ALL, other]),
        lambda: cs.report([ALL, other], tmp_path / "r.html"),
    ):
        with pytest.raises(OptionError, match=words):
            ask()
    assert not (tmp_path / "r.html").exists()


def test_tables_of_another_kind_are_the_same_rows():
    frame = pd.DataFrame(ROWS, columns=ALL.feature_names)
    assert len(compare_explanations([ALL, replace(ALL, data=frame)])) == 2


def test_intervals_of_msev_do_not_reach_below_zero(tmp_path):
    noisy = replace(ALL, predictions=ALL.predictions * 1e-3 + np.array([0, 0, 0, 0, 40.0]))
    low, high = noisy.msev.interval()
    assert low == 0.0
    assert float(noisy.msev) < high
    assert compare_explanations([noisy])["low"][0] == 0.0
    assert judge(noisy)[0].low == 0.0
    negative = mean_squared_error(np.zeros(4), np.zeros((3, 4)), 0.1).interval()
    assert negative == (0.0, 0.0)
    ax = cs.plots.msev(noisy, by="size")
    ends = np.concatenate([segment[:, 1] for segment in ax.collections[0].get_segments()])
    assert ends.min() >= 0.0
    plt.close(ax.figure)
    assert np.isnan(ALL[:1].msev.interval()).all()


def test_a_comparison_keeps_its_explanations(tmp_path):
    table = cs.compare(f, X, ROWS, approaches=["independence", "gaussian", "gaussian"], n_samples=20, check_draws=False)
    assert list(table.explanations) == ["independence", "gaussian", "gaussian (2)"]
    alone = explained(approach="gaussian")
    np.testing.assert_array_equal(table.explanations["gaussian"].values, alone.values)
    assert type(table.sort_values("msev")) is type(table.copy()) is pd.DataFrame
    assert cs.report(table.explanations, tmp_path / "report.html").exists()
    text = (tmp_path / "report.html").read_text()
    assert "gaussian (2)" in text


def test_a_comparison_has_no_explanation_of_what_failed():
    class Later(type(cs.approaches.Gaussian())):
        def sample(self, *args, **options):
            raise ValueError("gone")

    with pytest.warns(CondShapWarning, match="failed, the others are kept"):
        table = cs.compare(f, X, ROWS, approaches=["independence", Later()], n_samples=20, check_draws=False)
    assert list(table.explanations) == ["independence"]
    assert table["msev"].isna().tolist() == [False, True]


def test_plots_and_report_take_the_table_of_compare_as_it_is(tmp_path):
    approaches = ["independence", "gaussian"]
    table = cs.compare(f, X, ROWS, approaches=approaches, n_samples=20, n_coalitions=40, check_draws=False)
    assert [text.get_text() for text in cs.plots.msev(table).get_yticklabels()] == [
        text.get_text() for text in cs.plots.msev(table.explanations).get_yticklabels()
    ]
    cs.plots.compare(table, row=0)
    page = cs.report(table, tmp_path / "report.html").read_text()
    assert page == cs.report(table.explanations, tmp_path / "report.html").read_text()
    plt.close("all")


def test_causal_values_are_refused_before_anything_is_trained(monkeypatch):
    monkeypatch.setattr("condshap.comparison.get_ready", lambda *_, **__: pytest.fail("got an explainer ready"))
    options = {"causal_ordering": [[0, 1, 2, 3], [4, 5, 6, 7]], "confounding": False}
    with pytest.raises(OptionError, match="without confounding, because MSEv judges conditional"):
        cs.compare(f, X, ROWS, approaches=["independence", "gaussian"], **options)
