"""
Thirty features
===============

30 features have more than a billion coalitions. A few hundred are enough, and the standard errors tell how precise
the result is.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from xgboost import XGBClassifier

import condshap as cs

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
train, rows = X.iloc[100:], X.iloc[:10]
model = XGBClassifier(n_estimators=100, max_depth=3, random_state=0).fit(train, y.iloc[100:])

# %%
# Every row gets more coalitions until its largest standard error is at most 10 % of its spread.
options = {"approach": "copula", "output": 1, "n_coalitions": "auto", "tolerance": 0.1}
explainer = cs.Explainer(model, **options).fit(train)
explanation = explainer.explain(rows)
used = np.logical_not(np.isnan(explanation.value_table.values)).sum(axis=0)
print(f"coalitions a row: {used.min()} to {used.max()}; worst row: {explanation.provenance.reached:.3f} of its spread")

# %%
# Small values are folded into "others"; the rest have error bars.
cs.plots.waterfall(explanation, row=0, max_features=10)
plt.show()

# %%
# If that is not precise enough, continue: nothing is computed twice.
finer = explainer.refine(explanation[:2], tolerance=0.07)  # only the first two rows
used = np.logical_not(np.isnan(finer.value_table.values)).sum(axis=0)
print(f"coalitions a row: {used.min()} to {used.max()}; worst row: {finer.provenance.reached:.3f} of its spread")

# %%
# The 30 columns are ten measurements, each with its mean, standard error and worst value. With ten groups, all 1024
# coalitions can be used.
measured = sorted({name.removeprefix("mean ") for name in X if name.startswith("mean ")})
groups = {one: [f"mean {one}", f"{one} error", f"worst {one}"] for one in measured}
grouped = cs.explain(model, train, rows, approach="copula", output=1, groups=groups)
cs.plots.beeswarm(grouped)
plt.show()
