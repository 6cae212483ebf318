"""
A classifier with three classes
===============================

All classes are explained at once, from the same samples. The model is XGBoost; compiled code evaluates its trees.
"""

import matplotlib.pyplot as plt
from xgboost import XGBClassifier

import condshap as cs
from condshap.datasets import load_penguins

data = load_penguins()
X = data.X[["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]].dropna()
species = data.y[X.index]
model = XGBClassifier(n_estimators=100, max_depth=3, random_state=0).fit(X, species.cat.codes)

# %%
# XGBoost needs numbers as classes and has no names for them. Outputs can be picked by position.
explanation = cs.explain(model, X, X[::4], approach="copula")
print(explanation)
print(species.cat.categories.tolist(), explanation.output_names)

# %%
# One plot per class: ``facet`` draws a panel for every output.
cs.plots.facet(cs.plots.beeswarm, explanation)
plt.show()

# %%
# One bird, a Gentoo: the class it is assigned to, and one it is not.
bird = int((species[::4] == "Gentoo").to_numpy().argmax())
figure, axes = plt.subplots(1, 2, figsize=(11, 3.4), layout="constrained")
for ax, output in zip(axes, (2, 0), strict=True):
    cs.plots.waterfall(explanation, row=bird, output=output, ax=ax)
    ax.set_title(species.cat.categories[output], fontsize=11)
plt.show()

# %%
# Probabilities add up to one, so the values of a feature add up to zero over the classes.
print(abs(explanation.values.sum(axis=2)).max() < 1e-6)
