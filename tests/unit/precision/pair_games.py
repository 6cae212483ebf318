"""A model of many features that interact, an explainer of it, and games of coalitions, for tests of automatic coalitions."""

from __future__ import annotations

import numpy as np

import condshap as cs

M = 12


RNG = np.random.default_rng(0)


X = 0.7 * RNG.normal(size=(300, 1)) + 0.7 * RNG.normal(size=(300, M))


SLOPES = RNG.normal(size=M)


def model(x):
    x = np.asarray(x)
    products = x[:, 0] * x[:, 1] + np.sin(2 * x[:, 2]) * x[:, 3] + 2 * x[:, 4] * x[:, 5] * x[:, 6]
    return sum(x[:, j] * SLOPES[j] for j in range(M)) + products


def fit(**options):
    rows = options.pop("rows", X)
    given = {"approach": "independence", "n_samples": 300, "n_coalitions": "auto"}
    return cs.Explainer(options.pop("model", model), **{**given, **options}).fit(rows)


def game(plan, seed=0, order=3):
    """Sum of random products of up to `order` indicators, (C, 2, 1)."""
    rng = np.random.default_rng(seed)
    v = np.zeros((len(plan.masks), 2))
    for d in range(1, order + 1):
        for _ in range(20):
            members = rng.choice(plan.n_players, d, replace=False)
            v += plan.masks[:, members].all(axis=1)[:, None] * rng.normal(size=2)
    return v[..., None]


def blurred(x):
    """Interactions of many features and hardly any effect of one."""
    x = np.asarray(x)
    return 0.01 * x.sum(axis=1) + sum(x[:, j] * x[:, (j + 1) % M] * x[:, (j + 5) % M] for j in range(M))
