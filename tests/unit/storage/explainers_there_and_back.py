"""A model of any table, and an explainer that goes to a file and back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.base import BaseEstimator

import condshap as cs
from condshap.testing import example_table

TABLE = example_table(60)


def score(table):
    """A model of whatever columns there are."""
    out = np.zeros(len(table))
    for name, wanted in (("d", "low"), ("e", True), ("f", "yes")):
        if name in table:
            out += np.asarray(table[name]) == wanted
    for name in "abc":
        if name in table:
            out += np.sin(np.asarray(table[name], dtype=float))
    return out


def scores(table):
    return np.column_stack([score(table), np.exp(-score(table))])


def fitted(table, model=score, **options):
    return cs.Explainer(model, **{"seed": 3, **options}).fit(table)


def there_and_back(explainer, folder, model=None, **options):
    explainer.save(folder / "explainer")
    return cs.load_explainer(folder / "explainer", explainer.model if model is None else model, **options)


def same_answers(ours, theirs, rows):
    a, b = ours.explain(rows), theirs.explain(rows)
    for name in ("values", "base_values", "predictions", "std_errors"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    for name in ("coalitions", "values", "std_errors", "n_evaluations"):
        np.testing.assert_array_equal(getattr(a.value_table, name), getattr(b.value_table, name))
    for name in ("feature_names", "player_names", "output_names", "membership"):
        assert getattr(a, name) == getattr(b, name), name
    untimed = [replace(e.provenance, seconds={"fit": e.provenance.seconds["fit"]}) for e in (a, b)]
    assert untimed[0] == untimed[1]


class OwnRegressor(BaseEstimator):
    def fit(self, X, y):
        self.mean_ = y.mean()
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)
