"""The draw check warns where draws do not look like rows, names the columns, and is quiet where they do."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import condshap as cs
from condshap.approaches.base import Capabilities, DrawnRows
from condshap.draw_check.result import DrawCheck
from condshap.exceptions import OptionError
from condshap.numerics.score_columns import learn_scores, score_rows
from condshap.studies.designs import burr_design, categorical_design, mixed_design
from condshap.testing.truth import GaussianTruth

RHO = 0.6
COVARIANCE = RHO + (1 - RHO) * np.eye(4)


class Margins(cs.approaches.Independence):
    """Every unknown column from another row, as collapsed networks draw."""

    name = "margins"
    capabilities = Capabilities(default_samples=128, expects=True, expects_exactly=True, is_storable=True)

    def sample(self, X, masks, n_samples, *, keys, seed):
        rng = np.random.default_rng([seed, *masks.sum(axis=1)])
        drawn = np.repeat(np.repeat(X[None, :, None], len(masks), axis=0), n_samples, axis=2)
        for c, mask in enumerate(masks):
            for j in np.flatnonzero(~mask):
                drawn[c, ..., j] = rng.choice(self.rows_[:, j], size=drawn.shape[1:3])
        return DrawnRows(drawn)


class Spoiled(GaussianTruth):
    """The truth, whose draws are half as far from their mean."""

    name = "spoiled"

    def sample(self, X, masks, n_samples, *, keys, seed):
        rows = super().sample(X, masks, n_samples, keys=keys, seed=seed).rows
        mean = rows.mean(axis=2, keepdims=True)
        return DrawnRows(mean + (rows - mean) / 2)


class Designed(Margins):
    """Draws of a design's own conditional distributions, with a share of the first level moved to the second."""

    name = "designed"

    def __init__(self, design, moved=0.0):
        self.design, self.moved = design, moved

    def sample(self, X, masks, n_samples, *, keys, seed):
        rows = self.design.sample_conditional(X, masks, n_samples, seed=seed, keys=keys).copy()
        rng = np.random.default_rng(seed)
        for c in np.flatnonzero(~masks[:, 0]):
            rows[c, (rows[c, ..., 0] == 0) & (rng.random(rows.shape[1:3]) < self.moved), 0] = 1
        return DrawnRows(rows)


def constant(table):
    return np.zeros(len(table))


def normals(n, seed=0, covariance=COVARIANCE):
    rows = np.random.default_rng(seed).multivariate_normal(np.zeros(len(covariance)), covariance, size=n)
    return pd.DataFrame(rows, columns=[f"x{j}" for j in range(len(covariance))])


def gems(n, seed=0):
    """Weight, three lengths that nearly repeat it, and a purity that falls with it."""
    rng = np.random.default_rng(seed)
    carat = np.exp(rng.normal(-0.4, 0.6, size=n))
    lengths = np.cbrt(carat)[:, None] * np.exp(0.01 * rng.normal(size=(n, 3)))
    purity = pd.cut(-np.log(carat) + rng.normal(size=n), [-np.inf, 0, 1, np.inf], labels=["SI", "VS", "IF"])
    return pd.DataFrame({"carat": carat, "x": lengths[:, 0], "y": lengths[:, 1], "z": lengths[:, 2], "purity": purity})


def fitted(table, approach, seed=0, **options):
    options = {"n_samples": 2, "additive": False, "progress": False, **options}
    return cs.Explainer(constant, approach=approach, seed=seed, **options).fit(table)


