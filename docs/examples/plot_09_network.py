"""
Look at what the networks have learned
======================================

The networks behind ``vaeac`` can be trained, inspected and sampled without a model to explain.
"""

import matplotlib.pyplot as plt

import condshap as cs
from condshap.datasets import load_penguins

X = load_penguins().X.drop(columns="year")
network = cs.VAEACNetworks().fit(X, seed=1)

# %%
# Training: the variational bound on training rows, and a tighter bound on held-out rows, which decides when to stop.
cs.plots.training_curves(network)
plt.show()

# %%
# New penguins, drawn with nothing known, beside real ones. This is the hardest case: features are independent given
# the latent variables, so whatever these have not learned is missing from the correlations. The more is known, the
# less it matters.
generated = network.sample_table(X[:1], [[]], len(X))
cs.plots.pairs(X, generated, features=["bill_length_mm", "bill_depth_mm", "body_mass_g", "island"])
plt.show()

# %%
# Given an island, the draws should lie where the penguins of that island do.
bird = X.iloc[[0]]
given = {"given the island": network.sample_table(bird, [["island"]], 200)}
cs.plots.conditional_samples(X[X["island"] == bird["island"].item()], given, "bill_length_mm", "bill_depth_mm")
plt.show()

# %%
# How likely is a row? Look at the least likely ones.
score = network.log_likelihood(X, [[]])[0]
print(X.assign(log_density=score).nsmallest(3, "log_density"))
