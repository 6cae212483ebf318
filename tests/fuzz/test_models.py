"""Models that misbehave are explained as far as their numbers go, or refused in our own words."""

from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

import condshap as cs
from fuzz.models import odd_models, plain
from fuzz.options import FAST
from fuzz.profiles import cases
from fuzz.promise import check_comparison, check_explanation, kept

X = np.random.default_rng(0).normal(size=(40, 3))
TABLES = {
    "array": X,
    "frame": pd.DataFrame(X, columns=["x0", "x1", "x2"]),
    "levels": np.round(X),
}


@cases(short=80, long=5000)
@given(data=st.data())
def test_models(data):
    model, is_honest = data.draw(odd_models())
    approach = data.draw(st.sampled_from(FAST))
    kind = "levels" if approach == "categorical" else data.draw(st.sampled_from(["array", "frame"]))
    options = {"n_samples": 8} if approach in {"independence", "gaussian", "copula"} else {}
    options["additive"] = data.draw(st.sampled_from(["auto", "auto", True, False]))
    options["memory_budget"] = data.draw(st.sampled_from(["1GiB", "1KB"]))
    if not data.draw(st.integers(0, 3)):
        options["n_coalitions"] = "auto"
    categorical = [0, 1, 2] if kind == "levels" else ()
    table, rows = TABLES[kind], TABLES[kind][:3]
    found = kept(
        lambda: cs.explain(model, table, rows, approach=approach, check_draws=False, categorical=categorical, **options)
    )
    np.testing.assert_array_equal(np.asarray(TABLES["frame"]), X)
    if found is not None:
        check_explanation(found, 3, plain(rows) if is_honest else None)


@cases(short=10, long=600)
@given(data=st.data())
def test_models_in_comparisons(data):
    model, _ = data.draw(odd_models())
    approaches = data.draw(st.lists(st.sampled_from([one for one in FAST if one != "categorical"]), max_size=3))
    found = kept(lambda: cs.compare(model, X, X[:3], approaches=approaches, check_draws=False))
    if found is not None and approaches:
        check_comparison(found, len(approaches))
