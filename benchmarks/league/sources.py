"""Names of the league's tables -> features and response as their packages ship them; nothing is downloaded.

The packages are those of the extra ``league`` (plotnine, statsmodels, scikit-lego, palmerpenguins) and scikit-learn. Numbers
that are codes become categories. Rows with gaps are dropped, but for ``penguins_gaps``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import pandas as pd

from condshap import datasets

Source = tuple[pd.DataFrame, "pd.Series[Any]"]


def pick(frame: pd.DataFrame, features: str, response: str, levels: str = "") -> Source:
    """Take columns, named in a text, of the complete rows; those in `levels` become categories."""
    names = features.split()
    whole = frame[[*names, response]].dropna().reset_index(drop=True)
    return with_levels(whole[names], levels.split()), whole[response]


def with_levels(X: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Make categories of columns: whole numbers are written as such, an order of the dtype is kept."""
    made = {}
    for name in names:
        column = X[name]
        if pd.api.types.is_float_dtype(column) and (column == column.round()).all():
            column = column.astype(int)
        made[name] = column if isinstance(column.dtype, pd.CategoricalDtype) else column.astype("category")
    return X.assign(**made)


def of_dataset(data: datasets.Dataset) -> Source:
    """Features and response of a dataset of condshap's own."""
    return data.X, data.y


def plotnine(name: str) -> pd.DataFrame:
    frame: pd.DataFrame = getattr(import_module("plotnine.data"), name)
    return frame


def statsmodels(name: str) -> pd.DataFrame:
    frame: pd.DataFrame = import_module(f"statsmodels.datasets.{name}").load_pandas().data
    return frame


def sklego(name: str) -> pd.DataFrame:
    frame: pd.DataFrame = getattr(import_module("sklego.datasets"), f"load_{name}")(as_frame=True)
    return frame


def sklearn(name: str) -> pd.DataFrame:
    frame: pd.DataFrame = getattr(import_module("sklearn.datasets"), f"load_{name}")(as_frame=True).frame
    return frame.rename(columns=lambda column: str(column).replace(" ", "_").replace("/", "_"))


def wine() -> Source:
    frame = sklearn("wine")
    return pick(frame, " ".join(frame.columns.drop("target")), "target")


def economics() -> Source:
    return pick(plotnine("economics"), "pce pop psavert uempmed", "unemploy")


def breast_cancer() -> Source:
    """Ten means of each tumour; radius, perimeter and area say the same."""
    frame = sklearn("breast_cancer")
    return pick(frame, " ".join(name for name in frame if name.startswith("mean_")), "target")


def anes96() -> Source:
    return pick(statsmodels("anes96"), "logpopul TVnews selfLR ClinLR DoleLR PID age educ income", "vote")


def anes96_levels() -> Source:
    names = "TVnews selfLR ClinLR DoleLR PID educ"
    return pick(statsmodels("anes96"), names, "vote", levels=names)


def mpg() -> Source:
    names = "displ year cyl trans drv fl class"
    frame = plotnine("mpg")
    frame = frame.assign(trans=frame["trans"].str.partition("(")[0])
    return pick(frame, names, "hwy", levels="trans drv fl class")


def penguins() -> Source:
    X, y = penguins_gaps()
    whole = X.notna().all(axis=1)
    return X[whole].reset_index(drop=True), y[whole].reset_index(drop=True)


def penguins_gaps() -> Source:
    return of_dataset(datasets.load_penguins())


def diamonds() -> Source:
    return pick(plotnine("diamonds"), "carat cut color clarity depth table x y z", "price", levels="cut color clarity")


def arrests() -> Source:
    names = "colour year sex employed citizen checks"
    return pick(sklego("arrests"), names, "released", levels=names)


def macrodata() -> Source:
    return pick(statsmodels("macrodata"), "realgdp realcons realinv realgovt realdpi cpi m1 tbilrate pop", "unemp")


def star98() -> Source:
    frame = statsmodels("star98")
    share = frame["NABOVE"] / (frame["NABOVE"] + frame["NBELOW"])
    names = "LOWINC PERASIAN PERBLACK PERHISP PERMINTE AVYRSEXP AVSALK PERSPENK PTRATIO PCTAF"
    return pick(frame.assign(share=share), names, "share")


def txhousing() -> Source:
    return pick(plotnine("txhousing"), "year month sales volume listings inventory", "median")


def midwest_counts() -> Source:
    """Counts of people, which all grow with the county, with long tails."""
    names = "area poptotal popwhite popblack popamerindian popasian popother popadults poppovertyknown"
    return pick(plotnine("midwest"), names, "percollege")


def midwest() -> Source:
    names = "state area popdensity percwhite percblack percasian perchsd percollege percprof inmetro"
    return pick(plotnine("midwest"), names, "percbelowpoverty", levels="state inmetro")


def grunfeld() -> Source:
    return pick(statsmodels("grunfeld"), "value capital firm year", "invest", levels="firm")


HEARTS = "sex cp fbs restecg exang slope ca thal"


def hearts() -> Source:
    return pick(sklego("hearts"), f"age trestbps chol thalach oldpeak {HEARTS}", "target", levels=HEARTS)


def hearts_levels() -> Source:
    return pick(sklego("hearts"), HEARTS, "target", levels=HEARTS)


def modechoice() -> Source:
    return pick(statsmodels("modechoice"), "mode ttme invc invt gc hinc psize", "choice", levels="mode")


def randhie() -> Source:
    names = "lncoins idp lpi fmde physlm disea hlthg hlthf hlthp"
    return pick(statsmodels("randhie"), names, "mdvis", levels="idp hlthg hlthf hlthp")


def fair() -> Source:
    names = "rate_marriage age yrs_married children religious educ occupation occupation_husb"
    frame = statsmodels("fair")
    return pick(frame.assign(any_affair=(frame["affairs"] > 0).astype(int)), names, "any_affair", levels=names)


def diabetes() -> Source:
    return of_dataset(datasets.load_diabetes())


def abalone() -> Source:
    return of_dataset(datasets.load_abalone())


SOURCES: dict[str, Callable[[], Source]] = {
    source.__name__: source
    for source in (
        wine, economics, breast_cancer, anes96, anes96_levels, mpg, penguins, penguins_gaps, diamonds, diabetes, abalone,
        arrests, macrodata, star98, txhousing, midwest_counts, midwest, grunfeld, hearts, hearts_levels, modechoice,
        randhie, fair,
    )
}  # fmt: skip
