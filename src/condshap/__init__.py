"""Conditional Shapley values: explain single predictions of any model, respecting the dependence between features."""

from __future__ import annotations

from condshap import approaches
from condshap.approaches import available_approaches
from condshap.coalitions import CoalitionPlan
from condshap.evaluation import MSEv
from condshap.exceptions import CondShapError, CondShapWarning
from condshap.explainer import Explainer, compare, explain
from condshap.explanation import Explanation
from condshap.schema import FeatureSchema, Kind
from condshap.storage import load_explanation
from condshap.values import ValueTable

__version__ = "0.1.0"

__all__ = [
    "CoalitionPlan",
    "CondShapError",
    "CondShapWarning",
    "Explainer",
    "Explanation",
    "FeatureSchema",
    "Kind",
    "MSEv",
    "ValueTable",
    "approaches",
    "available_approaches",
    "compare",
    "explain",
    "load_explanation",
]
