"""What is read of an additive model is the model: no leaf is too narrow, and every row is a proof."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import ExtraTreesRegressor, GradientBoostingRegressor, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    PowerTransformer,
    SplineTransformer,
    StandardScaler,
)
from sklearn.tree import DecisionTreeRegressor

import condshap as cs
from condshap.exceptions import CondShapWarning, OptionError
from condshap.numerics.curves import CurvedFunction

X = np.random.default_rng(0).uniform(size=(5000, 3))
NARROW = 0.337
ROW = np.array([[NARROW, 0.5, 0.5]])


def leaf(X, width=0.0005):
    return np.where(np.abs(np.asarray(X)[:, 0] - NARROW) < width, 100.0, 0.0)


def fitted(model, approach="independence", rows=X, **options):
    return cs.Explainer(model, approach=approach, check_draws=False, **options).fit(rows)


def exact(model, rows, train=X):
    """By all training rows, each asked of the model."""
    return fitted(model, rows=train, additive=False, n_samples=len(train)).explain(rows)


STEPS = {
    "none": None,
    "scaled": StandardScaler(),
    "powers": make_pipeline(MinMaxScaler((1.0, 2.0)), PowerTransformer()),
    "columns": make_column_transformer((StandardScaler(), [2, 0]), ("passthrough", [1])),
}


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize(
    "tree",
    [
        DecisionTreeRegressor(max_depth=2),
        GradientBoostingRegressor(max_depth=1, n_estimators=40),
        HistGradientBoostingRegressor(max_iter=20, interaction_cst="no_interactions", min_samples_leaf=1),
        ExtraTreesRegressor(30, max_depth=1, random_state=0),
    ],
    ids=lambda tree: type(tree).__name__,
)
def test_narrow_leaves_are_read(tree, steps):
    target = leaf(X) + (0 if isinstance(tree, DecisionTreeRegressor) else 3 * X[:, 1])
    model = (tree if STEPS[steps] is None else make_pipeline(STEPS[steps], tree)).fit(X, target)
    explainer, rows = fitted(model), np.vstack([ROW, X[:3]])
    assert isinstance(explainer.function_, CurvedFunction)
    read = explainer.explain(rows)
    assert read.value_table.n_evaluations == 4
    np.testing.assert_allclose(read.values, exact(model, rows).values, atol=1e-9)


@pytest.mark.parametrize("n_inside", [1, 8])
@pytest.mark.parametrize("name", ["xgboost", "lightgbm"])
def test_narrow_leaves_of_others_are_read(name, n_inside):
    others = pytest.importorskip(name)
    small = {"num_leaves": 2, "verbose": -1, "min_child_samples": 1, "max_bin": 2000}
    make, shape = (others.XGBRegressor, {"max_depth": 1}) if name == "xgboost" else (others.LGBMRegressor, small)
    inside = np.argsort(X[:, 0])[700 : 700 + n_inside]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make(n_estimators=30, **shape).fit(X, np.isin(np.arange(len(X)), inside) * 50.0)
        explainer = fitted(model)
        wanted = exact(model, X[inside[:1]])
    assert isinstance(explainer.function_, CurvedFunction)
    np.testing.assert_allclose(explainer.explain(X[inside[:1]]).values, wanted.values, atol=1e-4)


def test_the_row_of_a_narrow_leaf_gets_its_value():
    tree = DecisionTreeRegressor(max_depth=2).fit(X, leaf(X))
    for approach, allowed in (("independence", 1e-9), ("gaussian", 0.05)):
        values = fitted(tree, approach).explain(ROW).values[0]
        np.testing.assert_allclose(values, [100 - leaf(X).mean(), 0, 0], atol=allowed)


def test_levels_and_numbers_of_stumps_are_read():
    levels = pd.Categorical(np.digitize(X[:, 2], [0.3, 0.6]).astype(str))
    table = pd.DataFrame({"c": levels, "a": X[:, 0], "n": X[:, 1]})
    encode = make_column_transformer((OneHotEncoder(), ["c"]), (StandardScaler(), ["n"]), remainder="passthrough")
    stumps = GradientBoostingRegressor(max_depth=1, n_estimators=30)
    model = make_pipeline(encode, stumps).fit(table, leaf(X) + 9 * X[:, 2])
    rows = pd.concat([table.iloc[:3], table.iloc[:1].assign(a=NARROW)])
    explainer = fitted(model, rows=table)
    assert explainer.function_ is not None
    np.testing.assert_allclose(explainer.explain(rows).values, exact(model, rows, table).values, atol=1e-9)


def test_trees_whose_thresholds_cannot_be_traced_are_asked():
    model = make_pipeline(SplineTransformer(), DecisionTreeRegressor(max_depth=1)).fit(X, leaf(X))
    assert fitted(model).function_ is None


def test_leaves_beyond_the_rows_of_the_explainer_count_too():
    wide = np.random.default_rng(1).normal(size=(4000, 3))
    model = DecisionTreeRegressor(max_depth=2).fit(wide, np.where(np.abs(wide[:, 0] - 2) < 0.01, 100.0, 0.0))
    some = wide[np.abs(wide[:, 0]) < 0.3]
    explainer = fitted(model, "gaussian", some)
    assert explainer.function_.curves[0].edges[-1] > 2
    grid = np.column_stack([np.linspace(-5, 5, 100_001), np.zeros((100_001, 2))])
    np.testing.assert_allclose(explainer.function_(grid)[:, 0], model.predict(grid), atol=1e-9)


def test_bins_that_training_rows_show_to_be_missed_are_asked():
    bins = KBinsDiscretizer(3, strategy="quantile", quantile_method="averaged_inverted_cdf").fit(X)
    bins.bin_edges_[0] = np.array([0.0, NARROW - 1e-6, NARROW + 1e-6, 1.0])
    train = np.vstack([X, ROW])
    model = make_pipeline(bins, LinearRegression())
    model.steps[1][1].fit(bins.transform(train), leaf(train, 1e-6) + train[:, 1])
    model.steps[1][1].coef_[:3] = 0.0, 100.0, 0.0  # a bump that ends where it began
    explainer = fitted(model, rows=train)
    assert explainer.function_ is None
    np.testing.assert_allclose(explainer.explain(ROW).values[0, 0], 100.0, atol=5.0)


def test_what_is_vouched_for_must_hold_for_all_training_rows():
    def model(X):
        return 3 * X[:, 1] + leaf(X, 1e-6)

    with pytest.raises(OptionError, match="some training rows"):
        fitted(model, rows=np.vstack([X, ROW]), additive=True)


def bump(X):
    """A smooth function with a bump where no training row is."""
    return 2 * X[:, 1] + np.sin(X[:, 2]) + leaf(X, 1e-6)


TRAIN = X[np.abs(X[:, 0] - NARROW) > 0.002][:400]


@pytest.mark.parametrize("options", [{}, {"n_coalitions": "auto"}, {"target_error": 0.5}], ids=str)
@pytest.mark.parametrize("approach", ["independence", "gaussian", "ctree"])
def test_rows_where_the_reading_fails_are_asked_of_the_model(approach, options, tmp_path):
    rows, others = np.vstack([X[:2], ROW, X[2:4]]), [0, 1, 3, 4]
    explainer = fitted(bump, approach, TRAIN, additive=True, **options)
    with pytest.warns(CondShapWarning, match="1 of 5 rows"):
        explanation = explainer.explain(rows)
    assert any("1 of 5 rows" in text for text in explanation.provenance.warnings)
    np.testing.assert_allclose(explanation.values[2, 0], 100.0, atol=2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        alone = explainer.explain(rows[others])
    assert np.array_equal(explanation.values[others], alone.values)
    assert alone.value_table.n_evaluations == 4
    explainer.save(tmp_path / "explainer")
    with pytest.warns(CondShapWarning, match="1 of 1 rows"):
        again = cs.load_explainer(tmp_path / "explainer", bump).explain(ROW)
    assert np.array_equal(again.values[0], explanation.values[2])
    assert np.array_equal(again.std_errors[0], explanation.std_errors[2])


def test_errors_of_rows_that_are_asked_are_not_too_small():
    found = []
    for seed in range(30):
        explainer = fitted(bump, "gaussian", TRAIN, additive=True, n_samples=32, seed=seed)
        with pytest.warns(CondShapWarning):
            found.append(explainer.explain(ROW))
    spread = np.std([one.values[0] for one in found], axis=0, ddof=1)
    assert (spread < 1.3 * np.mean([one.std_errors[0] for one in found], axis=0)).all()


def test_rounding_far_away_is_no_failure():
    model = LinearRegression().fit(X, 1e6 + X @ [1.0, 2.0, 3.0])
    explainer = fitted(model, "gaussian")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        explanation = explainer.explain(X[:3] * 1e6)
    assert explanation.value_table.n_evaluations == 3
