"""Options of `Explainer`, `explain` and `compare`: values that go, mixed with whatever somebody may write instead."""

from __future__ import annotations

import inspect
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from condshap.approaches import find_approach

RUBBISH: list[Any] = [
    None, -1, 0, 1, 2, 7, 2**70, -(2**70), 10**400, 0.5, -0.0, 1.0, float("nan"), float("inf"), 1e-320, 1e300, "",
    "x", "auto", "1", "cpu", "1GiB", "0B", "1e400B", "\ud800", b"x", [], [1], [None], ["a"], [[0, 1]], {}, {"a": 1},
    {"a": ["a"]}, (), {1}, object(), object, int, len, True, False, np.int64(2), np.float32(0.5), np.bool_(True),
    np.str_("auto"), np.array(3), np.array([1, 2]), np.array([]), np.array(["x"]), np.ma.masked,
    np.datetime64("NaT"), pd.NA, pd.NaT, pd.Series([1, 2]), pd.DataFrame({"a": [1]}), Decimal("0.5"),
    Decimal("NaN"), Fraction(1, 3), 1j, range(3), iter([1]), Path("x"), date(2020, 1, 1), ...,
]  # fmt: skip
FAST = ["independence", "gaussian", "copula", "empirical", "ctree", "categorical", "regression_separate"]

USUAL: dict[str, list[Any]] = {
    "n_samples": [1, 2, 3, 16, 40, np.int32(9)],
    "n_coalitions": ["auto", 1, 2, 5, 6, 8, 11, 100],
    "tolerance": [0.02, 0.5, 0.999],
    "max_coalitions": [1, 8, 100],
    "groups": [{"g": ["x0", "x1"], "h": ["x2"]}, {"g": ["x0", "x1", "x2"]}, {"g": ["x0"]}, {"g": [0, 1], "h": [2]}],
    "base_value": [0.0, -3.5, [1.0, 2.0], 1e70, 1e100, "1.5"],
    "output": [0, 1, -1, "0", "output", "name:1", "position:1", "position:9", 5],
    "seed": [0, 3, 2**32, 2**63, 2**64],
    "memory_budget": ["1KB", "32MiB", 5000, "1e3"],
    "progress": [False],
    "fast_trees": [True, False],
    "additive": ["auto", True, False],
    "target_error": [0.05, 1.0, 1e-1, 1e9],
    "check_draws": [True, False],
    "categorical": [["x0"], [0], "x2", [-1], ["x9"]],
    "device": ["auto", "cpu"],
    "link": [None, "logit"],
}
RUBBISH_FOR = {
    # a million workers, or samples for a year, are what was asked for
    "n_jobs": [one for one in RUBBISH if not isinstance(one, int) or isinstance(one, bool) or one < 2],
    "progress": [one for one in RUBBISH if one is not True],
}


def approaches() -> st.SearchStrategy[Any]:
    """Approaches by name, as objects, as lists of these, and things that are none."""
    names = st.sampled_from(FAST)
    lists = st.lists(names, max_size=3)
    return st.one_of(names, names, lists, objects(), st.sampled_from(RUBBISH))


OWN_OPTIONS: dict[str, list[Any]] = {
    "mean": [np.zeros(3), [0, 1], np.full(3, 1e80)],
    "covariance": [
        "sample",
        "ledoit_wolf",
        np.eye(3),
        np.zeros((3, 3)),
        -np.eye(3),
        np.eye(2),
        np.full((3, 3), 1e-320),
    ],
    "sigma": [0.1, 1e-9, 1e9],
    "eta": [0.5, 1.0],
    "bandwidth": ["fixed", "aicc", "aicc_approx"],
    "margins": ["empirical", "kernel"],
    "mincriterion": [0.95, 0.0, 1.0, [0.9, 0.5]],
    "minsplit": [2, 20, [4, 9]],
    "minbucket": [1, 7, [1, 2]],
    "epsilon": [0.001, 0.5],
    "share_unseen": [True, False],
    "joint_table": [pd.DataFrame({"x0": [1.0]})],
    "regressor": ["linear", "cv"],
}


@st.composite
def objects(draw) -> Any:
    """An approach object with some options that may be anything."""
    kind = find_approach(draw(st.sampled_from(FAST)))
    own = [name for name in inspect.signature(kind).parameters if name in OWN_OPTIONS]
    chosen = draw(st.lists(st.sampled_from(own), unique=True, max_size=2)) if own else []
    return kind(**{name: draw(st.sampled_from([*OWN_OPTIONS[name], *RUBBISH])) for name in chosen})


@st.composite
def options(draw, names=tuple(USUAL), *, most: int = 3) -> dict[str, Any]:
    """Some options by name, each most often one that goes."""
    chosen = draw(st.lists(st.sampled_from([*names, "n_jobs", "coalitions"]), unique=True, max_size=most))
    return {name: draw(_values(name)) for name in chosen}


def _values(name: str) -> st.SearchStrategy[Any]:
    rubbish = st.sampled_from(RUBBISH_FOR.get(name, RUBBISH))
    usual = st.sampled_from(USUAL[name]) if name in USUAL else rubbish
    return st.one_of(usual, usual, usual, rubbish)
