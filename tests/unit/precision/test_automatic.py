"""n_coalitions="auto" of an explainer, and explanations that are refined."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

import condshap as cs
from condshap.approaches.empirical import Empirical
from condshap.approaches.regression_surrogate import RegressionSurrogate
from condshap.coalitions import all_coalitions
from condshap.exceptions import CondShapWarning, NotFittedError, OptionError
from condshap.testing import example_table
from tests.unit.precision.pair_games import M, X, blurred, fit, model

# --- the explainer ----------------------------------------------------------------------------------------------------


def test_explanation_reaches_the_truth_of_all_coalitions():
    found = fit().explain(X[:5])
    truth = fit(n_coalitions=2**M).explain(X[:5])
    spread = np.ptp(truth.values, axis=1)
    assert (found.std_errors.max(axis=1) <= 0.02 * np.ptp(found.values, axis=1)).all()
    assert (np.abs(found.values - truth.values).max(axis=1) <= 0.06 * spread).all()  # three standard errors
    about = found.provenance
    assert about.n_coalitions < 2**M / 4
    assert 0 < about.reached <= about.tolerance == 0.02
    assert not about.is_exact
    assert abs(float(found.msev) / float(truth.msev) - 1) < 0.5


def test_rows_do_not_depend_on_each_other_and_jobs_change_nothing():
    explainer = fit()
    together = explainer.explain(X[:4])
    alone = explainer.explain(X[2:3])
    np.testing.assert_array_equal(alone.values[0], together.values[2])
    np.testing.assert_array_equal(alone.std_errors[0], together.std_errors[2])
    np.testing.assert_array_equal(fit(n_jobs=2, memory_budget="1MB").explain(X[:4]).values, together.values)


def test_refining_continues_and_equals_a_run_from_the_start():
    explainer = fit()
    coarse = explainer.explain(X[:3])
    fine = explainer.refine(coarse, tolerance=0.005)
    at_once = fit(tolerance=0.005).explain(X[:3])
    np.testing.assert_array_equal(fine.values, at_once.values)
    np.testing.assert_array_equal(fine.std_errors, at_once.std_errors)
    assert fine.value_table.n_evaluations == at_once.value_table.n_evaluations
    assert fine.provenance.reached <= fine.provenance.tolerance == 0.005
    one = explainer.refine(coarse[1], tolerance=0.005)
    np.testing.assert_array_equal(one.values[0], fine.values[1])
    same = explainer.refine(fine, tolerance=0.05)
    np.testing.assert_array_equal(same.values, fine.values)


def test_refining_works_from_files(tmp_path):
    explainer = fit()
    explainer.save(tmp_path / "explainer")
    explainer.explain(X[:2]).save(tmp_path / "rows.parquet")
    loaded = cs.load_explainer(tmp_path / "explainer", model)
    saved = cs.load_explanation(tmp_path / "rows.parquet")
    assert saved.provenance.tolerance == 0.02
    fine = loaded.refine(saved, tolerance=0.01)
    np.testing.assert_array_equal(fine.values, fit(tolerance=0.01).explain(X[:2]).values)


ELSE = {
    "approach": ({}, {"approach": "empirical"}),
    "option": ({"approach": Empirical(sigma=0.1)}, {"approach": Empirical(sigma=0.2)}),
    "samples": ({}, {"n_samples": 256}),
    "seed": ({}, {"seed": 1}),
    "model": ({"base_value": 0.0}, {"base_value": 0.0, "model": lambda A: model(A) + 0.01 * A[:, 0] ** 2}),
    "rows": ({"base_value": 0.0}, {"base_value": 0.0, "rows": X[:-1]}),
}


@pytest.mark.parametrize("what", ELSE)
def test_refining_an_explanation_of_another_maker_is_refused(what):
    mine, other = (fit(**options, tolerance=0.2) for options in ELSE[what])
    with pytest.raises(OptionError, match=r"must come from this explainer.*Explain the rows again"):
        mine.refine(other.explain(X[:2]), tolerance=0.1)
    assert mine.refine(mine.explain(X[:2]), tolerance=0.1).provenance.made_by == mine.explain(X[:1]).provenance.made_by


def test_refining_with_a_seed_or_a_model_that_changed_since_is_refused():
    explainer = fit()
    coarse = explainer.explain(X[:2])
    with pytest.raises(OptionError, match="made by another one"):
        explainer.set_params(seed=5).refine(coarse, tolerance=0.01)
    scale = [1.0]
    changing = fit(model=lambda A: scale[0] * model(A))
    coarse = changing.explain(X[:2])
    scale[0] = 1.01
    with pytest.raises(OptionError, match="predictions for the explained rows differ"):
        changing.refine(coarse, tolerance=0.01)


def test_an_explainer_loaded_with_another_model_is_another_maker(tmp_path):
    explainer = fit()
    coarse = explainer.explain(X[:2])
    explainer.save(tmp_path / "explainer")
    with pytest.warns(cs.CondShapWarning, match="must be the one"):
        loaded = cs.load_explainer(tmp_path / "explainer", lambda A: 1.1 * model(A))
    with pytest.raises(OptionError, match="made by another one"):
        loaded.refine(coarse, tolerance=0.01)


@pytest.mark.parametrize("name", cs.available_approaches())
def test_the_digest_of_a_maker_is_the_same_after_the_same_fit_and_after_a_file(tmp_path, name):
    table = example_table(60)
    quick = {
        "vaeac": cs.approaches.VAEAC(epochs=2, depth=1),
        "regression_surrogate": RegressionSurrogate(LinearRegression()),
    }
    approach = quick.get(name, name)
    is_numeric = cs.Kind.CONTINUOUS in cs.approaches.find_approach(name).supports
    table = table[["a", "b", "c"] if is_numeric else ["d", "e", "f"]]

    def score(rows):
        return (np.asarray(rows.iloc[:, 0]) == table.iloc[0, 0]) + 0.5 * (
            np.asarray(rows.iloc[:, 1]) == table.iloc[1, 1]
        )

    one, two = (
        cs.Explainer(score, approach=approach, n_jobs=n, progress=False, check_draws=False).fit(table) for n in (1, 2)
    )
    one.save(tmp_path / "explainer")
    loaded = cs.load_explainer(tmp_path / "explainer", score)
    assert one.made_by_ == two.made_by_ == loaded.made_by_
    other = cs.Explainer(score, approach=approach, progress=False, check_draws=False).fit(table[:-1])
    assert other.made_by_ != one.made_by_


def test_refining_something_else_is_refused():
    explainer = fit()
    with pytest.raises(OptionError, match="refine needs an explainer fitted with n_coalitions='auto', got 100"):
        fit(n_coalitions=100).refine(explainer.explain(X[:1]), tolerance=0.01)
    for other in (fit(seed=1), fit(base_value=3.0), fit(n_coalitions=100)):
        with pytest.raises(OptionError, match="must come from this explainer"):
            explainer.refine(other.explain(X[:1]), tolerance=0.01)
    with pytest.raises(OptionError, match="tolerance must be a number between 0 and 1"):
        explainer.refine(explainer.explain(X[:1]), tolerance=0)
    with pytest.raises(NotFittedError):
        cs.Explainer(model, n_coalitions="auto").refine(explainer.explain(X[:1]), tolerance=0.01)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_coalitions": "all"}, "n_coalitions must be an integer, 'auto' or None, got 'all'"),
        ({"tolerance": 0}, "tolerance must be a number between 0 and 1"),
        ({"tolerance": 1.0}, "tolerance must be a number between 0 and 1"),
        ({"tolerance": "small"}, "tolerance must be a number between 0 and 1"),
        ({"tolerance": True}, "tolerance must be a number between 0 and 1"),
        ({"max_coalitions": 0}, "max_coalitions must be an integer of at least 1"),
        ({"max_coalitions": 100, "n_coalitions": 50}, "max_coalitions needs n_coalitions='auto'"),
        ({"coalitions": all_coalitions(M)}, "n_coalitions and coalitions cannot be combined"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        fit(**options)


@pytest.mark.parametrize("n_players", [1, 2, 3, 4])
def test_few_players_are_explained_with_all_coalitions(n_players):
    rows = X[:, :n_players]

    def f(x):
        return np.asarray(x).prod(axis=1)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = cs.explain(f, rows, rows[:3], approach="independence", n_samples=300, n_coalitions="auto")
    every = cs.explain(f, rows, rows[:3], approach="independence", n_samples=300)
    assert found.provenance.is_exact
    np.testing.assert_allclose(found.values, every.values, atol=1e-14)
    np.testing.assert_array_equal(found.value_table.coalitions, every.value_table.coalitions)


def test_groups_are_players():
    groups = {"first": [0, 1, 2, 3], "second": [4, 5, 6, 7], "rest": [8, 9, 10, 11]}
    found, every = (fit(groups=groups, n_coalitions=n, n_samples=300).explain(X[:2]) for n in ("auto", None))
    np.testing.assert_allclose(found.values, every.values, atol=1e-13)
    pairs = {f"g{j}": [2 * j, 2 * j + 1] for j in range(6)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fit(groups=pairs, n_samples=300).explain(X[:2]).values.shape == (2, 6)


def test_every_output_settles():
    y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int) + (X[:, 3] > 1)
    classes = LogisticRegression().fit(X, y)
    found = fit(model=classes, tolerance=0.05).explain(X[:2])
    assert found.values.shape == (2, M, 3)
    reached = found.std_errors.max(axis=1) / np.ptp(found.values, axis=1)
    assert (reached <= 0.05).all()
    fine = fit(model=classes, tolerance=0.04)
    np.testing.assert_allclose(fine.refine(found, tolerance=0.04).values, fine.explain(X[:2]).values, atol=1e-12)


def test_list_of_approaches_and_regressions_work_with_it():
    mixed = ["independence"] * 5 + ["gaussian"] * (M - 6)
    found = fit(approach=mixed, tolerance=0.05).explain(X[:2])
    np.testing.assert_allclose(found.values.sum(axis=1) + found.base_values, found.predictions, atol=1e-9)
    regression = fit(approach=RegressionSurrogate(LinearRegression()), n_samples=None, tolerance=0.1).explain(X[:2])
    assert regression.provenance.reached <= 0.1


def test_samples_by_size_are_the_same_for_all_coalitions_of_a_size():
    explainer = fit(approach="gaussian", n_samples=None)
    for size in range(1, M):
        assert len(np.unique(explainer.n_samples_[explainer.plan_.sizes == size])) == 1
    assert explainer.n_samples_[explainer.plan_.interior].min() >= 16


def test_progress_is_shown_towards_the_tolerance(capsys):
    fit(progress=True).explain(X[:1])
    shown = capsys.readouterr().err
    assert "explaining: 1 of 1 rows" in shown
    assert "wanted 2.0%" in shown
    assert "v(S)" not in shown
    fit(progress=False).explain(X[:1])
    assert capsys.readouterr().err == ""


def test_errors_as_large_as_the_values_are_announced_and_recorded():
    explainer = fit(model=blurred, n_coalitions=30)
    with pytest.warns(
        CondShapWarning, match=r"median error is .* Raise n_coalitions \(30 were used\) or n_samples, set"
    ):
        found = explainer.explain(X[:3])
    assert any("standard errors must be well below" in text for text in found.provenance.warnings)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fit(n_coalitions=200).explain(X[:3]).provenance.warnings == ()


def test_noise_as_large_as_the_values_asks_for_samples_where_all_coalitions_are_there():
    def flat(x):
        return np.asarray(x)[:, :3] @ [1.0, 0.01, 0.01] + 30 * np.sin(40 * np.asarray(x)[:, :3]).prod(axis=1)

    with pytest.warns(CondShapWarning, match=r"mean absolute value .*\. Raise n_samples\.$"):
        cs.explain(flat, X[:, :3], X[:3, :3], approach="independence", n_samples=3)


def test_fixed_plans_survive_a_file(tmp_path):
    explainer = fit(n_coalitions=100)
    explainer.save(tmp_path / "explainer")
    loaded = cs.load_explainer(tmp_path / "explainer", model)
    assert loaded.plan_.is_kriged
    before, after = explainer.explain(X[:2]), loaded.explain(X[:2])
    np.testing.assert_array_equal(after.values, before.values)
    assert after.provenance.n_coalitions == 100


def test_odd_number_of_coalitions_is_told_as_what_was_used():
    even, odd = (fit(n_coalitions=n).explain(X[:2]) for n in (80, 81))
    np.testing.assert_array_equal(even.values, odd.values)
    assert odd.provenance.n_coalitions == 80
