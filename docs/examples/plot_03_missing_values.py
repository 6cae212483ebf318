"""
Missing values
==============

Some measurements of these penguins are missing. condshap explains rows with gaps, whether the model accepts gaps
or not.
"""

import matplotlib.pyplot as plt
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

import condshap as cs
from condshap.datasets import load_penguins

data = load_penguins()
X = data.X.drop(columns=["island", "year"])
print(X.isna().sum())

# %%
# Gradient boosting accepts gaps. So do the networks of ``vaeac``, both in training and when they explain a row.
model = HistGradientBoostingClassifier(random_state=0, categorical_features="from_dtype")
model.fit(X.iloc[data.train], data.y_train)
explainer = cs.Explainer(model, output="Gentoo").fit(X.iloc[data.train])

gaps = X[X.isna().any(axis=1)].iloc[[0, 1, 2, 5]]
explanation = explainer.explain(gaps)
print(gaps)

# %%
# In the second row only the sex is missing. That it is missing is what we know about the sex.
cs.plots.waterfall(explanation, row=1)
plt.show()

# %%
# The first row has no measurement at all, but it still has a prediction: what the model says about a bird of which
# nothing was recorded.
print(explanation.to_frame().round(3).T)

# %%
# Logistic regression refuses gaps. Its prediction for a row with gaps is the mean over completed rows, which are
# drawn given the observed values.
numbers = X.drop(columns="sex")
complete = numbers.iloc[data.train].dropna()
refuses = LogisticRegression(max_iter=10_000).fit(complete, data.y[complete.index])
rows = numbers[numbers.isna().any(axis=1)]
filled = cs.explain(refuses, numbers.iloc[data.train], rows, output="Gentoo")
print(filled.to_frame().round(3).T)

# %%
# The same networks can fill the gaps of a whole table several times, for multiple imputation.
network = cs.VAEACNetworks().fit(X, seed=1)
masses = [table["body_mass_g"].mean() for table in network.impute(X, 5, seed=2)]
print([round(float(mass), 1) for mass in masses])
