"""Explainers, explanations and networks <-> files: sealed, written at once or not at all, without pickle."""
