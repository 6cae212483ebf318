"""Model, training rows, rows -> explanation, or a comparison of approaches, in one call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from condshap.approaches import find_approach
from condshap.approaches.base import Approach, check_missing, check_supported
from condshap.coalitions import CoalitionPlan
from condshap.comparing import comparable
from condshap.explainer import Explainer
from condshap.explanation import Explanation
from condshap.schema import FeatureSchema
from condshap.types import Model, Table


def explain(
    model: Model,
    X_train: Table,
    X: Table,
    *,
    approach: str | Approach | Sequence[str | Approach] = "vaeac",
    categorical: Iterable[str | int] = (),
    n_samples: int | None = None,
    n_coalitions: int | str | None = None,
    tolerance: float = 0.02,
    max_coalitions: int | None = None,
    coalitions: CoalitionPlan | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    base_value: float | Sequence[float] | None = None,
    output: str | int | None = None,
    seed: int = 0,
    n_jobs: int = 1,
    device: str = "auto",
    memory_budget: str | int = "1GiB",
    progress: str | bool = "auto",
    fast_trees: bool = True,
    additive: bool | str = "auto",
    target_error: float | None = None,
    check_draws: bool = True,
) -> Explanation:
    """Fit an `Explainer` on training rows and explain rows with it, in one call; see there for the options."""
    explainer = Explainer(
        model,
        approach=approach,
        n_samples=n_samples,
        n_coalitions=n_coalitions,
        tolerance=tolerance,
        max_coalitions=max_coalitions,
        coalitions=coalitions,
        groups=groups,
        base_value=base_value,
        output=output,
        seed=seed,
        n_jobs=n_jobs,
        device=device,
        memory_budget=memory_budget,
        progress=progress,
        fast_trees=fast_trees,
        additive=additive,
        target_error=target_error,
        check_draws=check_draws,
    )
    return explainer.fit(X_train, categorical=categorical).explain(X)


def compare(
    model: Model,
    X_train: Table,
    X: Table,
    *,
    approaches: Sequence[str | Approach | Sequence[str | Approach]],
    level: float = 0.95,
    **options: Any,
) -> pd.DataFrame:
    """Compare approaches by MSEv (EC3 of the paper, Section 4.1) on the same rows; smaller is better.

    Parameters
    ----------
    approaches : names or objects
    level : of the confidence interval over rows
    options : any option of `explain` but ``approach``

    Returns
    -------
    One line per approach: approach, msev, msev_se, low, high, seconds, model_rows.
    """
    return compare_explanations(
        (explain(model, X_train, X, approach=approach, **options) for approach in approaches), level=level
    )


def check_approaches(names: Iterable[str], X_train: Table, *, categorical: Iterable[str | int] = ()) -> None:
    """Refuse approaches that do not suit training rows, before any of them is fitted."""
    schema = FeatureSchema.learn(X_train, categorical)
    rows = schema.encode(X_train)
    for name in names:
        approach = find_approach(name)()
        check_supported(approach, schema)
        check_missing(approach, rows, schema, what="training rows")


def compare_explanations(explanations: Iterable[Explanation], *, level: float = 0.95) -> pd.DataFrame:
    """MSEv of explanations with its confidence interval over rows, time, and rows that the model was asked for.

    They must be of the same rows, model and base value; where coalitions differ, MSEv is over those that all have.
    """
    given = {f"{i}: {one.provenance.approach}": one for i, one in enumerate(explanations, start=1)}
    lines = []
    for explanation in comparable(given).values() if given else ():
        about, msev = explanation.provenance, explanation.msev
        low, high = msev.interval(level)
        seconds, model_rows = sum(about.seconds.values()), explanation.value_table.n_evaluations
        lines.append((about.approach, float(msev), msev.total_std_error(), low, high, seconds, model_rows))
    return pd.DataFrame(lines, columns=["approach", "msev", "msev_se", "low", "high", "seconds", "model_rows"])
