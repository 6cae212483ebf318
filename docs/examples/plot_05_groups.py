"""
Groups of features
==================

Seven measurements of a snail are hardly seven separate facts. Groups turn features that belong together into one
player.
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
model = make_pipeline(encode, RandomForestRegressor(500, min_samples_leaf=5, random_state=0))
model.fit(data.X_train, data.y_train)

groups = {
    "size": ["Length", "Diameter", "Height"],
    "soft parts": ["ShuckedWeight", "VisceraWeight"],
    "shell and whole": ["ShellWeight", "WholeWeight"],
    "sex": ["Sex"],
}
explanation = cs.explain(model, data.X_train, data.X_test, approach="ctree", groups=groups)
print(explanation)

# %%
# Four players have 16 coalitions instead of 256, and a plot that you can read at a glance.
figure, axes = plt.subplots(1, 2, figsize=(11, 3.2), layout="constrained")
cs.plots.bar(explanation, ax=axes[0])
cs.plots.waterfall(explanation, row=3, ax=axes[1])
plt.show()

# %%
# One column per row, ordered by prediction: where does each group matter?
cs.plots.heatmap(explanation)
plt.show()

# %%
# The value of a group is not the sum of its members' values: interactions across groups are split among groups
# here, and among single features there.
single = cs.explain(model, data.X_train, data.X_test[:20], approach="ctree")
columns = list(single.player_names)
for player, (name, members) in enumerate(groups.items()):
    added = single.values[:, [columns.index(member) for member in members]].sum(axis=1)
    print(f"{name:16} value {explanation.values[0, player]:6.2f}   sum of members {added[0]:6.2f}")
