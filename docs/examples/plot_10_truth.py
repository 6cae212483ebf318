"""
Against the truth
=================

For simulated features with known conditional distributions, we can compute the true Shapley values and compare
approaches with them.
"""

import matplotlib.pyplot as plt
import numpy as np

import condshap as cs
from condshap.evaluation import ec1
from condshap.numerics.shapley import exact_shapley
from condshap.studies.designs import mixed_design

# %%
# Two numbers and two factors of four levels, made from normals with correlation rho, and a linear model, as in the
# paper's Section 4.3.
strengths = (0.0, 0.3, 0.6, 0.9)
errors: dict[str, list[float]] = {"independence": [], "ctree": [], "vaeac": []}
for rho in strengths:
    design = mixed_design("M4", rho=rho)
    X_train, X = design.draw(500, seed=1), design.draw(50, seed=2)
    y = design.respond(X_train, seed=1)
    model = design.fit_linear(X_train, y)
    for approach, found in errors.items():
        explanation = cs.explain(model, X_train, X, approach=approach, base_value=y.mean())
        coalitions = explanation.value_table.coalitions
        truth, _ = design.true_values(model, X, coalitions, base_value=y.mean())
        found.append(float(ec1(exact_shapley(truth, coalitions).T, explanation.values)))

# %%
# The stronger the dependence, the further independence is from the truth.
figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for (approach, found), style in zip(errors.items(), ("o-", "s--", "^-."), strict=True):
    ax.plot(strengths, found, style, label=approach)
ax.set_xlabel("correlation of the features")
ax.set_ylabel("mean absolute error of the Shapley values")
ax.legend(frameon=False)
plt.show()
print({approach: np.round(found, 3).tolist() for approach, found in errors.items()})
