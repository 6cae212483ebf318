"""
Missing values
==============

Penguins were not always measured completely. A model that accepts gaps is explained with the gaps, one that
refuses them too.
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
# Gradient boosting accepts gaps, and so do the networks of ``vaeac``, in training and when a row is explained.
model = HistGradientBoostingClassifier(random_state=0, categorical_features="from_dtype")
model.fit(X.iloc[data.train], data.y_train)
explainer = cs.Explainer(model, output="Gentoo").fit(X.iloc[data.train])

gaps = X[X.isna().any(axis=1)].iloc[[0, 1, 2, 5]]
explanation = explainer.explain(gaps)
print(gaps)

# %%
# Of the second row everything but the sex was noted. That it is missing is what is known about the sex then.
cs.plots.waterfall(explanation, row=1)
plt.show()

# %%
# The first row has no measurement at all, and still a prediction: what the model says about a bird of which
# nothing was noted.
print(explanation.to_frame().round(3).T)

# %%
# Logistic regression refuses gaps. Its prediction for a row with gaps is the mean over completed rows, drawn given
# what was observed.
numbers = X.drop(columns="sex")
complete = numbers.iloc[data.train].dropna()
refuses = LogisticRegression(max_iter=10_000).fit(complete, data.y[complete.index])
rows = numbers[numbers.isna().any(axis=1)]
filled = cs.explain(refuses, numbers.iloc[data.train], rows, output="Gentoo")
print(filled.to_frame().round(3).T)

# %%
# The same networks fill the gaps of a whole table, several times, as multiple imputation wants it.
network = cs.VAEAC().fit(X, seed=1)
masses = [table["body_mass_g"].mean() for table in network.impute(X, 5, seed=2)]
print([round(float(mass), 1) for mass in masses])
