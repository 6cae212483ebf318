"""Other games than the share of a prediction: losses, interactions, unions, forecasts."""
