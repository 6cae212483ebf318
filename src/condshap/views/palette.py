"""Colours that plots, notebook and report share: signs, approaches, sizes. `reporting/assets/page.css` repeats the signs.

Signs can be told apart by the colour-blind and read as text on white. Approaches, and whatever else stands side by side,
never have the colours of signs.
"""

from __future__ import annotations

RAISES, LOWERS, NEUTRAL, GREY, DARK = "#C2410C", "#1D4ED8", "#5A6069", "#BBBBBB", "#333333"
"""A player that raises the prediction, one that lowers it, sizes without a sign, background, lines and texts."""

APPROACHES = {
    "independence": "#C98A00",
    "ctree": "#007A3D",
    "vaeac": "#7B2FBF",
    "vaeac-paper": "#B58BD8",
    "vaeac-uniform": "#B58BD8",
    "gaussian": "#CC5FA0",
    "copula": "#6B4A32",
    "empirical": "#777777",
    "categorical": "#8A8A2B",
    "regression_separate": "#882255",
    "regression_surrogate": "#2E9C94",
    "truth": "#000000",
}
CYCLE = ("#7B2FBF", "#C98A00", "#007A3D", "#CC5FA0", "#2E9C94", "#882255", "#777777", "#8A8A2B")
"""What has no colour of its own, in this order."""
