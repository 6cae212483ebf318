"""The league's real tables: which there are, their split, and files of them for machines without the data packages.

The halves were fixed by name before any result was seen: as many tables of each kind in both, small and large ones, and
near-duplicate columns in both (diamonds, breast_cancer; macrodata, midwest_counts). Tables of the same rows are in the
same half. Nothing may be tuned on ``unseen``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.league.sources import SOURCES
from benchmarks.lib.sections import write_text
from condshap import datasets

SPLIT_SEED = 20_250_801


@dataclass(frozen=True)
class Entry:
    """A table of the league.

    Attributes
    ----------
    kind : "continuous", "mixed" or "categorical"
    task : "regression" or "classification"
    half : "tuning" or "unseen"
    n_train, n_test : rows; n_train None for all that are not held out
    """

    name: str
    kind: str
    task: str
    half: str
    n_train: int | None = None
    n_test: int = 80


REGRESSION, CLASSIFICATION = "regression", "classification"
ENTRIES = (
    Entry("wine", "continuous", CLASSIFICATION, "tuning"),
    Entry("economics", "continuous", REGRESSION, "tuning"),
    Entry("breast_cancer", "continuous", CLASSIFICATION, "tuning", n_test=100),
    Entry("anes96", "continuous", CLASSIFICATION, "tuning", n_test=100),
    Entry("mpg", "mixed", REGRESSION, "tuning"),
    Entry("penguins", "mixed", CLASSIFICATION, "tuning"),
    Entry("diabetes", "mixed", REGRESSION, "tuning", n_test=100),
    Entry("diamonds", "mixed", REGRESSION, "tuning", n_train=1500, n_test=100),
    Entry("abalone", "mixed", REGRESSION, "tuning", n_test=100),
    Entry("anes96_levels", "categorical", CLASSIFICATION, "tuning", n_test=100),
    Entry("arrests", "categorical", CLASSIFICATION, "tuning", n_train=2000, n_test=100),
    Entry("penguins_gaps", "mixed", CLASSIFICATION, "tuning"),
    Entry("macrodata", "continuous", REGRESSION, "unseen"),
    Entry("star98", "continuous", REGRESSION, "unseen"),
    Entry("midwest_counts", "continuous", REGRESSION, "unseen", n_test=100),
    Entry("txhousing", "continuous", REGRESSION, "unseen", n_train=1500, n_test=100),
    Entry("grunfeld", "mixed", REGRESSION, "unseen"),
    Entry("hearts", "mixed", CLASSIFICATION, "unseen"),
    Entry("midwest", "mixed", REGRESSION, "unseen", n_test=100),
    Entry("modechoice", "mixed", CLASSIFICATION, "unseen", n_test=100),
    Entry("randhie", "mixed", REGRESSION, "unseen", n_train=3000, n_test=100),
    Entry("hearts_levels", "categorical", CLASSIFICATION, "unseen"),
    Entry("fair", "categorical", CLASSIFICATION, "unseen", n_train=2000, n_test=100),
)
BY_NAME = {entry.name: entry for entry in ENTRIES}


@dataclass(frozen=True)
class LeagueTable:
    """Rows of a table: features X_train (N, M) and X_test (R, M) with proper dtypes, and the response of the former."""

    entry: Entry
    X_train: pd.DataFrame
    y_train: Any
    X_test: pd.DataFrame


def names_of(half: str) -> list[str]:
    """Names of the tables in a half, or in both with "all"."""
    return [entry.name for entry in ENTRIES if half in ("all", entry.half)]


def load(name: str, folder: Path | None = None) -> LeagueTable:
    """Table by its name, from its package or from a folder of files that `export` has written."""
    return split_rows(name) if folder is None else read_table(folder / f"{name}.json")


def split_rows(name: str) -> LeagueTable:
    """Draw the rows once and for all; of Abalone the test rows are those of the paper's authors."""
    entry, (X, y) = BY_NAME[name], SOURCES[name]()
    order = np.random.default_rng([SPLIT_SEED, len(X)]).permutation(len(X))
    test, train = order[: entry.n_test], order[entry.n_test :][: entry.n_train]
    if name == "abalone":
        data = datasets.load_abalone()
        test, train = data.test, data.train
    X_train, X_test = (X.iloc[np.sort(rows)].reset_index(drop=True) for rows in (train, test))
    return LeagueTable(entry, X_train, codes_of(y, entry.task)[np.sort(train)], X_test)


def codes_of(y: pd.Series[Any], task: str) -> Any:
    """Response as numbers (n,): classes become 0, 1, ... in their order."""
    return pd.factorize(y, sort=True)[0] if task == CLASSIFICATION else y.to_numpy(dtype=np.float64)


def export(names: Iterable[str], folder: Path) -> None:
    """Write tables to files of JSON, one each, which keep every number to the last bit."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        table = load(name)
        parts = {"X_train": stored_frame(table.X_train), "X_test": stored_frame(table.X_test)}
        text = json.dumps({"name": name, **parts, "y_train": table.y_train.tolist()})
        write_text(folder / f"{name}.json", text + "\n")


def read_table(path: Path) -> LeagueTable:
    """Inverse of `export` for one table."""
    found = json.loads(path.read_text())
    X_train, X_test = (restored_frame(found[part]) for part in ("X_train", "X_test"))
    return LeagueTable(BY_NAME[found["name"]], X_train, np.array(found["y_train"]), X_test)


def stored_frame(X: pd.DataFrame) -> list[dict[str, Any]]:
    """Columns fit for JSON: numbers with their dtype and None for gaps, codes with their levels."""
    return [stored_column(str(name), X[name]) for name in X.columns]


def stored_column(name: str, column: pd.Series[Any]) -> dict[str, Any]:
    if isinstance(column.dtype, pd.CategoricalDtype):
        levels = {"levels": column.cat.categories.tolist(), "ordered": bool(column.cat.ordered)}
        return {"name": name, **levels, "codes": column.cat.codes.tolist()}
    numbers = [None if gap else value for value, gap in zip(column.tolist(), column.isna(), strict=True)]
    return {"name": name, "dtype": str(column.dtype), "numbers": numbers}


def restored_frame(columns: Iterable[dict[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame({column["name"]: restored_column(column) for column in columns})


def restored_column(column: dict[str, Any]) -> Any:
    if "codes" in column:
        return pd.Categorical.from_codes(column["codes"], categories=column["levels"], ordered=column["ordered"])
    numbers = [np.nan if value is None else value for value in column["numbers"]]
    return np.array(numbers, dtype=column["dtype"])
