"""Amortised explanations: a network that has learned Shapley values from an explainer, and hands them out by the million."""
