"""Options that nobody should give are refused in our own words; those that go, go in any company."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

import condshap as cs
from fuzz.models import plain
from fuzz.options import RUBBISH, approaches, options
from fuzz.profiles import cases
from fuzz.promise import check_comparison, check_explanation, kept

X = np.random.default_rng(0).normal(size=(40, 3))
Y = plain(X)
MODELS = {
    "function": plain,
    "two outputs": lambda rows: np.column_stack([plain(rows), rows[:, 0]]),
    "line": LinearRegression().fit(X, Y),
    "tree": DecisionTreeRegressor(max_depth=3).fit(X, Y),
    "classes": RandomForestClassifier(3, random_state=0).fit(X, np.array([1, 2, 3])[np.digitize(Y, [0, 1])]),
}


@cases(short=80, long=5000)
@given(data=st.data())
def test_options(data):
    model = MODELS[data.draw(st.sampled_from(sorted(MODELS)))]
    chosen = {"check_draws": False, **data.draw(options())}
    approach = data.draw(approaches())
    found = kept(lambda: cs.explain(model, X, X[:3], approach=approach, **chosen))
    if found is not None:
        check_explanation(found, 3)


@cases(short=10, long=600)
@given(data=st.data())
def test_options_of_comparisons(data):
    chosen = {"check_draws": False, **data.draw(options(most=1))}
    given_approaches = data.draw(st.one_of(st.lists(approaches(), max_size=3), st.sampled_from(RUBBISH)))
    level = data.draw(st.sampled_from([0.95, 0.95, *RUBBISH]))
    found = kept(lambda: cs.compare(plain, X, X[:3], approaches=given_approaches, level=level, **chosen))
    if found is not None and isinstance(given_approaches, list) and given_approaches:
        check_comparison(found, len(given_approaches))


@cases(short=20, long=600)
@given(data=st.data())
def test_plans_and_later_calls(data):
    one = st.sampled_from(RUBBISH)
    masks = data.draw(
        st.one_of(one, st.sampled_from([np.eye(3), np.eye(3, dtype=bool), ~np.eye(3, dtype=bool), np.eye(2)]))
    )
    weights = data.draw(st.one_of(one, st.sampled_from([np.ones(3), [1, 2, 3], [1.0, np.nan, 1.0]])))
    plan = kept(lambda: cs.CoalitionPlan.given(masks, weights))
    if plan is not None:
        found = kept(lambda: cs.explain(plain, X, X[:3], approach="gaussian", coalitions=plan, check_draws=False))
        if found is not None:
            check_explanation(found, 3)
    kept(lambda: FOUND.with_model_errors(data.draw(one)))
    kept(lambda: FITTED.refine(FOUND, tolerance=data.draw(one)))
    kept(lambda: FITTED.explain(data.draw(one)))
    kept(
        lambda: cs.load_explainer(data.draw(st.sampled_from([".", "", "/nowhere", "\x00", "a" * 5000])), data.draw(one))
    )
    kept(lambda: FITTED.save(data.draw(st.sampled_from([".", "", "/nowhere/x", "\x00", "a" * 5000]))))


FITTED = cs.Explainer(plain, approach="gaussian", n_coalitions="auto", check_draws=False)
FITTED.fit(np.random.default_rng(1).normal(size=(60, 3)))
FOUND = FITTED.explain(X[:2])
