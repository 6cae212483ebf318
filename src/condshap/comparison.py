"""Approaches, training rows, rows -> a table of their MSEv: all are checked first, then trained and explained in turn."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from condshap.approaches import find_approach
from condshap.approaches.base import Approach, check_missing, check_supported
from condshap.exceptions import ApproachError, CondShapError, CondShapWarning, OptionError
from condshap.explainer import Explainer
from condshap.explaining import Ready, finish, get_ready
from condshap.explanation import Explanation
from condshap.learning import settings_of
from condshap.options import check_level
from condshap.ranking import COLUMNS, by_name, compare_explanations
from condshap.runtime.announcing import level_of_user
from condshap.runtime.progress import progress_line
from condshap.schema import FeatureSchema, listed_columns
from condshap.types import Model, Table


def compare(
    model: Model,
    X_train: Table,
    X: Table,
    *,
    approaches: Sequence[str | Approach | Sequence[str | Approach]],
    level: float = 0.95,
    **options: Any,
) -> Comparison:
    """Compare approaches by MSEv (EC3 of the paper, Section 4.1) on the same rows; smaller is better.

    Parameters
    ----------
    approaches : names or objects
    level : level of the confidence interval over rows
    options : any option of `explain` except ``approach``

    Returns
    -------
    One line per approach: approach, msev, msev_se, low, high, seconds, model_rows. The explanations behind it are kept:
    ``compare(...).explanations["ctree"]``.

    Notes
    -----
    All inputs are checked before the first approach is trained. An approach that fails later gets a line of NaN and a
    warning that says why; the others are kept.
    """
    level = check_level(level)
    chosen = _listed(approaches)
    categorical = options.pop("categorical", None)
    explainers = [Explainer(model, approach=approach, **options) for approach in chosen]
    found: list[Explanation | Exception] = []
    all_ready = get_all_ready(explainers, X_train, X, categorical=categorical)
    for i, ready in enumerate(all_ready, start=1):
        where = f"{describe_approach(ready)} ({i} of {len(all_ready)})"
        try:
            with progress_line(where, show=settings_of(ready.explainer).progress, leads=True):
                found.append(finish(ready))
        except Exception as error:  # of whatever kind: what other approaches have cost must not be lost
            found.append(error)
    finished = [one for one in found if isinstance(one, Explanation)]
    lines = iter(compare_explanations(finished, level=level).to_dict("records"))
    table: list[dict[Any, Any]] = []
    for ready, one in zip(all_ready, found, strict=True):
        if isinstance(one, Explanation):
            table.append(next(lines))
        elif not finished:
            raise one
        else:
            table.append({"approach": describe_approach(ready)})
            warnings.warn(failure(ready, one), CondShapWarning, stacklevel=level_of_user())
    return Comparison.of(table, finished)


class Comparison(pd.DataFrame):
    """Table of approaches that keeps their explanations; parts and copies of it are plain tables.

    Attributes
    ----------
    explanations : explanations by approach, in the order of the lines; a name that occurs again gets a number
    """

    _metadata = ["_explanations"]  # noqa: RUF012 - pandas asks for a list
    _explanations: dict[str, Explanation]

    @classmethod
    def of(cls, lines: list[dict[Any, Any]], explanations: Sequence[Explanation]) -> Comparison:
        """Put together the lines and what they are of; approaches that failed have no explanation."""
        table = cls(lines, columns=COLUMNS)
        table._explanations = by_name([one.provenance.approach for one in explanations], explanations)
        return table

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return pd.DataFrame

    @property
    def explanations(self) -> dict[str, Explanation]:
        """Explanations by approach."""
        return dict(self._explanations)


def _listed(approaches: Any) -> list[Any]:
    """Approaches to compare, as a list; a single name is not one."""
    if not isinstance(approaches, str):
        try:
            return list(approaches)
        except TypeError:
            pass
    raise ApproachError(
        f"approaches must be a list of names or objects, got {approaches!r}. Write e.g. ['ctree', 'vaeac']."
    )


def get_all_ready(
    explainers: Sequence[Explainer], X_train: Table, X: Table, *, categorical: Iterable[str | int] | None = None
) -> list[Ready]:
    """Get explainers of the same rows ready, so that none is trained before the last one has been checked."""
    chosen = None if categorical is None else listed_columns(categorical)
    for explainer in explainers:
        _check_comparable(explainer)
    ready: list[Ready] = []
    for explainer in explainers:
        encoded = ready[0].prepared.rows if ready else None
        ready.append(get_ready(explainer, X_train, X, categorical=chosen, encoded=encoded))
    return ready


def _check_comparable(explainer: Explainer) -> None:
    """Refuse options with which there is no MSEv."""
    if explainer.link is not None:
        raise OptionError(
            "approaches must be compared without link, because MSEv judges probabilities, got link='logit'. Leave it out."
        )
    if explainer.confounding is not None:
        raise OptionError(
            "approaches must be compared without confounding, because MSEv judges conditional v(S), got "
            f"confounding={explainer.confounding!r}. Leave it out."
        )


def describe_approach(ready: Ready) -> str:
    """Names of an explainer's approaches, as its explanations have them."""
    return " + ".join(part.approach.name for part in ready.prepared.setup.parts)


def failure(ready: Ready, error: Exception) -> str:
    """What went wrong with an approach among others."""
    what = str(error) if isinstance(error, CondShapError) else f"{type(error).__name__}: {error}"
    return f"approach '{describe_approach(ready)}' failed, the others are kept: {what}"


def check_approaches(names: Iterable[str], X_train: Table, *, categorical: Iterable[str | int] = ()) -> None:
    """Refuse approaches that do not suit training rows, before any of them is fitted."""
    schema = FeatureSchema.learn(X_train, categorical)
    rows = schema.encode(X_train)
    for name in names:
        approach = find_approach(name)()
        check_supported(approach, schema)
        check_missing(approach, rows, schema, what="training rows")
