"""Names -> ready-made tables with a fixed split, for demos, docs and tests; nothing is downloaded.

The rows ship with other packages: Abalone with scikit-lego and the penguins with palmerpenguins (both in the extra
``demo``), diabetes with scikit-learn. Each loader returns features with proper dtypes, so you need not declare kinds or
levels.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from condshap.exceptions import CondShapError, MissingPackageError, listing
from condshap.types import Indices

_ABALONE_COLUMNS = {
    "length": "Length",
    "diameter": "Diameter",
    "height": "Height",
    "whole_weight": "WholeWeight",
    "shucked_weight": "ShuckedWeight",
    "viscera_weight": "VisceraWeight",
    "shell_weight": "ShellWeight",
    "sex": "Sex",
}
_ABALONE_ROWS = 4177
_SPLIT_SEED = 0


@dataclass(frozen=True, slots=True)
class Dataset:
    """Features, response and a split of n rows with M features.

    Attributes
    ----------
    X : (n, M) frame, categorical columns as ``category``
    y : (n,) response
    train : (n_train,) positions of the training rows
    test : (n_test,) positions of the test rows; every row is in either `train` or `test`
    """

    X: pd.DataFrame
    y: pd.Series[Any]
    train: Indices
    test: Indices

    @property
    def X_train(self) -> pd.DataFrame:  # noqa: N802 - named as everywhere in the field
        """Features of the training rows, (n_train, M)."""
        return self.X.iloc[self.train]

    @property
    def X_test(self) -> pd.DataFrame:  # noqa: N802
        """Features of the test rows, (n_test, M)."""
        return self.X.iloc[self.test]

    @property
    def y_train(self) -> pd.Series[Any]:
        """Response of the training rows, (n_train,)."""
        return self.y.iloc[self.train]

    @property
    def y_test(self) -> pd.Series[Any]:
        """Response of the test rows, (n_test,)."""
        return self.y.iloc[self.test]


def load_abalone(path: str | Path | None = None) -> Dataset:
    """Abalone: predict the rings of 4177 sea snails from seven measurements and their sex (F, M, or I for infant).

    The split is that of the paper's authors: 100 test rows, in their order, and 4077 training rows.

    Parameters
    ----------
    path : CSV file with scikit-lego's rows and column names, if that package is not installed

    Notes
    -----
    Section 5 of the paper; Nash et al. (1994), UCI Machine Learning Repository. Needs the extra ``demo``.

    Examples
    --------
    >>> abalone = load_abalone()
    >>> abalone.X_train.shape, abalone.X_test.shape
    ((4077, 8), (100, 8))
    >>> abalone.X["Sex"].cat.categories.tolist()
    ['F', 'I', 'M']
    """
    frame = _abalone_rows(path)
    absent = sorted({*_ABALONE_COLUMNS, "rings"} - set(frame.columns))
    if len(frame) != _ABALONE_ROWS or absent:
        # the test rows are positions: in another table they would be other snails
        raise CondShapError(
            f"Abalone must have {_ABALONE_ROWS} rows in the order of the UCI repository and the columns of scikit-lego, "
            f"got {len(frame)} rows from {path or 'scikit-lego'}, without columns {listing(absent)}. Install the version "
            "in constraints.txt."
        )
    X = frame[list(_ABALONE_COLUMNS)].rename(columns=_ABALONE_COLUMNS)
    X["Sex"] = pd.Categorical(X["Sex"], categories=["F", "I", "M"])
    test = _abalone_test_rows()
    return Dataset(X, frame["rings"].rename("Rings"), _others(test, len(X)), test)


def _abalone_rows(path: str | Path | None) -> pd.DataFrame:
    if path is None:
        frame: pd.DataFrame = _import_extra("sklego.datasets", "scikit-lego").load_abalone(as_frame=True)
        return frame
    try:
        return pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise CondShapError(f"Abalone's rows must be in a readable CSV file, got '{path}': {error}.") from None


def load_penguins() -> Dataset:
    """Palmer penguins: predict the species of 344 birds from island, sex, year and four measurements, some missing.

    Missing values stay missing. A fixed random fifth of the rows are test rows.

    Notes
    -----
    Horst, Hill and Gorman (2020). Needs the extra ``demo``.

    Examples
    --------
    >>> penguins = load_penguins()
    >>> penguins.y.cat.categories.tolist()
    ['Adelie', 'Chinstrap', 'Gentoo']
    >>> int(penguins.X.isna().sum().sum())
    19
    """
    frame: pd.DataFrame = _import_extra("palmerpenguins", "palmerpenguins").load_penguins()
    labels = {name: frame[name].astype("category") for name in ("species", "island", "sex")}
    frame = frame.assign(**labels)
    return _split_at_random(frame.drop(columns="species"), frame["species"])


def load_diabetes() -> Dataset:
    """Diabetes: predict its progression in 442 patients from age, sex, body mass, blood pressure and six serum values.

    Features are in their own units. ``sex`` is categorical with the source's codes 1 and 2. A fixed random fifth of the
    rows are test rows.

    Notes
    -----
    Efron, Hastie, Johnstone and Tibshirani (2004), as shipped with scikit-learn.

    Examples
    --------
    >>> diabetes = load_diabetes()
    >>> diabetes.X.shape, len(diabetes.test)
    ((442, 10), 88)
    """
    from sklearn.datasets import load_diabetes as load

    source = load(as_frame=True, scaled=False)
    X: pd.DataFrame = source.data.assign(sex=pd.Categorical(source.data["sex"].astype(int), categories=[1, 2]))
    return _split_at_random(X, source.target.rename("progression"))


def _import_extra(module: str, package: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingPackageError(
            f"this dataset needs the package '{package}', which cannot be imported ({error}). "
            "Install it with: pip install 'condshap[demo]'"
        ) from error


def _abalone_test_rows() -> Indices:
    """Positions (100,) of the authors' test rows, in their order."""
    text = files("condshap").joinpath("data", "abalone_test_rows.txt").read_text(encoding="ascii")
    return np.array(text.split(), dtype=np.intp)


def _split_at_random(X: pd.DataFrame, y: pd.Series[Any]) -> Dataset:
    chosen = np.random.default_rng(_SPLIT_SEED).choice(len(X), size=len(X) // 5, replace=False)
    test = np.sort(chosen).astype(np.intp)
    return Dataset(X, y, _others(test, len(X)), test)


def _others(test: Indices, n_rows: int) -> Indices:
    """Positions below `n_rows` that are not in `test`, in order."""
    return np.setdiff1d(np.arange(n_rows, dtype=np.intp), test)