def checked(table, approach, seed=0, **options):
    """What the check finds, without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fitted(table, approach, seed, **options).draw_check_


# --- what it must see -------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("always")
def test_columns_that_repeat_each_other_are_named_when_they_are_drawn_apart():
    with pytest.warns(
        cs.CondShapWarning, match=r"do not in columns .*'carat'.* is -?0\.0\d in draws, (0\.9\d|1\.00) in rows"
    ) as caught:
        explainer = fitted(gems(600), Margins())
    assert set(explainer.draw_check_.columns) >= {"carat", "x", "y", "z"}
    assert explainer.draw_check_.score > 2
    assert explainer.warnings_ == (str(caught[0].message),)
    assert "check_draws=False" in str(caught[0].message)


def test_networks_that_have_learned_nothing_are_flagged():
    table = normals(500, covariance=0.99 + 0.01 * np.eye(4))
    found = checked(table, cs.approaches.VAEAC(epochs=1, scales=["standard"], advice=False, companions=False))
    assert set(found.columns) == set(table.columns)


def test_spread_that_is_halved_is_flagged():
    found = checked(normals(1000), Spoiled(np.zeros(4), COVARIANCE))
    assert found.score >= 1
    assert {one.kind for one in found.large} >= {"spread"}


def test_a_level_that_is_a_third_too_rare_is_flagged():
    design = mixed_design("M4", 0.5, 0)
    found = checked(design.draw(1000, 0), Designed(design, moved=1 / 3))
    assert any(one.kind == "frequency" and one.columns == ("x1",) for one in found.large)


def test_dependence_that_is_not_monotone_is_flagged():
    x = np.random.default_rng(0).normal(size=1000)
    table = pd.DataFrame({"x": x, "y": x**2 + 0.3 * np.random.default_rng(1).normal(size=1000)})
    found = checked(table, "copula")
    assert found.large[0].kind == "curved dependence"
    assert set(found.columns) == {"x", "y"}


def test_gaps_are_no_difference_and_hide_none():
    table = normals(800).mask(np.random.default_rng(1).random((800, 4)) < 0.2)
    table["level"] = pd.Categorical(np.where(table["x0"].fillna(0) > 0, "up", "down"))
    assert checked(table, Margins()).score >= 1
    independent = pd.DataFrame(np.random.default_rng(2).normal(size=(800, 4))).mask(
        np.random.default_rng(1).random((800, 4)) < 0.2
    )
    independent.columns = list("abcd")
    assert checked(independent, Margins()).score < 1


# --- where it must be quiet -------------------------------------------------------------------------------------------


def quiet_fits():
    """Data and approaches that suit them: 60 fits, small and large tables."""
    for seed in range(4):
        for n in (60, 300, 1500):
            yield normals(n, seed), "gaussian", seed
            yield normals(n, seed), GaussianTruth(np.zeros(4), COVARIANCE), seed
            yield burr_design(5, seed=seed).draw(n, seed), "copula", seed
            for design in (mixed_design("M4", 0.5, seed), categorical_design(4, 3, 0.5, seed)):
                yield design.draw(n, seed), Designed(design), seed


def test_draws_that_are_right_raise_no_alarm_in_60_fits():
    # 2 % false alarms would give none in 30 % of such runs; benchmarks/README.md has hundreds of fits
    assert sum(checked(*one).score >= 1 for one in quiet_fits()) == 0


def test_donors_on_enough_rows_raise_no_alarm():
    for approach in ("ctree", "empirical"):
        assert checked(normals(800), approach).looks_right


def test_independence_records_what_it_ignores_but_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        explainer = fitted(normals(300), "independence")
    assert explainer.draw_check_.score > 1


# --- where there is nothing to check, and what is done with it --------------------------------------------------------


@pytest.mark.parametrize("approach", ["regression_separate", cs.approaches.Empirical(bandwidth="aicc")])
def test_nothing_is_checked_where_nothing_is_drawn_or_the_model_would_be_asked(approach):
    options = {"n_samples": None} if approach == "regression_separate" else {}
    assert checked(normals(40), approach, **options) is None


def test_few_rows_are_not_judged():
    assert checked(normals(15), "gaussian") is None


def test_it_can_be_switched_off():
    assert checked(normals(100), Margins(), check_draws=False) is None
    with pytest.raises(OptionError, match="check_draws must be one of"):
        fitted(normals(100), "gaussian", check_draws="no")


def test_the_model_is_not_asked():
    calls = []

    def count(table):
        calls.append(len(table))
        return np.zeros(len(table))

    asked = []
    for check_draws in (True, False):
        calls.clear()
        cs.Explainer(count, approach="gaussian", additive=False, check_draws=check_draws).fit(normals(100))
        asked.append(list(calls))
    assert asked[0] == asked[1]


def test_groups_and_lists_of_approaches_are_checked_by_players_and_sizes():
    groups = {"one": ["x0", "x1"], "two": ["x2"], "three": ["x3"]}
    assert checked(normals(200), "gaussian", groups=groups).looks_right
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = fitted(normals(500), ["gaussian", "regression_separate", Margins()]).draw_check_
    assert {one.approach for one in found.large} == {"margins"}


def test_the_same_seed_finds_the_same():
    assert checked(normals(200), Margins()) == checked(normals(200), Margins())


def test_what_was_found_is_saved_with_the_explainer_and_the_explanation(tmp_path):
    table = normals(200)
    explainer = fitted(table, "independence")
    explainer.save(tmp_path / "explainer")
    loaded = cs.load_explainer(tmp_path / "explainer", constant)
    assert loaded.draw_check_ == explainer.draw_check_
    explanation = loaded.explain(table[:3])
    explanation.save(tmp_path / "explanation.parquet")
    assert cs.load_explanation(tmp_path / "explanation.parquet").provenance.draw_check == explainer.draw_check_


def test_it_reads_as_english_and_as_a_table():
    good, bad = checked(normals(300), "gaussian"), checked(normals(300), "independence")
    assert repr(good).startswith("DrawCheck: draws look like rows (300 rows")
    assert "draws do not look like rows in columns ['x" in repr(bad)
    frame = bad.to_frame()
    assert len(frame) == len(bad.worst)
    assert frame["is_large"].iloc[0]
    assert list(good.to_frame().columns) == list(frame.columns)
    assert DrawCheck.from_json(bad.to_json()) == bad


def test_the_report_shows_it(tmp_path):
    table = normals(200)
    for approach, words in (
        ("gaussian", "Draws look like rows"),
        ("independence", "Draws do not look like rows in columns"),
    ):
        page = cs.report(fitted(table, approach).explain(table[:5]), tmp_path / "report.html").read_text()
        assert words in page
    assert "Standard errors apart" in page


# --- scores -----------------------------------------------------------------------------------------------------------


def test_scores_have_mean_0_and_variance_1_whatever_the_column():
    rng = np.random.default_rng(0)
    rows = np.column_stack([np.exp(rng.normal(size=500)), rng.integers(0, 4, size=500), rng.integers(0, 2, size=500)])
    columns = learn_scores(rows, [0, 0, 2])
    scores = score_rows(columns, rows)
    np.testing.assert_allclose(scores.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(scores.std(axis=0), 1, atol=1e-9)
    assert [column.feature for column in columns] == [0, 0, 1, 1, 2]


def test_a_constant_column_does_no_harm():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert fitted(normals(100).assign(k=1.0), "independence").draw_check_.score > 1


def test_constant_columns_and_rare_levels_have_no_scores():
    rows = np.column_stack([np.ones(200), np.r_[np.zeros(199), 1]])
    assert learn_scores(rows, [0, 2]) == []
    two_values = np.r_[np.zeros(100), np.ones(100)][:, None]
    assert [column.is_square for column in learn_scores(two_values, [0])] == [False]
