"""
Which features the model needs
==============================

Shapley values of predictions say what a model leans on. Shares of its loss say what helps it to be right: SAGE values,
with dependence and with standard errors.
"""

import matplotlib.pyplot as plt
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import condshap as cs
from condshap.datasets import load_abalone

data = load_abalone()
encode = make_column_transformer((OneHotEncoder(), ["Sex"]), remainder="passthrough")
model = make_pipeline(encode, RandomForestRegressor(100, min_samples_leaf=5, random_state=0))
model.fit(data.X_train, data.y_train)

explainer = cs.Explainer(model, approach="ctree").fit(data.X_train)
loss = explainer.explain_loss(data.X_test, data.y_test, loss="squared_error")
print(loss.importance_frame().round(3))

# %%
# The rows are not those that the forest was trained on. On the left the mean decrease of the squared error, with one
# standard error for other snails like these; on the right how single snails differ.
figure, axes = plt.subplots(1, 2, figsize=(12, 3.8), layout="constrained")
cs.plots.bar(loss, ax=axes[0])
cs.plots.beeswarm(loss, ax=axes[1])
plt.show()

# %%
# The snail with the largest loss, from the base loss at the bottom to its loss at the top: what goes left helps.
cs.plots.waterfall(loss, row=int(loss.losses.argmax()))
plt.show()
