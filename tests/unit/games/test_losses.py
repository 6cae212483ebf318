"""Loss explanations: worked numbers, sums, classifiers, several outputs, groups, files, plots, and what is refused."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import condshap as cs
from condshap.games.losses import OwnLosses

mpl.use("agg")
QUIET = {"progress": False, "check_draws": False}
NAMES = list("abcd")


def rows(n=120, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(rng.normal(size=(n, 4)) @ np.linalg.cholesky(0.5 * np.eye(4) + 0.5).T, columns=NAMES)


X = rows()
TRUTH = X["a"] * X["b"] + np.sin(2 * X["c"]) + X["d"]
Y = TRUTH + np.random.default_rng(5).normal(size=len(X)) * 0.5
SPECIES = np.array(["ada", "bea", "cid"])[np.digitize(TRUTH, [-0.5, 0.8])]
FOREST = RandomForestRegressor(30, random_state=0).fit(X, Y)
LOGISTIC = LogisticRegression().fit(X, SPECIES)


def fitted(model=FOREST, **options):
    return cs.Explainer(model, **{"approach": "gaussian", "n_samples": 32, **QUIET, **options}).fit(X)


def is_efficient(loss):
    scale = max(1.0, np.abs(loss.base_losses).max())
    return np.abs(loss.base_losses - loss.losses - loss.values.sum(axis=1)).max() < 1e-9 * scale


@pytest.fixture(scope="module")
def of_forest():
    return fitted().explain_loss(X[:30], Y[:30])


def test_worked_numbers_of_independence():
    # squared error of a linear model, all training rows as samples, so that nothing is random
    table = pd.read_csv(Path(__file__).parents[2] / "golden/data/airquality.csv")
    features = ["Solar.R", "Wind", "Temp", "Month", "Day"]
    model = LinearRegression().fit(table[features], table["Ozone"])
    train = table[table["split"] == "train"]
    options = {"approach": "independence", "n_samples": 108, "base_value": train["Ozone"].mean(), **QUIET}
    loss = cs.Explainer(model, **options).fit(train[features]).explain_loss(train[features], train["Ozone"])
    assert loss.base_losses.mean() == pytest.approx(1119.209877, abs=1e-5)
    wanted = [55.43766, 240.142265, 426.533911, -23.910317, -0.715193]
    np.testing.assert_allclose(loss.importance, wanted, atol=0.05)
    assert is_efficient(loss)
    assert not loss.std_errors.any()
    assert (loss.importance_std_errors > 0).all()  # rows


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", lambda y, v: np.log1p(np.abs(y - v))])
def test_values_sum_to_what_knowing_everything_lowers_the_loss_by(loss):
    found = fitted().explain_loss(X[:20], Y[:20], loss)
    assert found.values.shape == found.std_errors.shape == (20, 4)
    assert is_efficient(found)
    plain = {"squared_error": lambda d: d**2, "absolute_error": np.abs}.get(loss, lambda d: np.log1p(np.abs(d)))
    np.testing.assert_allclose(found.losses, plain(Y[:20] - FOREST.predict(X[:20])))
    np.testing.assert_allclose(found.base_losses, plain(Y[:20] - FOREST.predict(X).mean()))
    assert (found.std_errors > 0).all()


def test_a_function_of_squares_agrees_with_the_squared_error():
    named = fitted(n_samples=256).explain_loss(X[:20], Y[:20])
    own = fitted(n_samples=256).explain_loss(X[:20], Y[:20], lambda y, v: (y - v) ** 2)
    apart = np.abs(own.values - named.values) / np.hypot(own.std_errors, named.std_errors)
    assert apart.max() < 5
    assert own.value_table.n_evaluations > 1.9 * named.value_table.n_evaluations  # a second set of samples


@pytest.mark.parametrize("function", [lambda y, v: (y - v) ** 2, lambda y, v: np.exp(v - y), np.logaddexp])
def test_noise_of_two_estimates_leaves_no_bias_in_losses_of_ones_own(function):
    # 20,000 rows of noise 0.3: the mean is within 4 standard errors of the truth, that of losses of means 5 off at least
    noise, y, v = np.random.default_rng(0).normal(0, 0.3, (2, 1, 20_000, 1)), np.zeros(20_000), np.full(20_000, 0.5)
    losses = OwnLosses("own", function, y, has_outputs=False)
    found, _ = losses.from_halves(0.5 + noise, np.full(noise.shape, 0.09), np.arange(20_000))
    truth, error = function(y, v)[0], found.std() / np.sqrt(20_000)
    assert abs(found.mean() - truth) < 4 * error + 0.02 * 0.3**2
    assert function(y, 0.5 + noise.mean(axis=0)[0, :, 0]).mean() - truth > 5 * error


def test_importance_is_the_mean_and_its_error_has_the_rows_in_it(of_forest):
    np.testing.assert_allclose(of_forest.importance, of_forest.values.mean(axis=0))
    np.testing.assert_allclose(of_forest.importance_std_errors, of_forest.values.std(axis=0, ddof=1) / np.sqrt(30))
    assert np.isnan(of_forest[3].importance_std_errors).all()  # one row says nothing about others
    assert list(of_forest.importance_frame()["importance"]) == sorted(of_forest.importance, reverse=True)


def test_errors_of_left_out_coalitions_do_not_cancel_over_rows():
    wide = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 7)), columns=list("abcdefg"))
    explainer = cs.Explainer(lambda x: x.to_numpy().prod(axis=1), approach="gaussian", n_coalitions=40, **QUIET).fit(
        wide
    )
    loss = explainer.explain_loss(wide[:30], wide["a"][:30])
    assert not loss.provenance.is_exact
    rows_alone = loss.values.std(axis=0, ddof=1) / np.sqrt(30)
    np.testing.assert_allclose(loss.importance_std_errors, np.hypot(rows_alone, loss.std_errors.mean(axis=0)))


def test_log_loss_is_that_of_scikit_learn_and_takes_labels():
    loss = fitted(LOGISTIC).explain_loss(X[:40], SPECIES[:40], "log_loss")
    assert loss.losses.mean() == pytest.approx(log_loss(SPECIES[:40], LOGISTIC.predict_proba(X[:40])))
    base = LOGISTIC.predict_proba(X).mean(axis=0)
    np.testing.assert_allclose(loss.base_losses, -np.log(base[np.searchsorted(LOGISTIC.classes_, SPECIES[:40])]))
    assert is_efficient(loss)


@pytest.mark.parametrize("wrap", [list, pd.Series, pd.Categorical, lambda y: pl.Series(list(y)), lambda y: y[:, None]])
def test_labels_may_come_in_any_column(wrap):
    explainer = fitted(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, SPECIES))
    given = explainer.explain_loss(X[:5], wrap(SPECIES[:5]), "log_loss")
    np.testing.assert_array_equal(given.values, explainer.explain_loss(X[:5], SPECIES[:5], "log_loss").values)


def test_two_classes_have_one_log_loss_whichever_is_explained():
    model = LogisticRegression().fit(X, Y > 0)
    answers = (Y > 0).to_numpy()[:15]
    both = fitted(model).explain_loss(X[:15], answers, "log_loss")
    for output in ("name:True", "name:False"):
        one = fitted(model, output=output).explain_loss(X[:15], answers, "log_loss")
        np.testing.assert_allclose(one.values, both.values, atol=1e-9)
    function = fitted(lambda x: model.predict_proba(x)[:, 1]).explain_loss(X[:15], answers.astype(int), "log_loss")
    np.testing.assert_allclose(function.values, both.values, atol=1e-9)


def test_squared_error_of_a_classifier_is_the_brier_score():
    loss = fitted(LOGISTIC).explain_loss(X[:25], SPECIES[:25])
    truth = SPECIES[:25, None] == LOGISTIC.classes_
    np.testing.assert_allclose(loss.losses, ((truth - LOGISTIC.predict_proba(X[:25])) ** 2).sum(axis=1))
    one = fitted(LOGISTIC, output="bea").explain_loss(X[:25], SPECIES[:25])
    np.testing.assert_allclose(one.losses, ((truth - LOGISTIC.predict_proba(X[:25])) ** 2)[:, 1])


def test_probability_zero_of_the_true_class_is_announced():
    forest = RandomForestClassifier(5, random_state=0).fit(X, SPECIES)
    wrong = np.where(SPECIES == "ada", "cid", "ada")
    with pytest.warns(cs.CondShapWarning, match="above 0 for a finite log loss, got 0"):
        loss = fitted(forest).explain_loss(X[:20], wrong[:20], "log_loss")
    assert np.isfinite(loss.values).all()
    assert any("log loss" in text for text in loss.provenance.warnings)


def test_losses_of_several_outputs_are_added():
    answers = np.column_stack([Y, 2 * TRUTH])
    model = RandomForestRegressor(20, random_state=0).fit(X, answers)
    loss = fitted(model).explain_loss(X[:10], answers[:10])
    np.testing.assert_allclose(loss.losses, ((answers[:10] - model.predict(X[:10])) ** 2).sum(axis=1))
    own = fitted(model).explain_loss(X[:10], answers[:10], lambda y, v: ((y - v) ** 2).sum(axis=1))
    assert is_efficient(loss)
    apart = np.abs(own.values - loss.values) / np.hypot(own.std_errors, loss.std_errors)
    assert apart.max() < 5


def test_groups_are_players():
    loss = fitted(groups={"first": ["a", "b"], "last": ["c", "d"]}).explain_loss(X[:10], Y[:10])
    assert loss.player_names == ("first", "last")
    assert loss.values.shape == (10, 2)
    assert is_efficient(loss)


def test_auto_reaches_its_tolerance_for_shares_of_the_loss():
    wide = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 8)), columns=list("abcdefgh"))
    model = lambda x: x.to_numpy() @ np.arange(8.0) + x["a"].to_numpy() * x["b"].to_numpy()  # noqa: E731
    explainer = cs.Explainer(model, approach="gaussian", n_coalitions="auto", tolerance=0.1, **QUIET).fit(wide)
    loss = explainer.explain_loss(wide[:8], model(wide[:8]) + 1.0)
    assert loss.provenance.reached <= 0.1
    assert is_efficient(loss)
    exact = cs.Explainer(model, approach="gaussian", n_coalitions=256, **QUIET).fit(wide)
    truth = exact.explain_loss(wide[:8], model(wide[:8]) + 1.0)
    apart = np.abs(loss.values - truth.values) / np.hypot(loss.std_errors, truth.std_errors)
    assert np.mean(apart < 3) > 0.95


def test_a_row_does_not_depend_on_other_rows(of_forest):
    alone = fitted().explain_loss(X[7:8], Y[7:8])
    np.testing.assert_array_equal(alone.values[0], of_forest.values[7])


def test_a_feature_that_is_never_read_gets_nothing_by_independence():
    model = LinearRegression().fit(X, X["a"])
    model.coef_[1:] = 0.0
    loss = fitted(model, approach="independence").explain_loss(X[:10], Y[:10])
    assert not loss.values[:, 1:].any()


def test_a_link_has_no_say_in_losses():
    with_link = fitted(LOGISTIC, link="logit").explain_loss(X[:5], SPECIES[:5], "log_loss")
    np.testing.assert_array_equal(
        with_link.values, fitted(LOGISTIC).explain_loss(X[:5], SPECIES[:5], "log_loss").values
    )
    assert with_link.provenance.link is None


def test_file_brings_everything_back(of_forest, tmp_path):
    of_forest.save(tmp_path / "loss.parquet")
    found = cs.load_explanation(tmp_path / "loss.parquet")
    assert isinstance(found, cs.LossExplanation)
    for name in ("values", "std_errors", "base_losses", "losses", "importance", "importance_std_errors"):
        np.testing.assert_array_equal(getattr(found, name), getattr(of_forest, name))
    assert (found.loss, found.provenance) == (of_forest.loss, of_forest.provenance)
    pd.testing.assert_frame_equal(found.data, of_forest.data)
    np.testing.assert_array_equal(found.value_table.values, of_forest.value_table.values)


def test_a_loaded_explainer_explains_losses_as_the_saved_one(of_forest, tmp_path):
    fitted().save(tmp_path / "explainer.safetensors")
    again = cs.load_explainer(tmp_path / "explainer.safetensors", FOREST).explain_loss(X[:30], Y[:30])
    np.testing.assert_array_equal(again.values, of_forest.values)


def test_frame_has_a_line_per_row(of_forest):
    frame = of_forest.to_frame(errors=True)
    assert list(frame.columns) == ["base_loss", *NAMES, "loss", *(f"error of {name}" for name in NAMES)]
    np.testing.assert_allclose(frame["base_loss"] - frame[NAMES].sum(axis=1), frame["loss"])
    assert "30 rows x 4 players" in repr(of_forest)
    assert "importance" in of_forest._repr_html_()


def test_plots_say_what_they_show(of_forest):
    bar = cs.plots.bar(of_forest)
    assert bar.get_xlabel() == "mean decrease of the squared error of 30 rows"
    widths = sorted(patch.get_width() for patch in bar.patches)
    np.testing.assert_allclose(widths, sorted(of_forest.importance))
    fall = cs.plots.waterfall(of_forest, 2)
    assert fall.get_xlabel() == "squared error"
    labels = [text.get_text() for text in fall.get_yticklabels()]
    assert labels[0].startswith("loss = ")
    assert labels[-1].startswith("base loss = ")
    ends = next(line for line in fall.lines if line.get_marker() == "D").get_xdata()
    np.testing.assert_allclose(sorted(ends), sorted([of_forest.losses[2], of_forest.base_losses[2]]))
    assert cs.plots.beeswarm(of_forest).get_xlabel() == "decrease of the squared error"
    assert cs.plots.bar(of_forest, 2).get_xlabel() == "decrease of the squared error"
    with pytest.raises(cs.CondShapError, match="Draw losses with bar, waterfall or beeswarm"):
        cs.plots.heatmap(of_forest)


def test_report_shows_losses(of_forest, tmp_path):
    text = cs.report(of_forest, tmp_path / "loss.html", train=X).read_text()
    for words in ("Which features the model needs", "Loss (squared error)", "SAGE", "There is no MSEv here"):
        assert words in text
    with pytest.raises(cs.CondShapError, match="of one kind"):
        cs.report([of_forest, fitted().explain(X[:30])], tmp_path / "both.html")


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (Y[:9], r"one true answer for each of the 10 rows of X, shape \(10,\), got shape \(9,\)"),
        (np.append(Y[:9], np.nan), r"no missing values, got NaN or None in rows \[9\]"),
        ([None, *Y[:9]], r"no missing values, got NaN or None in rows \[0\]"),
        (np.append(Y[:9], np.inf), r"finite, got infinite numbers in rows \[9\]"),
        (["x"] * 10, "y must be numbers for a model without classes, got <U1"),
        (np.zeros((10, 2)), "a column for each of the 1 outputs"),
        (3.0, r"got shape \(\)"),
    ],
)
def test_bad_answers_are_refused(y, message):
    with pytest.raises(cs.CondShapError, match=message):
        fitted().explain_loss(X[:10], y)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        ("huber", r"loss must be one of \['squared_error', 'absolute_error', 'log_loss'\], or a function"),
        (None, "loss must be one of"),
        (lambda y, v: ((y - v) ** 2).mean(), r"one number per row, shape \(10,\), got shape \(\)"),
        (lambda y, v: (y - v)[:3], r"got shape \(3,\)"),
        (lambda y, v: np.stack([y, v]), r"got shape \(2, 10\)"),
        (
            lambda y, v: np.full(len(y), np.nan),
            r"finite numbers, got nan from '<lambda>' for y = [\d.]+ and prediction [\d.]+\.",
        ),
        (lambda y, v: y.nothing, "failed with AttributeError"),
        (lambda y: y, "failed with TypeError"),
        ("log_loss", "needs a classifier, got the regressor RandomForestRegressor"),
    ],
)
def test_bad_losses_are_refused(loss, message):
    with pytest.raises(cs.CondShapError, match=message):
        fitted().explain_loss(X[:10], Y[:10], loss)


def test_labels_that_the_model_does_not_know_are_refused():
    with pytest.raises(cs.CondShapError, match=r"\['ada', 'bea', 'cid'\], got \['dan'\] in rows \[2\]"):
        fitted(LOGISTIC).explain_loss(X[:3], ["ada", "bea", "dan"], "log_loss")
    with pytest.raises(cs.CondShapError, match="probabilities of all 3 classes"):
        fitted(LOGISTIC, output="bea").explain_loss(X[:3], SPECIES[:3], "log_loss")
    with pytest.raises(cs.CondShapError, match="probabilities from 0 to 1"):
        fitted(lambda x: x["a"].to_numpy() * 9).explain_loss(X[:3], [0, 1, 0], "log_loss")
    with pytest.raises(cs.CondShapError, match="y must be labels"):
        fitted(LOGISTIC).explain_loss(X[:3], np.zeros((3, 3)), "log_loss")


def test_one_sample_is_refused_because_its_noise_is_not_known():
    with pytest.raises(cs.CondShapError, match="n_samples of at least 2"):
        fitted(n_samples=1).explain_loss(X[:5], Y[:5])


def test_target_error_is_refused_because_it_is_about_predictions():
    with pytest.raises(cs.CondShapError, match="target_error, which is in units of the prediction"):
        fitted(n_samples=None, target_error=0.5).explain_loss(X[:5], Y[:5])


def test_unfitted_explainer_says_so():
    with pytest.raises(cs.CondShapError, match="must be fitted"):
        cs.Explainer(FOREST).explain_loss(X[:5], Y[:5])
