"""Model, training rows, rows -> explanation, or a comparison of approaches, in one call."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from condshap.approaches import find_approach
from condshap.approaches.base import Approach, check_missing, check_supported
from condshap.coalitions import CoalitionPlan
from condshap.comparison import comparable
from condshap.exceptions import ApproachError, CondShapError, CondShapWarning
from condshap.explainer import Explainer
from condshap.explanation import Explanation
from condshap.options import check_level
from condshap.schema import FeatureSchema, listed_columns
from condshap.types import Model, Outputs, Rows, Table

COLUMNS = ["approach", "msev", "msev_se", "low", "high", "seconds", "model_rows"]


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
    return finish(get_ready(explainer, X_train, X, categorical=categorical))


@dataclass(frozen=True, slots=True)
class Ready:
    """An explainer before training, and rows for it to which it will not object.

    Attributes
    ----------
    X, rows : (R, M) the table to explain as given and encoded
    outputs : (R, O) predictions, NaN where a gap is yet to be filled by what is learned
    seconds : that these took
    """

    explainer: Explainer
    X: Table
    rows: Rows
    outputs: Outputs
    seconds: float


def get_ready(
    explainer: Explainer,
    X_train: Table,
    X: Table,
    *,
    categorical: Iterable[str | int] = (),
    encoded: Rows | None = None,
) -> Ready:
    """Refuse whatever can be refused, of training rows, rows to explain, options and model, before anything is trained.

    `encoded` (N, M) are the training rows if another explainer has encoded them already.
    """
    explainer._prepare(X_train, categorical, encoded)
    start = time.perf_counter()
    rows = explainer._check_rows(X)
    outputs = explainer._predict_early(rows)
    return Ready(explainer, X, rows, outputs, time.perf_counter() - start)


def finish(ready: Ready) -> Explanation:
    """Train and explain."""
    explainer = ready.explainer._learn()
    start = time.perf_counter() - ready.seconds
    return explainer._explain(ready.X, ready.rows, explainer._predict(ready.rows, ready.outputs), start)


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

    Notes
    -----
    Everything that can be refused is refused before the first approach is trained. One that fails later has a line of NaN,
    and a warning says why; the others are kept.
    """
    level = check_level(level)
    chosen = _listed(approaches)
    categorical = options.pop("categorical", ())
    explainers = [Explainer(model, approach=approach, **options) for approach in chosen]
    found: list[Explanation | Exception] = []
    for ready in get_all_ready(explainers, X_train, X, categorical=categorical):
        try:
            found.append(finish(ready))
        except Exception as error:  # of whatever kind: what other approaches have cost must not be lost
            found.append(error)
    finished = [one for one in found if isinstance(one, Explanation)]
    lines = iter(compare_explanations(finished, level=level).to_dict("records"))
    table: list[dict[Any, Any]] = []
    for explainer, one in zip(explainers, found, strict=True):
        if isinstance(one, Explanation):
            table.append(next(lines))
        elif not finished:
            raise one
        else:
            table.append({"approach": describe_approach(explainer)})
            warnings.warn(failure(explainer, one), CondShapWarning, stacklevel=2)
    return pd.DataFrame(table, columns=COLUMNS)


def _listed(approaches: Any) -> list[Any]:
    """Approaches to compare; a single one is none to compare with."""
    if not isinstance(approaches, str):
        try:
            return list(approaches)
        except TypeError:
            pass
    raise ApproachError(
        f"approaches must be a list of names or objects, got {approaches!r}. Write e.g. ['ctree', 'vaeac']."
    )


def get_all_ready(
    explainers: Sequence[Explainer], X_train: Table, X: Table, *, categorical: Iterable[str | int] = ()
) -> list[Ready]:
    """Get explainers of the same rows ready, so that none is trained before the last one has been checked."""
    chosen = listed_columns(categorical)
    ready: list[Ready] = []
    for explainer in explainers:
        encoded = ready[0].explainer._rows if ready else None
        ready.append(get_ready(explainer, X_train, X, categorical=chosen, encoded=encoded))
    return ready


def describe_approach(explainer: Explainer) -> str:
    """Names of an explainer's approaches, as its explanations have them."""
    return " + ".join(part.approach.name for part in explainer.parts_)


def failure(explainer: Explainer, error: Exception) -> str:
    """What went wrong with an approach among others."""
    what = str(error) if isinstance(error, CondShapError) else f"{type(error).__name__}: {error}"
    return f"approach '{describe_approach(explainer)}' has no result, the others are kept: {what}"


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
    return pd.DataFrame(lines, columns=COLUMNS)
