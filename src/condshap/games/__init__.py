"""Other games than the share of a prediction: causal orders, losses, interactions, unions, forecasts."""
