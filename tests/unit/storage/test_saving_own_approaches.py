"""Approaches of one's own in files: stored if they say how, refused with what to write if not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import condshap as cs
from condshap.approaches.base import CONTINUOUS_ONLY, Capabilities, DrawnRows, State
from condshap.exceptions import StorageError
from condshap.storage.plain_values import store_values
from tests.unit.storage.explainers_there_and_back import (
    TABLE,
    OwnRegressor,
    fitted,
    same_answers,
    score,
    there_and_back,
)


class Centre:
    """A sampler that knows one thing only: the mean."""

    name = "centre"
    supports = CONTINUOUS_ONLY
    handles_missing = False

    def fit(self, X, schema, *, plan, seed):
        self.mean_ = X.mean(axis=0)
        return self

    def sample(self, X, masks, n_samples, *, keys, seed):
        rows = np.where(masks[:, None, :], X, self.mean_)[:, :, None, :]
        return DrawnRows(np.repeat(rows, n_samples, axis=2), error_factor=0.0)


class StorableCentre(Centre):
    capabilities = Capabilities(is_storable=True)

    def to_state(self):
        return State({"mean": self.mean_}, {})

    @classmethod
    def from_state(cls, state):
        own = cls()
        own.mean_ = state.arrays["mean"]
        return own


def centre_that_stores(state):
    return type("Odd", (StorableCentre,), {"to_state": lambda self: state})()


def test_an_approach_without_states_cannot_be_saved(tmp_path):
    explainer = fitted(TABLE[["a", "b"]], approach=Centre())
    with pytest.raises(StorageError, match=r"must have to_state and from_state.*got 'centre' \(Centre\).*Add these"):
        explainer.save(tmp_path / "explainer")
    assert not list(tmp_path.iterdir())


def test_an_approach_of_ones_own_is_loaded_with_its_class(tmp_path):
    table = TABLE[["a", "b"]]
    explainer = fitted(table, approach=StorableCentre())
    same_answers(explainer, there_and_back(explainer, tmp_path, approaches=[StorableCentre]), table[:3])
    with pytest.raises(
        StorageError, match=r"'centre' that is not one of condshap's.*got \[\].*approaches=\[ItsClass\]"
    ):
        cs.load_explainer(tmp_path / "explainer", score)


def test_an_own_approach_with_the_name_of_ours_is_not_mixed_up_with_it(tmp_path):
    own = type("Gaussian", (StorableCentre,), {"name": "gaussian"})
    explainer = fitted(TABLE[["a", "b"]], approach=own())
    with pytest.raises(StorageError, match="'gaussian' that is not one of condshap's"):
        there_and_back(explainer, tmp_path)
    assert isinstance(there_and_back(explainer, tmp_path, approaches=[own]).parts_[0].approach, own)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"mean": 1}, "to_state must return a condshap.approaches.base.State, got dict"),
        (
            State({"mean": np.array(["a"])}, {}),
            "must hold booleans, integers or floats, got an array of <U1 as '.*mean'",
        ),
        (State({"mean": [1.0]}, {}), "got list as '.*mean'"),
        (State({}, {"when": object()}), "must be what JSON can hold"),
    ],
)
def test_states_that_cannot_be_stored_are_refused(tmp_path, state, words):
    explainer = fitted(TABLE[["a", "b"]], approach=centre_that_stores(state))
    with pytest.raises(StorageError, match=words):
        explainer.save(tmp_path / "explainer")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("approach", [cs.approaches.RegressionSeparate, cs.approaches.RegressionSurrogate])
def test_a_regressor_that_may_hold_code_is_refused(tmp_path, approach):
    explainer = fitted(TABLE[["a", "b"]], approach=approach(OwnRegressor()))
    with pytest.raises(
        StorageError, match=r"must be made of types that hold numbers and no code.*OwnRegressor.*Use one"
    ):
        explainer.save(tmp_path / "explainer")


def test_an_option_that_is_not_plain_is_refused(tmp_path):
    explainer = fitted(TABLE[["a", "b"]], approach="gaussian")
    explainer.seed = object()
    with pytest.raises(StorageError, match=r"'seed' of the explainer must be plain.*got object. Give it"):
        explainer.save(tmp_path / "explainer")


def test_an_option_that_is_a_table_of_something_odd_is_named():
    with pytest.raises(StorageError, match="'sigma' of a thing must come back from a file unchanged"):
        store_values({"sigma": pd.DataFrame({"a": [1j, 2j]})}, "a thing")
