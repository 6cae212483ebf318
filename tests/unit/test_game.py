"""All that fit learned is one frozen object; the explainer keeps options beside it."""

from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest

import condshap as cs
from condshap.game import Game

X = np.random.default_rng(0).normal(size=(60, 3))


def model(Z):
    return Z[:, 0] * Z[:, 1] + Z[:, 2]


@pytest.fixture
def explainer():
    return cs.Explainer(model, approach="gaussian", check_draws=False, progress=False).fit(X)


def test_an_explainer_learns_a_game_and_nothing_else(explainer):
    assert set(vars(explainer)) - set(explainer.get_params()) == {"game_"}
    assert isinstance(explainer.game_, Game)
    for field in fields(Game):
        assert getattr(explainer, f"{field.name}_") is getattr(explainer.game_, field.name)
    with pytest.raises(AttributeError, match="has no attribute 'nonsense_'"):
        _ = explainer.nonsense_


def test_a_game_does_not_change(explainer):
    with pytest.raises(FrozenInstanceError):
        explainer.game_.seed = 3
    before = explainer.game_
    first = explainer.explain(X[:2])
    explainer.set_params(seed=5)
    other = explainer.explain(X[:2])
    assert explainer.game_ is before
    assert not np.array_equal(first.values, other.values)
    np.testing.assert_array_equal(explainer.set_params(seed=0).explain(X[:2]).values, first.values)


def test_a_fit_that_fails_leaves_nothing_that_looks_fitted(explainer):
    with pytest.raises(cs.CondShapError):
        explainer.fit(X[:1])
    with pytest.raises(cs.CondShapError, match="must be fitted before it can explain"):
        explainer.explain(X[:1])
