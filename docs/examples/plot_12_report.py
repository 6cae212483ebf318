"""
Save, load, report
==================

Save what was learned and what was found: an explainer, explanations, and a page to share.
"""

from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt
from lightgbm import LGBMRegressor

import condshap as cs
from condshap.datasets import load_diabetes

data = load_diabetes()
model = LGBMRegressor(n_estimators=60, random_state=0, verbose=-1).fit(data.X_train, data.y_train)
folder = Path(mkdtemp())

# %%
# Train once, on a table with a category.
explainer = cs.Explainer(model, approach="vaeac").fit(data.X_train)
explainer.save(folder / "explainer.safetensors")

# %%
# Later, or on another machine, you need the model and the file. The values are the same as before saving.
later = cs.load_explainer(folder / "explainer.safetensors", model)
explanation = later.explain(data.X_test[:40])
explanation.save(folder / "explanation.parquet")

# %%
# An explanation records how it was made.
again = cs.load_explanation(folder / "explanation.parquet")
print(again.provenance.approach, again.provenance.seed, again.provenance.n_coalitions, again.provenance.versions)

# %%
# One file for people without Python: choose a row, sort, filter, compare.
cs.report(again, folder / "report.html", title="Diabetes")
print(sorted(path.name for path in folder.iterdir()))

# %%
# And one plot for the impatient.
cs.plots.force(again, row=0)
plt.show()
