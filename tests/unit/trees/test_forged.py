"""Forged models end as an error, not as the end of the process: nothing is asked of a loaded model before it is checked."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import skops.io
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor

from condshap.cli.files import load_model
from condshap.exceptions import ModelError, StorageError
from condshap.storage.plain_values import pack_estimator, unpack_estimator
from condshap.trees.validating import check_trees

FUZZ = Path(__file__).parents[2] / "fuzz"
RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
Y = X[:, 0] * X[:, 1]


def forge_tree(tree, **nodes):
    """Give a tree of scikit-learn other nodes."""
    state = tree.__getstate__()
    for name, value in nodes.items():
        if name == "node_count":
            state[name] = value
        else:
            state["nodes"][name][0] = value
    tree.__setstate__(state)


def forest(**nodes):
    model = RandomForestRegressor(2, max_depth=2, random_state=0).fit(X, Y)
    forge_tree(model.estimators_[1].tree_, **nodes)
    return model


def boosted(**nodes):
    model = GradientBoostingRegressor(n_estimators=2).fit(X, Y)
    forge_tree(model.estimators_[1, 0].tree_, **nodes)
    return model


def histogram(**nodes):
    model = HistGradientBoostingRegressor(max_iter=2).fit(X, Y)
    for name, value in nodes.items():
        model._predictors[1][0].nodes[name][0] = value
    return model


def changed(model, **attributes):
    for name, value in attributes.items():
        setattr(model, name, value)
    return model


FORGED = {
    "child beyond the nodes": lambda: forest(left_child=10**6),
    "negative child": lambda: forest(right_child=-7),
    "circle": lambda: forest(left_child=0),
    "column beyond the table": lambda: forest(feature=3),
    "more nodes than there are": lambda: forest(node_count=10**7),
    "no nodes": lambda: forest(node_count=0),
    "tree within a pipeline": lambda: make_pipeline(StandardScaler(), forest(left_child=99)),
    "boosted child": lambda: boosted(left_child=10**6),
    "boosted column": lambda: boosted(feature=77),
    "boosted stages of other widths": lambda: changed(boosted(), n_trees_per_iteration_=3),
    "histogram child": lambda: histogram(left=10**6),
    "histogram circle": lambda: histogram(right=0),
    "histogram column": lambda: histogram(feature_idx=10**6),
    "histogram category": lambda: histogram(is_categorical=1, bitset_idx=4000),
    "other columns than the tree's": lambda: changed(DecisionTreeRegressor().fit(X, Y), n_features_in_=2),
    "support vectors": lambda: changed(SVR().fit(X, Y), _dual_coef_=np.zeros((1, 2))),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_model_is_refused(name):
    model = FORGED[name]()
    with pytest.raises(ModelError, match=r"must be intact, but its numbers do not belong together.*Save it again"):
        check_trees(model)


@pytest.mark.parametrize("make", [forest, histogram], ids=["forest", "histogram"])
def test_a_forged_file_is_refused_without_and_with_trust_and_in_explainers(tmp_path, make):
    side = "left_child" if make is forest else "left"
    skops.io.dump(make(**{side: 10**6}), tmp_path / "model.skops")
    for trust in (False, True):
        with pytest.raises(ModelError, match="its numbers do not belong together"):
            load_model(tmp_path / "model.skops", trust=trust)
    packed = pack_estimator(make(**{side: 10**6}), "a regressor")
    with pytest.raises(StorageError, match="its numbers do not belong together"):
        unpack_estimator(packed, "a regressor")


def test_neighbours_filed_wrongly_are_refused():
    model = KNeighborsRegressor(algorithm="kd_tree").fit(X, Y)
    state = list(model._tree.__getstate__())
    state[1] = state[1] + 10**6
    model._tree.__setstate__(tuple(state))
    with pytest.raises(ModelError, match="neighbours are filed"):
        check_trees(model)


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(2).fit(X, Y > 0),
        HistGradientBoostingClassifier(max_iter=2, categorical_features=[2]).fit(np.c_[X[:, :2], np.arange(80) % 3], Y > 0),
        GradientBoostingRegressor(n_estimators=2, init=RandomForestRegressor(2)).fit(X, Y),
        KNeighborsRegressor(algorithm="ball_tree").fit(X, Y),
        DecisionTreeRegressor(ccp_alpha=0.01).fit(X, Y),
        RandomForestRegressor(),
    ],
)  # fmt: skip
def test_an_honest_model_passes(model):
    content = skops.io.dumps(model)
    check_trees(skops.io.load(io.BytesIO(content), trusted=skops.io.get_untrusted_types(data=content)))


@pytest.mark.skipif(sys.platform == "win32", reason="limits on memory and time are those of Unix")
def test_forged_files_do_not_end_the_process():
    """A beginning of what ``tests/fuzz/forged_models.py`` does with as many files as one likes."""
    done = subprocess.run(
        [sys.executable, str(FUZZ / "forged_models.py"), "84"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 crashes" in done.stdout
