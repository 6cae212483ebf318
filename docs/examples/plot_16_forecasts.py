"""
Forecasts over several steps
============================

A forest forecasts the demand of the next seven days. Which variables move the forecast, and does that change with the step?
"""

# %%
# Demand follows its own past, the temperature of the day before, and a price that is set in advance.

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor

import condshap as cs

rng = np.random.default_rng(3)
days = pd.date_range("2022-01-01", periods=600)
temperature, price, demand = np.full(600, 10.0), np.full(600, 5.0), np.full(600, 42.0)
for t in range(1, 600):
    temperature[t] = 1 + 0.9 * temperature[t - 1] + rng.normal()
    price[t] = 1 + 0.8 * price[t - 1] + 0.5 * rng.normal()
    demand[t] = 36 + 0.5 * demand[t - 1] - 0.5 * temperature[t - 1] - 2 * price[t] + rng.normal()
series = pd.Series(demand, index=days, name="demand")
exogenous = pd.DataFrame({"temperature": temperature, "price": price}, index=days)

# %%
# `lagged_table` builds the rows that the model is trained on: three lags of the demand, two of the others, and the prices
# of the days ahead.

layout = {"lags": 3, "horizon": 7, "exogenous_lags": 2, "known_ahead": ["price"]}
X, y = cs.lagged_table(series[:500], exogenous=exogenous[:500], **layout)
model = RandomForestRegressor(100, min_samples_leaf=5, random_state=0).fit(X, y)

# %%
# One run explains all steps. On this day, low demand in the past and high prices ahead lower the forecast; both matter less
# for the last steps.

times = days[550:570]
explanation = cs.explain_forecast(model, series, exogenous=exogenous, **layout, at=times, approach="gaussian")
cs.plots.horizons(explanation, row=5)

# %%
# Single steps are outputs, so every other plot shows them too.

cs.plots.beeswarm(explanation[..., "t+1"])

# %%
# Rows can be split into cohorts: is the price more important when it is high?

high = np.where(explanation.data["price t+1"] > price[:500].mean(), "high price", "low price")
cs.plots.bar(explanation.cohorts(high), output="t+1")
