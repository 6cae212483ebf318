"""Cell of the league: a table, a model and an approach -> MSEv on held-out rows, seconds, and sanity of the draws."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.league.sanity import check_sanity
from benchmarks.league.store import rounded
from benchmarks.league.tables import BY_NAME, CLASSIFICATION, LeagueTable, load
from condshap.approaches import available_approaches
from condshap.coalitions import make_plan
from condshap.explainer import Explainer
from condshap.studies.running.methods import find_method

MODELS = ("forest", "boosted")
WITH_GAPS = ("penguins_gaps",)
N_TREES = 500
KINDS = {"continuous": {"continuous"}, "categorical": {"categorical"}, "mixed": {"continuous", "categorical"}}


@dataclass(frozen=True)
class Cell:
    """What is run at a time.

    Attributes
    ----------
    approach : name of a method of the studies, such as ``vaeac`` or ``vaeac:width=64``
    tag : of the code that is tried, so that its results stand beside those of other code
    """

    table: str
    model: str
    approach: str
    seed: int = 0
    tag: str = ""

    @property
    def key(self) -> tuple[Any, ...]:
        """Where its result lies in a store."""
        return (self.table, self.model, self.label, self.seed)

    @property
    def label(self) -> str:
        """Name of the approach in results."""
        return f"{self.approach}@{self.tag}" if self.tag else self.approach


def suits(approach: str, table: str) -> bool:
    """Whether an approach supports the kinds of a table's features, and its gaps."""
    made_by = find_method(approach).approach_class
    kinds = {kind.value for kind in made_by.supports}
    return KINDS[BY_NAME[table].kind] <= kinds and (made_by.handles_missing or table not in WITH_GAPS)


def all_cells(
    tables: Iterable[str], models: Sequence[str], approaches: Sequence[str] = (), *, seed: int = 0, tag: str = ""
) -> list[Cell]:
    """Cells of these tables, by all approaches if none are named; those that take longest first."""
    wanted = approaches or available_approaches()
    found = [
        Cell(table, model, approach, seed, tag)
        for table in tables
        for model in models
        for approach in wanted
        if suits(approach, table)
    ]
    return sorted(found, key=lambda cell: not cell.approach.startswith(("vaeac", "regression_separate")))


def make_model(name: str, table: LeagueTable) -> Any:
    """Fit a model; levels go in as codes. Both are of scikit-learn, so that they are the same on every machine."""
    from sklearn.pipeline import make_pipeline

    estimator = forest(table) if name == "forest" else boosted(table)
    factors = [column for column in table.X_train if isinstance(table.X_train[column].dtype, pd.CategoricalDtype)]
    model = make_pipeline(encoder(table.X_train, factors), estimator) if factors else estimator
    return model.fit(table.X_train, table.y_train)


def forest(table: LeagueTable) -> Any:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    kind = RandomForestClassifier if table.entry.task == CLASSIFICATION else RandomForestRegressor
    return kind(N_TREES, min_samples_leaf=3 if len(table.X_train) < 500 else 5, random_state=0)


def boosted(table: LeagueTable) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingClassifier if table.entry.task == CLASSIFICATION else HistGradientBoostingRegressor
    options = {"max_iter": 150, "learning_rate": 0.05, "max_leaf_nodes": 15, "min_samples_leaf": 10}
    return kind(**options, early_stopping=False, categorical_features=None, random_state=0)


def encoder(X: pd.DataFrame, factors: Sequence[str]) -> Any:
    """Codes of the levels in the order of their dtype; gaps stay gaps."""
    from sklearn.compose import make_column_transformer
    from sklearn.preprocessing import OrdinalEncoder

    levels = [[*X[name].cat.categories, *([np.nan] if X[name].isna().any() else [])] for name in factors]
    return make_column_transformer((OrdinalEncoder(categories=levels), list(factors)), remainder="passthrough")


def run_cell(cell: Cell, folder: Path | None = None, device: str = "cpu") -> dict[str, Any]:
    """Fit and explain; the line to store."""
    table = load(cell.table, folder)
    explainer = make_explainer(cell, table, make_model(cell.model, table), device)
    wall, cpu = time.perf_counter(), time.process_time()
    explainer.fit(table.X_train)
    fitted = time.perf_counter() - wall
    found = explainer.explain(table.X_test)
    seconds = {"fit": fitted, "all": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    per_row = found.msev.per_row.reshape(len(table.X_test), -1).sum(axis=1)
    sanity = check_sanity(explainer, table.X_train, seed=cell.seed) if cell.model == "forest" else None
    line = {
        **dict(zip(("table", "model", "approach", "seed"), cell.key, strict=True)),
        "msev": float(per_row.mean()),
        "seconds": rounded(seconds, 4),
        "coalitions": len(explainer.plan_.masks),
        "model_mark": model_mark(found.predictions),
        "warnings": list(explainer.warnings_),
        "device": device,
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "sanity": rounded(sanity),
        "per_row": rounded(per_row.tolist()),
    }
    return line


def make_explainer(cell: Cell, table: LeagueTable, model: Any, device: str) -> Explainer:
    """Unfitted explainer; all approaches and seeds have the same coalitions, and of two classes one is explained."""
    method = find_method(cell.approach)
    has_two_classes = table.entry.task == CLASSIFICATION and len(np.unique(table.y_train)) == 2
    return Explainer(
        model,
        approach=method.make_approach(device),
        n_samples=method.n_samples,
        coalitions=make_plan(table.X_train.shape[1], None, seed=0),
        output=1 if has_two_classes else None,
        seed=cell.seed,
        device=device,
        progress=False,
    )


def model_mark(predictions: Any) -> float:
    """Number by which two runs know that they had the same model: other versions of scikit-learn may fit another one."""
    values = np.asarray(predictions, dtype=np.float64).reshape(-1)
    return round(float(values @ np.sin(np.arange(len(values))) / np.abs(values).sum()), 6)
