"""
Which approach suits my data?
=============================

MSEv ranks approaches on real data, where nobody knows the true values.
"""

import matplotlib.pyplot as plt
from sklearn.ensemble import RandomForestRegressor

import condshap as cs
from condshap.datasets import load_diabetes

data = load_diabetes()
X_train, X_test = (X.drop(columns="sex") for X in (data.X_train, data.X_test))
model = RandomForestRegressor(500, min_samples_leaf=5, random_state=0).fit(X_train, data.y_train)

# %%
# All approaches use the same rows and the same coalitions. More rows make the comparison sharper.
approaches = ["independence", "gaussian", "copula", "empirical", "ctree", "vaeac"]
found = {approach: cs.explain(model, X_train, X_test[:50], approach=approach) for approach in approaches}

# %%
# Overall, approaches that model dependence do better than the one that does not. Intervals are over rows.
cs.plots.msev(found)
plt.show()

# %%
# Intervals overlap because difficult rows are difficult for every approach. Differences by row remove this effect:
# below zero, an approach is better than the first.
cs.plots.msev({name: found[name] for name in ("gaussian", "copula", "ctree", "vaeac")}, by="row")
plt.show()

# %%
# By the number of known features: where does an approach do badly?
cs.plots.msev({name: found[name] for name in ("independence", "ctree", "vaeac")}, by="size")
plt.show()

# %%
# And does it matter for a single patient?
cs.plots.compare({name: found[name] for name in ("independence", "gaussian", "vaeac")}, row=1)
plt.show()

# %%
# ``cs.compare(model, X_train, X, approaches=[...])`` gives the same as a table, in one call.
for name, explanation in found.items():
    low, high = explanation.msev.interval()
    seconds = sum(explanation.provenance.seconds.values())
    print(f"{name:13} MSEv {float(explanation.msev):6.1f}   [{low:6.1f}, {high:6.1f}]   {seconds:5.1f} s")
