"""
Beside shap
===========

The same forest explained with shap's TreeExplainer and with condshap, with shap's plots of both.
"""

import matplotlib.pyplot as plt
import numpy as np
import shap
from sklearn.ensemble import RandomForestRegressor

import condshap as cs
from condshap.datasets import load_diabetes

data = load_diabetes()
X_train, X_test = (X.drop(columns="sex") for X in (data.X_train, data.X_test))
model = RandomForestRegressor(500, min_samples_leaf=5, random_state=0).fit(X_train, data.y_train)

theirs = shap.TreeExplainer(model)(X_test)
explanation = cs.explain(model, X_train, X_test, approach="gaussian")
ours = explanation.to_shap()

# %%
# All of shap's plots accept the values of condshap.
shap.plots.beeswarm(ours, show=False)
plt.show()

# %%
# Feature by feature: the serum measurements depend strongly on each other, so their Shapley values differ most.
figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
for ax, name in zip(axes, ("bmi", "s2", "s5"), strict=True):
    j = list(X_test).index(name)
    ax.scatter(theirs.values[:, j], ours.values[:, j], s=12)
    ax.axline((0, 0), slope=1, color="grey", linewidth=0.8)
    ax.set(title=name, xlabel="TreeExplainer", ylabel="condshap, gaussian")
plt.show()

# %%
# How much of a value remains when dependence counts? Correlation and mean absolute values, by feature.
for j, name in enumerate(X_test):
    r = np.corrcoef(theirs.values[:, j], ours.values[:, j])[0, 1]
    sizes = abs(theirs.values[:, j]).mean(), abs(ours.values[:, j]).mean()
    print(f"{name:4} r = {r:5.2f}   mean |value| {sizes[0]:5.1f} (shap) {sizes[1]:5.1f} (condshap)")
