"""Conditional Shapley values: explain single predictions of any model, respecting the dependence between features.

Names are imported when they are first used, so that ``import condshap`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from condshap import approaches, plots
    from condshap.amortised.fast_explainer import FastExplainer
    from condshap.approaches import available_approaches
    from condshap.bulk.opening import ExplanationSet, open_explanations
    from condshap.coalitions import CoalitionPlan
    from condshap.comparison import compare
    from condshap.evaluation import MSEv
    from condshap.exceptions import CondShapError, CondShapWarning
    from condshap.explainer import Explainer, explain
    from condshap.explanation import Explanation
    from condshap.games.forecasts import explain_forecast
    from condshap.games.lagged import lagged_table
    from condshap.games.loss_explanation import LossExplanation
    from condshap.reporting import report
    from condshap.schema import FeatureSchema, Kind
    from condshap.storage.explainers import load_explainer
    from condshap.storage.explanations import load_explanation
    from condshap.vaeac.estimator import VAEACNetworks
    from condshap.values.table import ValueTable

__version__ = "0.2.0"

__all__ = [
    "CoalitionPlan",
    "CondShapError",
    "CondShapWarning",
    "Explainer",
    "Explanation",
    "ExplanationSet",
    "FastExplainer",
    "FeatureSchema",
    "Kind",
    "LossExplanation",
    "MSEv",
    "VAEACNetworks",
    "ValueTable",
    "approaches",
    "available_approaches",
    "compare",
    "explain",
    "explain_forecast",
    "lagged_table",
    "load_explainer",
    "load_explanation",
    "open_explanations",
    "plots",
    "report",
]

_HOME = {
    "CoalitionPlan": "coalitions",
    "CondShapError": "exceptions",
    "CondShapWarning": "exceptions",
    "Explainer": "explainer",
    "Explanation": "explanation",
    "ExplanationSet": "bulk.opening",
    "FastExplainer": "amortised.fast_explainer",
    "FeatureSchema": "schema",
    "Kind": "schema",
    "LossExplanation": "games.loss_explanation",
    "MSEv": "evaluation",
    "VAEACNetworks": "vaeac.estimator",
    "ValueTable": "values.table",
    "available_approaches": "approaches",
    "compare": "comparison",
    "explain": "explainer",
    "explain_forecast": "games.forecasts",
    "lagged_table": "games.lagged",
    "load_explainer": "storage.explainers",
    "load_explanation": "storage.explanations",
    "open_explanations": "bulk.opening",
    "report": "reporting",
}


_RENAMED = {"VAEAC": "VAEACNetworks"}  # old names that work with a warning, see CONTRIBUTING.md


def __getattr__(name: str) -> Any:
    """Import a public name, or the module of approaches or plots, on first use."""
    if name in ("approaches", "plots"):
        return import_module(f"condshap.{name}")
    if name in _RENAMED:
        import warnings

        warnings.warn(
            f"condshap.{name} has been renamed to condshap.{_RENAMED[name]}, so that it is not confused with "
            f"condshap.approaches.{name}. The old name will be removed in version 0.4.",
            FutureWarning,
            stacklevel=2,
        )
        return __getattr__(_RENAMED[name])
    if name not in _HOME:
        raise AttributeError(f"module 'condshap' has no attribute {name!r}")
    found = getattr(import_module(f"condshap.{_HOME[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """List the public names."""
    return sorted({*globals(), *__all__})
