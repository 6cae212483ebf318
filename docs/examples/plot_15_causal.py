"""
Causes and effects
==================

A snail's sex and size come before its weight. Causal values ask what *setting* a feature does to the prediction, and
asymmetric values give causes the credit for what their effects pass on.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import condshap as cs
from condshap.datasets import load_abalone

data = load_abalone()
encode = make_column_transformer((OneHotEncoder(), ["Sex"]), remainder="passthrough")
model = make_pipeline(encode, RandomForestRegressor(500, min_samples_leaf=5, random_state=0))
model.fit(data.X_train, data.y_train)

# %%
# Components go from causes to effects. Growth drives all three lengths, and nobody measured it: they are confounded.
order = [["Sex"], ["Length", "Diameter", "Height"], ["WholeWeight", "ShuckedWeight", "VisceraWeight", "ShellWeight"]]
kinds = {
    "conditional": {},
    "causal": {"causal_ordering": order, "confounding": [False, True, False]},
    "asymmetric": {"causal_ordering": order, "asymmetric": True},
}
found = {
    name: cs.explain(model, data.X_train, data.X_test[:20], approach="ctree", **options)
    for name, options in kinds.items()
}
print(found["causal"].provenance.question)

# %%
# One snail, explained three ways. All three add up to the same prediction.
figure, axes = plt.subplots(1, 3, figsize=(15, 3.6), layout="constrained", sharex=True)
for ax, (name, explanation) in zip(axes, found.items(), strict=True):
    cs.plots.bar(explanation, rows=3, ax=ax)
    ax.set_title(name)
plt.show()

# %%
# Over twenty snails: asymmetric values move the credit from the weights to the lengths that come before them.
for name, explanation in found.items():
    sizes = np.abs(explanation.values).mean(axis=0)
    shares = dict(zip(explanation.player_names, sizes / sizes.sum(), strict=True))
    by_component = [sum(shares[player] for player in component) for component in order]
    print(f"{name:12} sex {by_component[0]:.0%}, size {by_component[1]:.0%}, weights {by_component[2]:.0%}")
