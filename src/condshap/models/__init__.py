"""How models are asked: the predictor, libraries, trees on a device, and what is read of additive models."""
