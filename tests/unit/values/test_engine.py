"""Requests that share draws or calls of the model get the answers that each would get alone."""

import numpy as np
import pytest

from condshap.approaches import find_approach
from condshap.coalitions import make_plan
from condshap.models.predictor import Predictor
from condshap.schema import FeatureSchema
from condshap.seeding import row_keys
from condshap.values.engine import Request, ValueEngine
from condshap.values.table import Settings

X = np.random.default_rng(0).normal(size=(80, 4))
SCHEMA = FeatureSchema.learn(X)
PLAN = make_plan(4, None, seed=0)
MASKS = PLAN.masks[[1, 5, 9]]


class Counting:
    """A model that rounds every row by itself and counts how often it is called."""

    def __init__(self):
        self.calls = 0

    def __call__(self, Z):
        self.calls += 1
        return Z[:, 0] * Z[:, 1] + np.abs(Z[:, 2]) - Z[:, 3]


@pytest.fixture
def counting():
    return Counting()


def engine(model, **settings):
    return ValueEngine(Predictor.of(model, SCHEMA, X), Settings(progress=False, **settings))


def request(approach, rows, masks, own=None):
    fitted = find_approach(approach)().fit(X, SCHEMA, plan=PLAN, seed=0)
    return Request(fitted, rows, row_keys(rows), masks, 32, 0, own)


@pytest.mark.parametrize("approach", ["gaussian", "ctree", "independence"])
def test_coalitions_with_rows_of_their_own_get_what_they_would_get_alone(counting, approach):
    own = (slice(0, 3), slice(3, 6), slice(6, 9))
    (together,) = engine(counting).run([[request(approach, X[:9], MASKS, own)]])
    assert len(together) == 3
    for c, (rows, found) in enumerate(zip(own, together, strict=True)):
        ((alone,),) = engine(counting).run([[request(approach, X[rows], MASKS[c : c + 1])]])
        np.testing.assert_array_equal(found.means, alone.means)
        np.testing.assert_array_equal(found.variances, alone.variances)


def test_a_group_is_one_call_of_the_model(counting):
    asked = [request("gaussian", X[i : i + 2], MASKS) for i in range(4)]
    predicts = engine(counting)
    counting.calls = 0
    (together,) = predicts.run([asked])
    assert counting.calls == 1
    separately = [moments for (moments,) in predicts.run([[one] for one in asked])]
    assert counting.calls == 5
    for one, other in zip(together, separately, strict=True):
        np.testing.assert_array_equal(one.means, other.means)


def test_groups_come_back_in_order_whatever_the_workers(counting):
    groups = [[request("gaussian", X[i : i + 1], MASKS)] for i in range(6)]
    plain, shared = (list(engine(counting, n_jobs=n).run(groups)) for n in (1, 2))
    for (one,), (other,) in zip(plain, shared, strict=True):
        np.testing.assert_array_equal(one.means, other.means)
