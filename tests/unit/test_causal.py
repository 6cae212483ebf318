"""Causal and asymmetric values through the whole house: worked numbers, axioms, files, command line and refusals."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression

import condshap as cs
from condshap.exceptions import ApproachError, CondShapWarning, OptionError

NAMES = ["a", "b", "c", "d"]
ORDER = [["a", "b"], ["c"], ["d"]]
QUIET = {"check_draws": False, "progress": False}


def table(n, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    b = 0.7 * a + rng.normal(size=n)
    c = a - 0.5 * b + rng.normal(size=n)
    return pd.DataFrame({"a": a, "b": b, "c": c, "d": 0.8 * c + rng.normal(size=n)})


TRAIN, ROWS = table(300), table(6, seed=1)


def curved(X):
    return X["a"] * X["c"] + np.abs(X["d"]) + X["b"]


def linear(X):
    return X.to_numpy() @ np.array([1.0, -2.0, 3.0, 0.5])


@pytest.mark.parametrize("approach", ["gaussian", "copula", "independence", "empirical", "ctree", "vaeac"])
def test_one_component_without_confounding_is_conditional_to_the_last_bit(approach):
    approach = cs.approaches.find_approach("vaeac")(epochs=2) if approach == "vaeac" else approach
    usual = cs.explain(curved, TRAIN, ROWS, approach=approach, seed=3, **QUIET)
    causal = cs.explain(
        curved, TRAIN, ROWS, approach=approach, seed=3, causal_ordering=[NAMES], confounding=False, **QUIET
    )
    np.testing.assert_array_equal(causal.values, usual.values)
    np.testing.assert_array_equal(causal.std_errors, usual.std_errors)
    np.testing.assert_array_equal(causal.model_errors, usual.model_errors)
    assert float(causal.msev) == float(usual.msev)


@pytest.mark.parametrize("approach", ["gaussian", "copula", "ctree", "empirical", "regression_separate"])
def test_asymmetric_with_one_component_is_ordinary(approach):
    usual = cs.explain(curved, TRAIN, ROWS, approach=approach, **QUIET)
    one = cs.explain(curved, TRAIN, ROWS, approach=approach, causal_ordering=[NAMES], asymmetric=True, **QUIET)
    np.testing.assert_array_equal(one.values, usual.values)
    np.testing.assert_array_equal(one.std_errors, usual.std_errors)


def test_one_confounded_component_is_the_marginal_game():
    # the normal model's own margins in place of the rows': for a linear model only means count
    causal = cs.explain(linear, TRAIN, ROWS, approach="gaussian", causal_ordering=[NAMES], confounding=True, **QUIET)
    marginal = cs.explain(linear, TRAIN, ROWS, approach="independence", n_samples=len(TRAIN), **QUIET)
    assert (np.abs(causal.values - marginal.values) <= 4 * causal.std_errors + 1e-9).all()


@pytest.mark.parametrize("approach", ["ctree", "empirical"])
def test_donors_of_a_confounded_component_are_all_training_rows_whatever_their_order(approach):
    # more rows than donors, in an order that matters; six rows, four players, 4.5 standard errors
    train = table(600).sort_values("a", ignore_index=True)
    ours = cs.explain(curved, train, ROWS, approach=approach, causal_ordering=[NAMES], confounding=True, **QUIET)
    theirs = cs.explain(curved, train, ROWS, approach="independence", n_samples=len(train), **QUIET)
    assert (np.abs(ours.values - theirs.values) <= 4.5 * ours.std_errors).all()


def test_values_of_a_component_sum_to_the_step_of_v():
    found = cs.explain(curved, TRAIN, ROWS, approach="gaussian", causal_ordering=ORDER, asymmetric=True, **QUIET)
    of = {tuple(mask): v for mask, v in zip(found.value_table.coalitions, found.value_table.values, strict=True)}
    first = of[True, True, False, False] - of[False, False, False, False]
    np.testing.assert_allclose(found.values[:, :2].sum(axis=1), first, atol=1e-12)
    np.testing.assert_allclose(found.values[:, 2], of[True, True, True, False] - of[True, True, False, False])
    np.testing.assert_allclose(found.base_values + found.values.sum(axis=1), found.predictions, atol=1e-9)


@pytest.mark.parametrize(
    "options", [{"confounding": True}, {"confounding": False}, {"confounding": False, "asymmetric": True}]
)
def test_a_feature_that_is_ignored_and_has_no_effects_gets_nothing(options):
    model = LinearRegression().fit(TRAIN, TRAIN["a"] + 2 * TRAIN["c"])
    model.coef_ = np.array([1.0, 0.0, 2.0, 0.0])
    order = [["a"], ["c"], ["b"], ["d"]]
    found = cs.explain(model, TRAIN, ROWS, approach="gaussian", causal_ordering=order, **options, **QUIET)
    np.testing.assert_allclose(found.values[:, [1, 3]], 0.0, atol=1e-9)


def test_indirect_effects_count_for_causes():
    # f reads c alone, which b drives: causal values give b the part that it passes on, marginal ones nothing
    model = LinearRegression().fit(TRAIN, TRAIN["c"])
    model.coef_ = np.array([0.0, 0.0, 1.0, 0.0])
    causal = cs.explain(model, TRAIN, ROWS, approach="gaussian", causal_ordering=ORDER, confounding=True, **QUIET)
    assert np.abs(causal.values[:, :2]).min() > 0.01
    np.testing.assert_allclose(causal.values[:, 3], 0.0, atol=1e-9)  # an effect of c is no cause of it


def test_closed_form_of_additive_models_is_what_draws_tend_to():
    options = {"approach": "gaussian", "causal_ordering": ORDER, "confounding": [True, False, False], **QUIET}
    model = LinearRegression().fit(TRAIN, TRAIN["a"])
    model.coef_ = np.array([1.0, -2.0, 3.0, 0.5])
    exact = cs.explain(model, TRAIN, ROWS, **options)
    drawn = cs.explain(model, TRAIN, ROWS, additive=False, n_samples=512, **options)
    assert (exact.std_errors == 0).all()
    assert exact.value_table.n_evaluations == len(ROWS)
    assert (drawn.std_errors > 0).all()
    assert (np.abs(drawn.values - exact.values) <= 4 * drawn.std_errors + 1e-9).all()
    # curves: trees that look at one feature each
    forest = RandomForestRegressor(20, max_depth=1, random_state=0).fit(TRAIN, TRAIN["a"] + TRAIN["c"])
    exact = cs.explain(forest, TRAIN, ROWS, **options)
    drawn = cs.explain(forest, TRAIN, ROWS, additive=False, n_samples=512, **options)
    assert (exact.std_errors == 0).all()
    assert (np.abs(drawn.values - exact.values) <= 4.5 * drawn.std_errors + 1e-9).all()


def test_groups_are_players_and_outputs_are_many():
    y = (TRAIN["a"] + TRAIN["d"] > 0).map({True: "yes", False: "no"})
    model = RandomForestClassifier(50, random_state=0).fit(TRAIN, y)
    groups = {"roots": ["a", "b"], "middle": ["c"], "end": ["d"]}
    options = {"groups": groups, "causal_ordering": [["roots"], ["middle", "end"]], "approach": "ctree", **QUIET}
    found = cs.explain(model, TRAIN, ROWS, confounding=False, asymmetric=True, **options)
    assert found.values.shape == (6, 3, 2)
    np.testing.assert_allclose(found.base_values + found.values.sum(axis=1), found.predictions, atol=1e-9)
    np.testing.assert_allclose(found.values[..., 0], -found.values[..., 1], atol=1e-12)


def test_missing_values_with_vaeac():
    X, rows = table(100), table(4, seed=2)
    X.iloc[::5, 0] = np.nan
    rows.iloc[0, 0] = rows.iloc[1, 2] = np.nan
    model = RandomForestRegressor(30, random_state=0).fit(X, X["c"])
    vaeac = cs.approaches.find_approach("vaeac")(epochs=2)
    found = cs.explain(model, X, rows, approach=vaeac, causal_ordering=ORDER, confounding=False, **QUIET)
    assert np.isfinite(found.values).all()
    np.testing.assert_allclose(found.base_values + found.values.sum(axis=1), found.predictions, atol=1e-9)
    alone = cs.explain(model, X, rows[:1], approach=vaeac, causal_ordering=ORDER, confounding=False, **QUIET)
    np.testing.assert_allclose(alone.values, found[:1].values, atol=1e-12)


def test_blocks_and_jobs_do_not_change_numbers():
    options = {"approach": "ctree", "causal_ordering": ORDER, "confounding": [True, False, False], **QUIET}
    first = cs.explain(curved, TRAIN, ROWS, **options)
    for other in ({"memory_budget": "1MB"}, {"n_jobs": 2}, {"progress": True}):
        again = cs.explain(curved, TRAIN, ROWS, **{**options, **other})
        np.testing.assert_array_equal(again.values, first.values)
        np.testing.assert_array_equal(again.std_errors, first.std_errors)


def test_more_than_ten_players_are_sampled_with_auto_or_a_number():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 12)) + rng.normal(size=(200, 1))
    order, weights = [[*range(6)], [*range(6, 12)]], np.linspace(-1, 1, 12)

    def model(x):
        return x @ weights + x[:, 0] * x[:, 7]

    options = {"approach": "gaussian", "causal_ordering": order, "confounding": True, **QUIET}
    auto = cs.explain(model, X, X[:3], n_coalitions="auto", tolerance=0.05, **options)
    fixed = cs.explain(model, X, X[:3], n_coalitions=400, **options)
    assert (np.abs(auto.values - fixed.values) <= 5 * np.hypot(auto.std_errors, fixed.std_errors)).all()
    large = cs.explain(
        model, X, X[:3], approach="gaussian", causal_ordering=[[*range(11)], [11]], asymmetric=True, **QUIET
    )
    assert not large.provenance.is_exact
    assert large.provenance.n_coalitions <= 1002
    np.testing.assert_allclose(large.base_values + large.values.sum(axis=1), large.predictions, atol=1e-9)


def test_target_error_holds_for_causal_values():
    found = cs.explain(
        curved, TRAIN, ROWS, approach="gaussian", target_error=0.02, causal_ordering=ORDER, confounding=True, **QUIET
    )
    assert found.std_errors.max() <= 0.02


@pytest.mark.parametrize("approach", ["gaussian", "ctree"])
def test_saved_explainers_and_explanations_keep_the_order(approach, tmp_path):
    order = (np.array(["a", "b"]), ("c",), ["d"])
    explainer = cs.Explainer(
        curved, approach=approach, causal_ordering=order, confounding=[True, False, False], asymmetric=True, **QUIET
    ).fit(TRAIN)
    explainer.save(tmp_path / "explainer.condshap")
    again = cs.load_explainer(tmp_path / "explainer.condshap", curved)
    first, second = explainer.explain(ROWS), again.explain(ROWS)
    np.testing.assert_array_equal(first.values, second.values)
    assert again.causal_ordering == [["a", "b"], ["c"], ["d"]]
    second.save(tmp_path / "explanation.parquet")
    read = cs.load_explanation(tmp_path / "explanation.parquet").provenance
    assert (read.causal_ordering, read.confounding, read.asymmetric) == (
        (("a", "b"), ("c",), ("d",)),
        (True, False, False),
        True,
    )
    assert read.made_by == first.provenance.made_by
    usual = cs.Explainer(curved, approach=approach, **QUIET).fit(TRAIN).explain(ROWS)
    assert usual.provenance.made_by != first.provenance.made_by


def test_provenance_says_what_the_values_are():
    found = cs.explain(
        curved, TRAIN, ROWS, approach="gaussian", causal_ordering=ORDER, confounding=[True, False, False], **QUIET
    )
    assert found.provenance.question == "causal, in the order a, b (confounded) -> c -> d"
    assert "Causal, in the order a, b (confounded) -&gt; c -&gt; d" in found._repr_html_()
    assert "MSEv" not in found._repr_html_()
    assert cs.explain(curved, TRAIN, ROWS, approach="gaussian", **QUIET).provenance.question == "conditional"


def test_msev_judges_conditional_values_only():
    options = {"approach": "gaussian", "causal_ordering": ORDER, **QUIET}
    causal = cs.explain(curved, TRAIN, ROWS, confounding=False, **options)
    with pytest.raises(OptionError, match="judges conditional"):
        _ = causal.msev
    assert np.isfinite(float(cs.explain(curved, TRAIN, ROWS, asymmetric=True, **options).msev))
    with pytest.raises(OptionError, match="judges conditional"):
        cs.compare(curved, TRAIN, ROWS, approaches=["gaussian", "copula"], causal_ordering=ORDER, confounding=True)


def test_the_report_shows_a_causal_explanation(tmp_path):
    causal = cs.explain(curved, TRAIN, ROWS, approach="gaussian", causal_ordering=ORDER, confounding=True, **QUIET)
    cs.report(causal, tmp_path / "report.html")
    head, _, rest = (tmp_path / "report.html").read_text().partition("</header>")
    assert "gaussian · causal, in the order a, b (confounded)" in head
    assert "causal, in the order a, b (confounded)" in rest  # among the facts, too
    cs.report(cs.explain(curved, TRAIN, ROWS, approach="gaussian", **QUIET), tmp_path / "usual.html")
    assert "conditional" not in (tmp_path / "usual.html").read_text().partition("</header>")[0].partition("<body>")[2]


def test_an_order_alone_changes_nothing_and_says_so():
    with pytest.warns(CondShapWarning, match="changes nothing without confounding or asymmetric"):
        found = cs.explain(curved, TRAIN, ROWS, approach="gaussian", causal_ordering=ORDER, **QUIET)
    usual = cs.explain(curved, TRAIN, ROWS, approach="gaussian", **QUIET)
    np.testing.assert_array_equal(found.values, usual.values)
    assert found.provenance.causal_ordering is None


@pytest.mark.parametrize("approach", ["regression_separate", "regression_surrogate"])
def test_regression_refuses_causal_values_and_accepts_asymmetric_ones(approach):
    with pytest.raises(ApproachError, match=f"need an approach that samples, got '{approach}'"):
        cs.explain(curved, TRAIN, ROWS, approach=approach, causal_ordering=ORDER, confounding=True, **QUIET)
    found = cs.explain(curved, TRAIN, ROWS, approach=approach, causal_ordering=ORDER, asymmetric=True, **QUIET)
    np.testing.assert_allclose(found.base_values + found.values.sum(axis=1), found.predictions, atol=1e-9)


def test_bandwidths_that_ask_the_model_are_refused():
    approach = cs.approaches.find_approach("empirical")(bandwidth="aicc")
    with pytest.raises(ApproachError, match="Use bandwidth='fixed'"):
        cs.explain(curved, TRAIN, ROWS, approach=approach, causal_ordering=ORDER, confounding=True, **QUIET)


@pytest.mark.parametrize(
    "options", [{"n_coalitions": "auto"}, {"coalitions": cs.CoalitionPlan.given(np.eye(4, dtype=bool), np.ones(4))}]
)
def test_asymmetric_values_choose_their_own_coalitions(options):
    with pytest.raises(OptionError, match="asymmetric=True cannot be combined with"):
        cs.explain(curved, TRAIN, ROWS, approach="gaussian", causal_ordering=ORDER, asymmetric=True, **options, **QUIET)


def test_refining_goes_on_with_the_same_order():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 11)) + rng.normal(size=(200, 1))
    options = {"approach": "gaussian", "n_coalitions": "auto", **QUIET}

    def model(x):
        return x[:, 0] * x[:, 5] + x.sum(axis=1)

    explainer = cs.Explainer(
        model, causal_ordering=[[0, 1], [*range(2, 11)]], confounding=True, tolerance=0.2, **options
    )
    first = explainer.fit(X).explain(X[:2])
    finer = explainer.refine(first, tolerance=0.05)
    assert finer.provenance.reached <= 0.05
    other = cs.Explainer(model, tolerance=0.2, **options).fit(X)
    with pytest.raises(OptionError, match="made by another"):
        other.refine(first, tolerance=0.05)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    import joblib

    folder = tmp_path_factory.mktemp("causal")
    joblib.dump(LinearRegression().fit(TRAIN, TRAIN["c"] + TRAIN["a"]), folder / "model.joblib")
    TRAIN.to_csv(folder / "train.csv", index=False)
    ROWS.to_csv(folder / "rows.csv", index=False)
    return folder


def run(folder, *words):
    from typer.testing import CliRunner

    from condshap.cli import app

    files = [
        "--model",
        folder / "model.joblib",
        "--trust-model",
        "--train",
        folder / "train.csv",
        "--rows",
        folder / "rows.csv",
    ]
    out = folder / "out.parquet"
    result = CliRunner().invoke(
        app, [str(word) for word in ["explain", *files, "--out", out, "--approach", "gaussian", *words]]
    )
    return result, out


def test_the_command_line_takes_an_order(folder):
    words = ["--causal-ordering", "a,b", "--causal-ordering", "c", "--causal-ordering", "d"]
    result, out = run(
        folder, *words, "--confounding", "yes", "--confounding", "no", "--confounding", "no", "--asymmetric"
    )
    assert result.exit_code == 0, result.output
    assert "asymmetric causal, in the order a, b (confounded) -> c -> d" in " ".join(result.output.split())
    assert "MSEv" not in result.output
    found = cs.load_explanation(out)
    assert found.provenance.confounding == (True, False, False)
    result, _ = run(folder, *words, "--confounding", "yes", "--json")
    assert json.loads(result.stdout)["msev"] is None
    result, _ = run(folder, "--causal-ordering", "a,b", "--confounding", "yes")
    assert result.exit_code != 0
    assert "these are missing" in " ".join(result.output.split())
