"""
How certain are the values?
===========================

Every value has a standard error, and condshap can draw samples until it is small enough.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestRegressor

import condshap as cs
from condshap.datasets import load_diabetes

data = load_diabetes()
X_train, X_test = (X.drop(columns="sex") for X in (data.X_train, data.X_test))
model = RandomForestRegressor(500, min_samples_leaf=5, random_state=0).fit(X_train, data.y_train)

# %%
# Different seeds for the same three rows show how far values really move; the standard errors say how far they should.
settings = {"default": {}, "16 everywhere": {"n_samples": 16}, "250 everywhere": {"n_samples": 250}}
for name, options in settings.items():
    repeats = [
        cs.explain(model, X_train, X_test[:3], approach="gaussian", seed=seed, **options)
        for seed in range(4 if "250" in name else 16)
    ]
    moved = np.std([one.values for one in repeats], axis=0, ddof=1)
    stated = np.sqrt(np.mean([one.std_errors**2 for one in repeats], axis=0))
    samples = np.mean(repeats[0].provenance.n_samples)
    print(
        f"{name:15} {samples:6.1f} samples a coalition: values move by {moved.mean():.4f}, stated {stated.mean():.4f}"
    )

# %%
# The other way round: sample until every value has a standard error of at most 0.05, in units of the prediction.
explanation = cs.explain(model, X_train, X_test[:3], approach="gaussian", target_error=0.05)
print(explanation.std_errors.max())

# %%
# Plots show error bars. They measure the error of samples and coalitions, not whether the features are normal; use
# MSEv for that.
rough = cs.explain(model, X_train, X_test[:1], approach="independence", n_samples=16)
cs.plots.compare({"16 samples": rough, "to 0.05": explanation[:1]})
plt.show()
