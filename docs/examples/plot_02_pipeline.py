"""
A pipeline and a table with categories
======================================

From a fitted scikit-learn pipeline to plots of one row and of many. Each category stays one column.
"""

import matplotlib.pyplot as plt
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import condshap as cs
from condshap.datasets import load_abalone

# %%
# The table is a pandas frame whose column ``Sex`` is a category. The encoder is part of the model.
data = load_abalone()
encode = make_column_transformer((OneHotEncoder(), ["Sex"]), remainder="passthrough")
model = make_pipeline(encode, RandomForestRegressor(500, min_samples_leaf=5, random_state=0))
model.fit(data.X_train, data.y_train)

# %%
# ``ctree`` needs hardly any training and supports both kinds of columns. Fit once, explain many rows.
explainer = cs.Explainer(model, approach="ctree").fit(data.X_train)
explanation = explainer.explain(data.X_test)
print(explanation)
print(explanation.to_frame().head().round(2).T)

# %%
# One row, from the base value to its prediction. Thin lines show standard errors.
cs.plots.waterfall(explanation, row=0)
plt.show()

# %%
# All rows at once: one point per snail, coloured by the value of the feature.
cs.plots.beeswarm(explanation)
plt.show()

# %%
# The values of one feature against its Shapley values, coloured by another feature.
cs.plots.scatter(explanation, "ShellWeight", color="Sex")
plt.show()

# %%
# The mean absolute value over rows measures importance. You can also choose rows.
figure, axes = plt.subplots(1, 2, figsize=(11, 3.6), layout="constrained")
cs.plots.bar(explanation, ax=axes[0])
cs.plots.bar(explanation, rows=[0], ax=axes[1])
plt.show()
