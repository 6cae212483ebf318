"""
Look at what the networks have learned
======================================

Behind ``vaeac`` are networks that can be trained, watched and asked without any model to explain.
"""

import matplotlib.pyplot as plt

import condshap as cs
from condshap.datasets import load_penguins

X = load_penguins().X.drop(columns="year")
network = cs.VAEAC().fit(X, seed=1)

# %%
# Training: the variational bound on training rows, and a tighter one on held-out rows, which decides when to stop.
cs.plots.training_curves(network)
plt.show()

# %%
# New penguins, drawn with nothing known, beside real ones. That is the hardest question: features are independent given the
# latent variables, so what these have not learned is missing from the correlations. The more is known, the less it matters.
generated = network.sample_table(X[:1], [[]], len(X))
cs.plots.pairs(X, generated, features=["bill_length_mm", "bill_depth_mm", "body_mass_g", "island"])
plt.show()

# %%
# Given an island: conditional draws should lie where penguins of that island do.
bird = X.iloc[[0]]
given = {"given the island": network.sample_table(bird, [["island"]], 200)}
cs.plots.conditional_samples(X[X["island"] == bird["island"].item()], given, "bill_length_mm", "bill_depth_mm")
plt.show()

# %%
# How likely is a row? The least likely ones deserve a look.
score = network.log_likelihood(X, [[]])[0]
print(X.assign(log_density=score).nsmallest(3, "log_density"))
