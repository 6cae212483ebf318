"""Files whose facts were changed by hand load, or are refused in our own words, whatever stands there."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest

import condshap as cs
from condshap.approaches.base import State
from condshap.exceptions import CondShapError
from condshap.storage import explainers as saving
from condshap.storage import explanations as storage
from condshap.storage import state_file

RNG = np.random.default_rng(0)
X = pd.DataFrame({"a": RNG.normal(size=60), "c": RNG.choice(["u", "v"], 60)})
ODD = ([], 3, "x", None, {}, [[[1]]], -1, 1e300, {"a": {"b": [1]}}, True, 10**30)


def model(table):
    return np.asarray(table["a"])


def places(node, path=()):
    """Where values stand in nested facts, of lists only the first two."""
    inside = node.items() if isinstance(node, dict) else enumerate(node[:2]) if isinstance(node, (list, tuple)) else ()
    for key, value in inside:
        yield (*path, key)
        yield from places(value, (*path, key))


def forged(facts):
    """Facts with one value replaced by something else, wherever that is."""
    for path in places(facts):
        for value in ODD:
            changed = copy.deepcopy(facts)
            node = changed
            for key in path[:-1]:
                node = node[key]
            node[path[-1]] = value
            yield changed


def try_all(load, facts, step):
    refused = 0
    for i, changed in enumerate(forged(facts)):
        if i % step == 0:
            try:
                load(changed)
            except CondShapError:
                refused += 1
    assert refused > 10


@pytest.mark.filterwarnings("ignore::condshap.exceptions.CondShapWarning")
def test_facts_of_an_explanation(tmp_path, monkeypatch):
    cs.explain(model, X, X[:3], approach="independence").save(tmp_path / "e.parquet")
    arrow, about = storage._read(tmp_path / "e.parquet")

    def load(changed):
        monkeypatch.setattr(storage, "_read", lambda _: (arrow, changed))
        cs.load_explanation(tmp_path / "e.parquet")

    try_all(load, about, step=3)


@pytest.mark.filterwarnings("ignore::condshap.exceptions.CondShapWarning")
def test_facts_of_an_explainer(tmp_path, monkeypatch):
    cs.Explainer(model, approach="independence").fit(X).save(tmp_path / "e")
    state = state_file.read_state(tmp_path / "e")

    def load(changed):
        monkeypatch.setattr(saving, "read_state", lambda _: State(state.arrays, changed))
        cs.load_explainer(tmp_path / "e", model)

    try_all(load, dict(state.facts), step=4)
