"""
Where conditional values mislead
================================

Four ways to draw wrong conclusions from right numbers, or from numbers that are too uncertain. The truth is known in each
of them, because features are normal and the model is simple.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import condshap as cs

rng = np.random.default_rng(0)


def bars(ax, explanations, title):
    """Values of the first row by several explanations, with 95 % intervals."""
    width = 0.8 / len(explanations)
    for i, (name, explanation) in enumerate(explanations.items()):
        places = np.arange(len(explanation.player_names)) + i * width
        ax.bar(places, explanation.values[0], width, yerr=1.96 * explanation.errors[0], label=name, capsize=3)
    ax.set_xticks(np.arange(len(explanation.player_names)) + 0.4 - width / 2, explanation.player_names)
    ax.axhline(0, color="black", linewidth=0.8)
    ax.set_ylabel("Shapley value")
    ax.set_title(title)
    ax.legend()


# %%
# A feature that the model does not use
# -------------------------------------
# The model looks at income alone, and postcode goes together with income. Seeing the postcode tells much about the
# prediction, so it gets a conditional value, although the model never reads it. This is right for "what does knowing the
# postcode tell about the prediction" and wrong for "what would change if I moved". For the second question use causal
# values, or ``independence`` if features do not cause each other.

income = rng.normal(size=1000)
people = pd.DataFrame(
    {"income": income, "postcode": 0.9 * income + 0.44 * rng.normal(size=1000), "age": rng.normal(size=1000)}
)


def by_income(table):
    return 3.0 * np.asarray(table["income"])


person = people[people["income"] > 1.5][:1]
seen = cs.explain(by_income, people, person, approach="gaussian")
order = {"causal_ordering": [["income", "age"], ["postcode"]], "confounding": False}
moved = cs.explain(by_income, people, person, approach="gaussian", **order)

fig, ax = plt.subplots(figsize=(6.5, 3.5))
bars(ax, {"conditional": seen, "causal: income causes postcode": moved}, "The model reads income only")
plt.show()

# %%
# Columns that repeat each other
# ------------------------------
# The same length in three units: whoever knows one knows all, so they share one value, and each third looks unimportant.
# The more often a column is repeated, the less each copy gets. Put them into one group.

length = rng.normal(size=1000)
things = pd.DataFrame(
    {
        "length": length,
        "width": length + 0.02 * rng.normal(size=1000),
        "height": length + 0.02 * rng.normal(size=1000),
        "weight": 0.3 * length + rng.normal(size=1000),
    }
)


def by_size(table):
    return 2.0 * np.asarray(table["length"]) + 1.2 * np.asarray(table["weight"])


thing = things[things["length"] > 1.5][:1]
single = cs.explain(by_size, things, thing, approach="gaussian")
groups = {"size": ["length", "width", "height"], "weight": ["weight"]}
grouped = cs.explain(by_size, things, thing, approach="gaussian", groups=groups)

fig, axes = plt.subplots(1, 2, figsize=(9, 3.5), sharey=True, layout="constrained")
bars(axes[0], {"four players": single}, "Copies share one value")
bars(axes[1], {"two players": grouped}, "A group has all of it")
plt.show()

# %%
# Few rows
# --------
# How features depend on each other is learned from the training rows. With 40 of them it is a guess. Standard errors do not
# show that, since they are about samples; ``estimate_model_errors`` does.

signs = np.array([1.0, -1.0, 1.0, -1.0])
mixing = np.linalg.cholesky(np.full((4, 4), 0.7) + 0.3 * np.eye(4))


def contrast(table):
    return np.asarray(table) @ signs


table = pd.DataFrame(rng.normal(size=(2000, 4)) @ mixing.T, columns=["a", "b", "c", "d"])
found = {}
for n in (40, 2000):
    explainer = cs.Explainer(contrast, approach="gaussian", base_value=0.0).fit(table[:n])
    explanation = explainer.explain(table[:1])
    found[f"{n} rows"] = explanation.with_model_errors(explainer.estimate_model_errors(table[:1], n_refits=8))

fig, ax = plt.subplots(figsize=(6.5, 3.5))
bars(ax, found, "The same prediction, learned from few and many rows")
plt.show()

# %%
# Many features
# -------------
# Of 2^40 coalitions of 40 features, 1000 are used by default. Small values drown in what the others would have said. Here
# ten features have an effect of their own and pairs of features interact; more coalitions help slowly, groups at once.

wide = pd.DataFrame(rng.normal(size=(500, 40)), columns=[f"x{j}" for j in range(40)])


def pairs(table):
    x = np.asarray(table)
    return 0.5 * x[:, :10].sum(axis=1) + (x[:, 0::2] * x[:, 1::2]).sum(axis=1)


few = cs.explain(pairs, wide, wide[:1], approach="gaussian", n_coalitions=200, n_samples=32)
many = cs.explain(pairs, wide, wide[:1], approach="gaussian", n_coalitions=2000, n_samples=32)
tens = {f"x{10 * i} to x{10 * i + 9}": [f"x{10 * i + j}" for j in range(10)] for i in range(4)}
in_groups = cs.explain(pairs, wide, wide[:1], approach="gaussian", groups=tens)

for name, explanation in {"200 coalitions": few, "2000 coalitions": many, "four groups": in_groups}.items():
    sure = np.abs(explanation.values) > 1.96 * explanation.errors
    print(f"{name}: {sure.sum()} of {sure.size} signs are certain")

fig, ax = plt.subplots(figsize=(6.5, 3.5))
for name, explanation in {"200 coalitions": few, "2000 coalitions": many}.items():
    order = np.argsort(-np.abs(many.values[0]))
    ax.errorbar(
        np.arange(40), explanation.values[0, order], 1.96 * explanation.errors[0, order], fmt="o", label=name, capsize=2
    )
ax.axhline(0, color="black", linewidth=0.8)
ax.set_xlabel("feature, by size of its value")
ax.set_ylabel("Shapley value")
ax.legend()
plt.show()
