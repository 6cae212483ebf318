"""Warnings name the user's line, whichever way into condshap was taken."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest

import condshap as cs

X = np.random.default_rng(0).normal(size=(40, 2))  # so few training rows are warned about


def total(x):
    return x.sum(axis=1)


@pytest.mark.parametrize(
    "call",
    [
        lambda: cs.explain(total, X, X[:2], approach="gaussian"),
        lambda: cs.Explainer(total, approach="gaussian").fit(X),
        lambda: cs.compare(total, X, X[:2], approaches=["gaussian"]),
        lambda: cs.Explainer(lambda x: x.prod(axis=1), approach="gaussian", target_error=1e-6).fit(X).explain(X[:1]),
    ],
    ids=["explain", "fit", "compare", "target_error"],
)
def test_a_warning_names_the_line_that_called_condshap(call: Callable[[], object]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert caught
    assert {one.filename for one in caught if one.category is cs.CondShapWarning} == {__file__}
