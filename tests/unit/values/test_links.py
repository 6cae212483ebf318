"""Log-odds: link="logit" explains logit(v(S)), says so everywhere, and refuses what has no finite log-odds."""

from __future__ import annotations

from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression

import condshap as cs
from condshap.precision.members import MemberSpread
from condshap.solvers import solve_shapley
from condshap.values.table import Settings
from condshap.values.valuation import value_table

mpl.use("agg")
QUIET = {"progress": False, "check_draws": False}
RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(200, 4)) @ np.linalg.cholesky(0.5 * np.eye(4) + 0.5).T, columns=list("abcd"))
Y = (X @ [1.0, 1.0, -1.0, 0.5] + RNG.logistic(size=200) > 0).astype(int)
MODEL = LogisticRegression().fit(X, Y)


def logit(p):
    return np.log(p / (1 - p))


def fitted(model=MODEL, **options):
    return cs.Explainer(model, **{"approach": "gaussian", "link": "logit", **QUIET, **options}).fit(X)


@pytest.fixture(scope="module")
def linked():
    return fitted(output=1).explain(X[:6])


def test_values_predictions_and_base_values_are_log_odds(linked):
    np.testing.assert_allclose(linked.predictions, MODEL.decision_function(X[:6]), rtol=1e-9)
    np.testing.assert_allclose(linked.base_values, logit(MODEL.predict_proba(X)[:, 1].mean()))
    np.testing.assert_allclose(linked.base_values + linked.values.sum(axis=1), linked.predictions, atol=1e-9)
    assert linked.provenance.link == "logit"


def test_values_are_those_of_the_game_of_log_odds(linked):
    # by definition, from v(S) of an explanation of probabilities with the same samples
    plain = fitted(output=1, link=None).explain(X[:6])
    v = logit(plain.value_table.values)[..., None]
    wanted = solve_shapley(v, np.zeros_like(v), fitted(output=1).plan_).values[..., 0]
    assert np.abs(linked.values - wanted).max() < 1e-3  # what is taken off as bias
    assert np.abs(linked.values - wanted).max() > 0
    slope = 1 / (plain.value_table.values * (1 - plain.value_table.values))
    np.testing.assert_allclose(
        linked.value_table.std_errors, slope * plain.value_table.std_errors, rtol=0.01, atol=1e-12
    )


def test_without_noise_it_is_shap_kernel_explainers_game():
    # all rows as samples: v(S) of independence has no noise
    exact = fitted(approach="independence", n_samples=200, output=1).explain(X[:3])
    plain = fitted(approach="independence", n_samples=200, output=1, link=None).explain(X[:3])
    np.testing.assert_allclose(exact.value_table.values, logit(plain.value_table.values), rtol=1e-12)
    assert not exact.std_errors.any()


def test_few_samples_are_right_on_average():
    # 100 seeds: means are known to a tenth of one deviation; 12 values are checked at 4.5 of their errors, 1e-4 false alarms
    many = fitted(approach="independence", n_samples=200, output=1).explain(X[:3])
    few, plain = fitted(approach="independence", n_samples=10, output=1), []
    found = []
    for seed in range(100):
        one = few.set_params(seed=seed).explain(X[:3])
        found.append(one.value_table.values)
        v = fitted_probabilities(few, one)
        plain.append(logit(v))
    found, plain = np.array(found)[:, 1:-1], np.array(plain)[:, 1:-1]
    truth = many.value_table.values[1:-1]
    bias, naive = found.mean(axis=0) - truth, plain.mean(axis=0) - truth
    assert np.abs(bias).mean() < np.abs(naive).mean()
    assert (np.abs(bias) < 4.5 * found.std(axis=0) / 10 + 0.02).all()


def fitted_probabilities(explainer, explanation):
    """v(S) of the same samples, before the link."""
    game = explainer.game_
    rows = game.schema.encode(explanation.data)
    plain = replace(game, link=None, seed=explanation.provenance.seed)
    outputs = game.predictor(rows.copy())
    return value_table(plain, rows, outputs, np.arange(len(game.plan.masks)), Settings(progress=False)).values[..., 0]


def test_classes_have_log_odds_each():
    three = LogisticRegression().fit(X, np.digitize(X["a"], [-0.5, 0.5]))
    found = fitted(three).explain(X[:4])
    assert found.values.shape == (4, 4, 3)
    np.testing.assert_allclose(found.predictions, logit(three.predict_proba(X[:4])), rtol=1e-9)
    both = fitted().explain(X[:4])
    np.testing.assert_allclose(both.values[..., 0], -both.values[..., 1], atol=1e-9)  # odds of the other class


def test_functions_of_probabilities_go_as_well():
    found = fitted(lambda x: MODEL.predict_proba(x)[:, 1]).explain(X[:4])
    np.testing.assert_allclose(found.predictions, MODEL.decision_function(X[:4]), rtol=1e-9)


def test_errors_of_training_are_log_odds_too():
    # members differ by little, so that their log-odds differ by the slope times as much
    plan = fitted().plan_
    rng = np.random.default_rng(0)
    means = rng.uniform(0.2, 0.8, size=(len(plan.masks), 3, 1))
    apart = 1e-6 * rng.normal(size=(4, *means.shape))
    members = means + apart - apart.mean(axis=0)
    spreads = MemberSpread(plan, 3, 1, link="logit"), MemberSpread(plan, 3, 1)
    every = np.arange(len(plan.masks))
    spreads[0].add(every, slice(None), members - means, means)
    of_log_odds = logit(members)
    spreads[1].add(every, slice(None), of_log_odds - of_log_odds.mean(axis=0))
    noise = np.full(means.shape, 1e-14)
    spreads[0].count_noise(noise, means)
    spreads[1].count_noise(noise / (means * (1 - means)) ** 2)
    nobody = np.zeros((3, 4), dtype=bool)
    np.testing.assert_allclose(spreads[0].errors(nobody), spreads[1].errors(nobody), rtol=1e-4)


