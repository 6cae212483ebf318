"""Worked numbers of other questions: the linear model of the airquality table, by closed forms.

Ordinary least squares on all 111 rows, 108 training rows, `gaussian`, first explained row. The numbers were worked out from
the definitions, apart from this package.
"""

from itertools import chain, permutations, product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import condshap as cs

TABLE = pd.read_csv(Path(__file__).parent / "data" / "airquality.csv")
NAMES = ["Solar.R", "Wind", "Temp", "Month", "Day"]
ORDER = [["Solar.R", "Wind"], ["Temp"], ["Month", "Day"]]
TRAIN, ROWS = TABLE[TABLE["split"] == "train"], TABLE[TABLE["split"] == "explain"]
MODEL = LinearRegression().fit(TABLE[NAMES], TABLE["Ozone"])
WORKED = {
    "conditional": ({}, [-8.5775, 7.8452, 14.4756, 0.6251, -1.7664]),
    "asymmetric": ({"causal_ordering": ORDER, "asymmetric": True}, [-11.0633, 15.3060, 13.8828, -2.6182, -2.9053]),
    "causal": ({"causal_ordering": ORDER, "confounding": True}, [-6.9161, 10.9928, 15.6120, -4.0487, -3.0380]),
}


@pytest.mark.parametrize("kind", WORKED)
def test_worked_numbers(kind):
    options, worked = WORKED[kind]
    options = {"approach": "gaussian", "base_value": TRAIN["Ozone"].mean(), "progress": False, **options}
    exact = cs.explain(MODEL, TRAIN[NAMES], ROWS[NAMES], **options)
    np.testing.assert_allclose(exact.values[0], worked, atol=1e-4)
    # by draws, without what was read of the model: five values at 4 standard errors, one false alarm in 3,000 seeds
    drawn = cs.explain(MODEL, TRAIN[NAMES], ROWS[NAMES], additive=False, n_samples=1024, **options)
    assert (np.abs(drawn.values[0] - worked) <= 0.02 + 4 * drawn.std_errors[0]).all()


GROUPED = {"sun": ["Solar.R", "Wind"], "Temp": ["Temp"], "date": ["Month", "Day"]}
SINGLE = {name: [name] for name in NAMES}


def mean_after_setting(x, known, components, confounded):
    """E[X | do(x_known)] of a normal distribution, component by component: only means count for a linear model."""
    mean, covariance = TRAIN[NAMES].mean().to_numpy(), TRAIN[NAMES].cov().to_numpy()
    found, earlier = np.full(len(NAMES), np.nan), []
    for component, is_confounded in zip(components, confounded, strict=True):
        old = [j for j in component if j in known]
        new = [j for j in component if j not in known]
        found[old] = x[old]
        given = earlier if is_confounded else earlier + old
        slopes = np.linalg.pinv(covariance[np.ix_(given, given)]) @ covariance[np.ix_(given, new)]
        found[new] = mean[new] + (found[given] - mean[given]) @ slopes
        earlier = earlier + component
    return found


def average_over_orders(x, groups, order, confounded, *, asymmetric):
    """Values by their definition: marginal contributions over all orders of the players, or those that respect `order`."""
    columns = {name: [NAMES.index(one) for one in own] for name, own in groups.items()}
    components = [list(chain.from_iterable(columns[name] for name in component)) for component in order]
    components, flags = ([list(range(5))], [False]) if confounded is None else (components, confounded)
    phi, v = dict.fromkeys(groups, 0.0), {frozenset(): TRAIN["Ozone"].mean()}
    orders = (
        [list(chain(*one)) for one in product(*map(permutations, order))] if asymmetric else list(permutations(groups))
    )
    for one in orders:
        known = frozenset()
        for player in one:
            before, known = v[known], known.union(columns[player])
            if known not in v:
                v[known] = MODEL.intercept_ + mean_after_setting(x, known, components, flags) @ MODEL.coef_
            phi[player] += (v[known] - before) / len(orders)
    return list(phi.values())


FLAGS = [None, [True, False, False], [False, True, True], [False, False, False]]


@pytest.mark.parametrize(
    ("confounded", "asymmetric"), list(product(FLAGS, [False, True]))[1:]
)  # an order alone changes nothing
@pytest.mark.parametrize(
    ("groups", "order"),
    [
        (SINGLE, ORDER),
        (SINGLE, [["Day", "Month"], ["Temp", "Solar.R"], ["Wind"]]),
        (GROUPED, [["date"], ["Temp"], ["sun"]]),
    ],
)
def test_causal_and_asymmetric_values_are_those_of_their_definitions(groups, order, confounded, asymmetric):
    options = {"causal_ordering": order, "confounding": confounded, "asymmetric": asymmetric, "progress": False}
    options |= {"approach": "gaussian", "base_value": TRAIN["Ozone"].mean(), "check_draws": False, "groups": groups}
    found = cs.explain(MODEL, TRAIN[NAMES], ROWS[NAMES], **options)
    wanted = [
        average_over_orders(x, groups, order, confounded, asymmetric=asymmetric) for x in ROWS[NAMES].to_numpy(float)
    ]
    np.testing.assert_allclose(found.values, wanted, atol=1e-6)
