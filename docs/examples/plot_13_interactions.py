"""
What features do together
=========================

Interactions of pairs, what dependence has to do with them, and values that respect families of features.
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
explanation = cs.explain(model, data.X_train, data.X_test[:50], approach="ctree", n_samples=100)

# %%
# All 256 coalitions of eight features are there, so interactions cost no further call of the model.
pairs = explanation.interactions(index="k-SII", order=2)
cs.plots.interactions(pairs, row=3)
plt.show()

# %%
# The largest ones over all rows, with error bars, and one row as a network. Faint lines may be noise.
cs.plots.interaction_bar(pairs)
cs.plots.interaction_network(pairs, row=3)
plt.show()

# %%
# Weights of a snail tell nearly the same, so that together they tell less than the sum of what each tells alone. Part
# of an interaction is this dependence. Without it, `independence` shows what the forest does with snails that need not
# exist.
alone = cs.explain(model, data.X_train, data.X_test[:50], approach="independence", n_samples=100).interactions()
for name, found in (("ctree", pairs), ("independence", alone)):
    sizes = np.mean([np.abs(values).mean() for members, values in found.values.items() if len(members) == 2])
    print(f"{name:13} mean size of a pair {sizes:.2f}")

# %%
# Owen values keep single features and respect families. Unions share the prediction out first, then their members.
unions = {
    "size": ["Length", "Diameter", "Height"],
    "weight": {"soft": ["ShuckedWeight", "VisceraWeight"], "shell": ["ShellWeight"], "whole": ["WholeWeight"]},
    "sex": ["Sex"],
}
owen = explanation.owen(unions)
cs.plots.waterfall(owen, row=3)
cs.plots.waterfall(owen, row=3, unfold="weight")
plt.show()