def test_auto_and_refine_go_on_in_log_odds():
    options = {"approach": "gaussian", "n_coalitions": "auto", "output": 1}
    first = fitted(**options, tolerance=0.3)
    refined = first.refine(first.explain(X[:4]), tolerance=0.02)
    at_once = fitted(**options, tolerance=0.02).explain(X[:4])
    np.testing.assert_array_equal(refined.values, at_once.values)
    np.testing.assert_allclose(refined.predictions, MODEL.decision_function(X[:4]), rtol=1e-9)
    with pytest.raises(cs.CondShapError, match=r"made by another one|differ"):
        fitted(**options, link=None).refine(at_once, tolerance=0.01)


def test_saved_explainers_and_explanations_keep_it(linked, tmp_path):
    fitted(output=1).save(tmp_path / "explainer.safetensors")
    again = cs.load_explainer(tmp_path / "explainer.safetensors", MODEL)
    assert again.link == "logit"
    np.testing.assert_array_equal(again.explain(X[:6]).values, linked.values)
    linked.save(tmp_path / "linked.parquet")
    assert cs.load_explanation(tmp_path / "linked.parquet").provenance == linked.provenance


def test_one_call_takes_it(linked):
    found = cs.explain(MODEL, X, X[:6], approach="gaussian", link="logit", output=1, **QUIET)
    np.testing.assert_array_equal(found.values, linked.values)


def test_plots_and_notebook_say_log_odds(linked):
    assert cs.plots.bar(linked).get_xlabel() == "mean |Shapley value| of 6 rows, log-odds"
    assert cs.plots.waterfall(linked, 0).get_xlabel() == "prediction, log-odds"
    assert cs.plots.beeswarm(linked).get_xlabel() == "Shapley value, log-odds"
    assert cs.plots.scatter(linked, "a").get_ylabel() == "Shapley value, log-odds"
    assert cs.plots.compare([linked, linked]).get_xlabel() == "Shapley value, log-odds"
    assert "log-odds" in linked._repr_html_()
    assert "MSEv" not in linked._repr_html_()


def test_report_says_log_odds_and_shows_no_msev(linked, tmp_path):
    text = cs.report(linked, tmp_path / "linked.html").read_text()
    assert "log-odds of the model" in text
    assert "There is no MSEv here" in text
    assert "MSEv (smaller is better)" not in text


def test_msev_is_refused_because_it_judges_probabilities(linked):
    with pytest.raises(cs.CondShapError, match="these values are log-odds"):
        _ = linked.msev
    with pytest.raises(cs.CondShapError, match="these values are log-odds"):
        cs.plots.msev(linked)
    with pytest.raises(cs.CondShapError, match="compared without link"):
        cs.compare(MODEL, X, X[:3], approaches=["gaussian"], link="logit")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"link": "probit"}, r"link must be None or one of \['logit'\], got 'probit'"),
        ({"link": 1}, "link must be None or one of"),
        ({"model": LinearRegression().fit(X, Y)}, "needs a classifier, because log-odds"),
        ({"model": lambda x: x["a"].to_numpy()}, "a model that returns probabilities, got numbers from"),
        ({"target_error": 0.1}, "target_error cannot be combined with link"),
        ({"n_samples": 1}, "n_samples must be at least 2 with link"),
        ({"base_value": 0.0}, "above 0 and below 1"),
        ({"base_value": -1.0}, "returns probabilities"),
        ({"model": lambda x: np.zeros(len(x))}, "above 0 and below 1"),
    ],
)
def test_what_has_no_log_odds_is_refused(options, message):
    with pytest.raises(cs.CondShapError, match=message):
        fitted(**options)


def test_sure_predictions_are_refused_by_their_rows_before_training():
    forest = RandomForestClassifier(20, random_state=0).fit(X, Y)
    sure = np.flatnonzero((forest.predict_proba(X) == 0).any(axis=1))[:1]
    unsure = np.flatnonzero((forest.predict_proba(X) > 0).all(axis=1))[:1]
    chosen = X.iloc[[*unsure, *sure]]
    with pytest.raises(cs.CondShapError, match=r"for rows \[1\]. Calibrate"):
        fitted(forest).explain(chosen)
    with pytest.raises(cs.CondShapError, match=r"for rows \[1\]. Calibrate"):
        cs.explain(forest, X, chosen, approach="ctree", link="logit", **QUIET)


def test_coalitions_that_are_sure_are_refused():
    # 0 unless both are positive: what the explained row is, but not what it is given one of them
    def model(x):
        both = (x["a"] > 0) & (x["b"] > 0) & (x["a"] < 0.1)
        return np.where(both, 0.5, 0.0)

    rows = pd.DataFrame([[0.05, 0.05, 0.0, 0.0]], columns=list("abcd"))
    explainer = fitted(model, base_value=0.1, n_samples=4)
    with pytest.raises(cs.CondShapError, match="v\\(S\\) above 0 and below 1"):
        explainer.explain(rows)
