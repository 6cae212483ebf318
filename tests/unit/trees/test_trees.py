"""Tree ensembles evaluated here predict what their libraries predict."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier, is_regressor
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeRegressor

from condshap.exceptions import ModelError
from condshap.trees import FastTrees, read_trees
from condshap.trees.cpu import BLOCK, predict_cpu
from condshap.trees.flat import TreeNodes, join_trees, predict_plainly, round_down, sibling_order
from condshap.trees.packed import PackedTrees
from condshap.trees.reading import trial_rows

RNG = np.random.default_rng(1)
X = RNG.normal(size=(300, 4))
X[:, 2] = RNG.integers(-1, 3, 300)
X[:, 3] = np.exp(X[:, 3])
Y = X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * X[:, 3]
THREE = np.digitize(Y, [-0.3, 0.8])
HOLES = np.where(RNG.random(X.shape) < 0.1, np.nan, X)


def lightgbm_model(kind, **options):
    lightgbm = pytest.importorskip("lightgbm")
    return getattr(lightgbm, kind)(n_estimators=8, num_leaves=9, verbose=-1, n_jobs=1, **options)


def xgboost_model(kind, **options):
    xgboost = pytest.importorskip("xgboost")
    return getattr(xgboost, kind)(**{"n_estimators": 8, "max_depth": 4, "n_jobs": 1} | options)


FINITE_REGRESSORS = {
    "gradient boosting": lambda: GradientBoostingRegressor(n_estimators=8, random_state=0),
    "gradient boosting from zero": lambda: GradientBoostingRegressor(n_estimators=8, init="zero", loss="huber"),
    "monotone tree": lambda: DecisionTreeRegressor(monotonic_cst=[0, 0, 1, 0]),
}
REGRESSORS = {
    "tree": lambda: DecisionTreeRegressor(random_state=0),
    "extra tree": lambda: ExtraTreeRegressor(random_state=0),
    "one-node tree": lambda: DecisionTreeRegressor(min_samples_split=1000),
    "stumps": lambda: RandomForestRegressor(5, max_depth=1, random_state=0),
    "forest": lambda: RandomForestRegressor(20, max_features="sqrt", min_samples_split=6, random_state=0),
    "extra trees": lambda: ExtraTreesRegressor(10, random_state=0),
    "histogram boosting": lambda: HistGradientBoostingRegressor(max_iter=8),
    "histogram boosting with log link": lambda: HistGradientBoostingRegressor(max_iter=8, loss="poisson"),
    "xgboost": lambda: xgboost_model("XGBRegressor"),
    "xgboost counts": lambda: xgboost_model("XGBRegressor", objective="count:poisson"),
    "xgboost forest": lambda: xgboost_model("XGBRFRegressor"),
    "xgboost constant": lambda: xgboost_model("XGBRegressor", gamma=1e9),
    "lightgbm": lambda: lightgbm_model("LGBMRegressor"),
    "lightgbm counts": lambda: lightgbm_model("LGBMRegressor", objective="poisson"),
    "lightgbm dart": lambda: lightgbm_model("LGBMRegressor", boosting_type="dart"),
    "lightgbm constant": lambda: lightgbm_model("LGBMRegressor", min_child_samples=1000),
}
CLASSIFIERS = {
    "tree": lambda: DecisionTreeClassifier(random_state=0, max_depth=5),
    "forest": lambda: RandomForestClassifier(20, random_state=0),
    "extra trees": lambda: ExtraTreesClassifier(10, random_state=0),
    "histogram boosting": lambda: HistGradientBoostingClassifier(max_iter=8),
    "xgboost": lambda: xgboost_model("XGBClassifier"),
    "xgboost forest": lambda: xgboost_model("XGBRFClassifier"),
    "lightgbm": lambda: lightgbm_model("LGBMClassifier"),
}
TARGETS = {"binary": (THREE > 0).astype(int), "three classes": THREE}


def awkward_rows(trees, n_rows=2000):
    """Numbers at, next to and between thresholds; in float64, also some that only round to a threshold in float32."""
    rows = trial_rows(trees, n_rows).astype(np.float64)
    near = np.random.default_rng(2).random(rows.shape) < 0.2
    return np.where(near, rows * (1 + 1e-9), rows)


def outputs_of(model, rows):
    raw = model.predict_proba(rows) if is_classifier(model) else model.predict(rows)
    return np.asarray(raw).reshape(len(rows), -1)


def assert_same(model, rows):
    fast = FastTrees(model)
    expected = outputs_of(model, rows)
    assert read_trees(model, exact=True) is not None
    np.testing.assert_array_equal(outputs_of(fast, rows), expected)
    tolerance = 1e-5 if expected.dtype == np.float32 else 1e-12  # on a device sums are float64, also those of XGBoost
    np.testing.assert_allclose(
        outputs_of(FastTrees(model, "cpu:0"), rows), expected, rtol=tolerance, atol=1e-3 * tolerance
    )


@pytest.mark.parametrize("name", REGRESSORS)
def test_regressor_predicts_as_its_library_does_with_missing_values_and_ties(name):
    model = REGRESSORS[name]().fit(HOLES, np.exp(Y))
    assert_same(model, awkward_rows(read_trees(model)))


@pytest.mark.parametrize("name", [*REGRESSORS, *FINITE_REGRESSORS])
def test_regressor_trained_on_complete_rows_predicts_as_its_library_does(name):
    model = (REGRESSORS | FINITE_REGRESSORS)[name]().fit(X, np.exp(Y))
    assert_same(model, awkward_rows(read_trees(model)))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifier_gives_the_probabilities_and_labels_of_its_library(name, target):
    model = CLASSIFIERS[name]().fit(HOLES, TARGETS[target])
    rows = awkward_rows(read_trees(model))
    assert_same(model, rows)
    assert (FastTrees(model).predict(rows) == model.predict(rows)).all()


@pytest.mark.parametrize("target", TARGETS)
def test_gradient_boosted_classifier_gives_the_probabilities_and_labels_of_its_library(target):
    labels = np.array(["low", "middle", "high"])[TARGETS[target]]
    model = GradientBoostingClassifier(n_estimators=8, random_state=0).fit(X, labels)
    rows = awkward_rows(read_trees(model))
    assert_same(model, rows)
    assert (FastTrees(model).predict(rows) == model.predict(rows)).all()


def test_forest_is_equal_to_the_last_bit():
    model = RandomForestRegressor(30, random_state=0).fit(X, Y)
    rows = awkward_rows(read_trees(model))
    np.testing.assert_array_equal(FastTrees(model).predict(rows), model.predict(rows))


def test_several_responses_are_predicted_together():
    responses = np.stack([Y, Y**2, X[:, 0]], axis=1)
    for model in (RandomForestRegressor(5, random_state=0), xgboost_model("XGBRegressor")):
        model.fit(X, responses)
        assert_same(model, awkward_rows(read_trees(model)))
        assert FastTrees(model).predict(X).shape == (300, 3)


def test_infinity_is_a_number_for_histogram_boosting():
    model = HistGradientBoostingRegressor(max_iter=5).fit(HOLES, Y)
    rows = np.array([[np.inf, -np.inf, np.nan, 1e308], [-np.inf, np.inf, 0, -1e308]])
    assert_same(model, rows)


def test_numbers_that_lightgbm_takes_for_zero_go_where_zero_goes():
    signs = np.repeat([-1.0, 0.0, 1.0], 60)[:, None]
    model = lightgbm_model("LGBMRegressor").fit(signs, signs[:, 0])
    rows = np.array([[0.0], [1e-36], [-1e-36], [1e-35], [-1e-35], [1.1e-35], [-1.1e-35], [1e-30], [-1e-30], [np.nan]])
    assert_same(model, rows)


@pytest.mark.filterwarnings("ignore:.*eval_set.*")
def test_early_stopping_ends_at_the_best_iteration():
    held_out = [(X[200:], -Y[200:])]  # validation gets worse with every tree
    xgb = xgboost_model("XGBRegressor", early_stopping_rounds=3).fit(X[:200], Y[:200], eval_set=held_out, verbose=False)
    lightgbm = pytest.importorskip("lightgbm")
    stop = [lightgbm.early_stopping(3, verbose=False)]
    lgb = lightgbm_model("LGBMRegressor").fit(X[:200], Y[:200], eval_set=held_out, callbacks=stop)
    for model in (xgb, lgb):
        assert read_trees(model).n_trees < 8
        assert_same(model, X)


@pytest.mark.parametrize("n_rows", [0, 1, 7, BLOCK - 1, BLOCK, BLOCK + 1])
def test_number_of_rows_does_not_matter(n_rows):
    trees = read_trees(RandomForestRegressor(3, random_state=0).fit(X, Y))
    rows = RNG.normal(size=(n_rows, 4))
    np.testing.assert_array_equal(predict_cpu(PackedTrees.of(trees), rows), predict_plainly(trees, rows))


@pytest.mark.parametrize("n_threads", [1, 2, 3, 50])
def test_number_of_threads_does_not_matter(n_threads):
    packed = PackedTrees.of(read_trees(RandomForestRegressor(3, random_state=0).fit(X, Y)))
    rows = RNG.normal(size=(5000, 4))
    np.testing.assert_array_equal(predict_cpu(packed, rows, n_threads), predict_cpu(packed, rows))


def test_torch_version_equals_the_definition_in_blocks_and_both_precisions(monkeypatch):
    torch = pytest.importorskip("torch")
    from condshap.trees import cuda

    monkeypatch.setattr(cuda, "TORCH_CELLS", 1000)
    model = CLASSIFIERS["forest"]().fit(HOLES, THREE)
    for trees in (read_trees(model), read_trees(HistGradientBoostingClassifier(max_iter=5).fit(HOLES, THREE))):
        packed = cuda.DeviceTrees.of(trees)
        for dtype in (np.float32, np.float64):
            rows = awkward_rows(trees, 333).astype(dtype)
            got = cuda.predict_device(packed, torch.as_tensor(rows)).numpy()
            np.testing.assert_allclose(got, predict_plainly(trees, rows), rtol=1e-13)
        assert cuda.predict_device(packed, torch.empty((0, 4))).shape == (0, 3)


def test_device_refuses_trees_that_do_not_fit_into_its_words():
    pytest.importorskip("torch")
    from condshap.trees.cuda import DeviceTrees

    trees = read_trees(DecisionTreeRegressor().fit(X, Y))
    with pytest.raises(ModelError, match="2048 features"):
        DeviceTrees.of(replace(trees, n_features=5000))


def test_thresholds_are_rounded_towards_smaller_numbers():
    values = np.array([0.1, -0.1, 0.5, 1e300, -1e300, np.inf, 1e-50, -1e-50])
    rounded = round_down(values, np.float32)
    assert (rounded <= values).all()
    with np.errstate(over="ignore"):
        assert (np.nextafter(rounded[:5], np.float32(np.inf)) > values[:5]).all()


def test_siblings_lie_side_by_side():
    trees = read_trees(RandomForestRegressor(4, random_state=0).fit(X, Y))
    order, depths = sibling_order(trees)
    assert sorted(order) == list(range(len(trees.left)))
    place = np.argsort(order)
    inner = ~trees.is_leaf
    assert (place[trees.right[inner]] == place[trees.left[inner]] + 1).all()
    model = RandomForestRegressor(4, random_state=0).fit(X, Y)
    assert depths.tolist() == [e.get_depth() for e in model.estimators_]


class Doubled(RandomForestRegressor):
    def predict(self, X):
        return 2 * super().predict(X)


def patched_forest():
    model = RandomForestRegressor(3).fit(X, Y)
    model.predict = lambda X: np.zeros(len(X))
    return model


NOT_UNDERSTOOD = {
    "another model": lambda: LinearRegression().fit(X, Y),
    "a function": lambda: np.sum,
    "an unfitted forest": RandomForestRegressor,
    "an unfitted xgboost": lambda: xgboost_model("XGBRegressor"),
    "a subclass": lambda: Doubled(3).fit(X, Y),
    "a replaced method": patched_forest,
    "several responses of a classifier": lambda: RandomForestClassifier(3).fit(X, np.stack([THREE, THREE], 1)),
    "a start that is a model": lambda: GradientBoostingRegressor(n_estimators=3, init=LinearRegression()).fit(X, Y),
    "exponential loss": lambda: GradientBoostingClassifier(loss="exponential", n_estimators=3).fit(X, THREE > 0),
    "xgboost dart": lambda: xgboost_model("XGBRegressor", booster="dart", rate_drop=0.5).fit(X, Y),
    "xgboost linear": lambda: xgboost_model("XGBRegressor", booster="gblinear", max_depth=None).fit(X, Y),
    "xgboost missing value": lambda: xgboost_model("XGBRegressor", missing=-1.0).fit(X, Y),
    "xgboost vector leaves": lambda: xgboost_model("XGBRegressor", multi_strategy="multi_output_tree").fit(X, X),
    "xgboost other objective": lambda: xgboost_model("XGBRegressor", objective="reg:logistic").fit(X, THREE > 0),
    "xgboost categories": lambda: xgboost_model("XGBRegressor", enable_categorical=True).fit(with_categories(), Y),
    "lightgbm categories": lambda: lightgbm_model("LGBMRegressor").fit(with_categories(), Y),
    "lightgbm forest": lambda: lightgbm_model("LGBMRegressor", boosting_type="rf", subsample=0.5, subsample_freq=1).fit(
        X, Y
    ),
    "lightgbm linear leaves": lambda: lightgbm_model("LGBMRegressor", linear_tree=True).fit(X, Y),
    "lightgbm zero as missing": lambda: lightgbm_model("LGBMRegressor", zero_as_missing=True).fit(X, Y),
    "lightgbm square root": lambda: lightgbm_model("LGBMRegressor", reg_sqrt=True).fit(X, Y),
    "lightgbm sigmoid": lambda: lightgbm_model("LGBMClassifier", sigmoid=2.0).fit(X, THREE > 0),
    "lightgbm one against all": lambda: lightgbm_model("LGBMClassifier", objective="multiclassova").fit(X, THREE),
    "lightgbm early stop in prediction": lambda: lightgbm_model(
        "LGBMClassifier", pred_early_stop=True, pred_early_stop_freq=1, pred_early_stop_margin=0.0
    ).fit(X, THREE > 0),
}


def with_categories():
    frame = pd.DataFrame(X, columns=list("abcd"))
    return frame.assign(c=pd.Categorical(frame["c"].astype(int).astype(str)))


@pytest.mark.parametrize("name", NOT_UNDERSTOOD)
def test_what_is_not_understood_exactly_is_refused(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries about their own options
        model = NOT_UNDERSTOOD[name]()
    assert read_trees(model) is None
    with pytest.raises(ModelError, match="Use the model itself"):
        FastTrees(model)


def test_model_whose_insides_were_changed_is_refused():
    model = RandomForestRegressor(3, random_state=0).fit(X, Y)
    model.estimators_[0].predict = lambda X, check_input=True: np.zeros(len(X))
    assert read_trees(model) is None


def test_rows_that_the_model_refuses_are_refused():
    boosted, forest = GradientBoostingRegressor(n_estimators=2).fit(X, Y), RandomForestRegressor(2).fit(X, Y)
    for model, value in ((boosted, np.nan), (boosted, np.inf), (forest, np.inf), (forest, 1e300)):
        rows = X.copy()
        rows[5, 1] = value
        with pytest.raises(ModelError, match="row 5, column 1"):
            FastTrees(model).predict(rows)
        with pytest.raises(ValueError, match=r"NaN|infinity"), np.errstate(over="ignore"):
            model.predict(rows)
    with pytest.raises(ModelError, match="4 features"):
        FastTrees(forest).predict(X[:, :3])


def test_fast_trees_keep_names_and_classes_and_pickle():
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = RandomForestClassifier(3, random_state=0).fit(frame, np.array(["x", "y", "z"])[THREE])
    fast = pickle.loads(pickle.dumps(FastTrees(model)))
    assert list(fast.feature_names_in_) == list("abcd")
    assert list(fast.classes_) == ["x", "y", "z"]
    assert is_classifier(fast)
    np.testing.assert_array_equal(fast.predict_proba(frame), model.predict_proba(frame))
    with pytest.raises(ModelError, match="in this order"):
        fast.predict(frame[list("dcba")])


def test_fast_regressor_has_no_probabilities():
    fast = FastTrees(RandomForestRegressor(3).fit(X, Y))
    assert is_regressor(fast)
    assert not hasattr(fast, "predict_proba")


def test_even_odds_go_to_the_class_that_the_library_takes():
    rows = np.zeros((4, 1))
    for model in (GradientBoostingClassifier(n_estimators=1), HistGradientBoostingClassifier(max_iter=1)):
        model.fit(rows, [0, 1, 0, 1])
        assert FastTrees(model).predict(rows).tolist() == model.predict(rows).tolist()


def test_trees_that_add_to_different_sums_may_come_in_any_order():
    node = [np.array([value]) for value in (0, 0.0, -1, -1, True)]
    leaves = [TreeNodes(*node, values=np.array([[float(i)]]), output=o) for i, o in enumerate((1, 0, 1, 2))]
    trees = join_trees(leaves, dtype=np.float32, base=[0.5, 0, 0], n_features=1, accepts="missing")
    rows = np.zeros((2, 1))
    expected = np.array([[1.5, 2.0, 3.0]] * 2)
    np.testing.assert_array_equal(predict_cpu(PackedTrees.of(trees), rows), expected)
    torch = pytest.importorskip("torch")
    from condshap.trees.cuda import DeviceTrees, predict_device

    np.testing.assert_array_equal(predict_device(DeviceTrees.of(trees), torch.as_tensor(rows)).numpy(), expected)
