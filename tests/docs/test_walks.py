"""The walks of dataflow.md are ways that calls really take: every function of a walk runs, and in the order of the page."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer

import condshap as cs
from condshap.bulk.manifest import NAME
from condshap.runtime import devices

PAGE = (Path(__file__).parents[2] / "docs" / "dataflow.md").read_text()
SOURCE = Path(cs.__file__).parent
ENGINE = "values/engine.py:ValueEngine"
LAZY = dict.fromkeys((f"{ENGINE}.run", f"{ENGINE}._run_alike"), f"{ENGINE}.estimate")  # who asks for what they promise
STEP = re.compile(r"^[ *]*([\w/]+\.py:[\w.]+)")
X = np.random.default_rng(0).normal(size=(80, 3)) @ np.tri(3)
Y = X[:, 0] * X[:, 1]
MANY = np.random.default_rng(1).normal(size=(200, 3))


def product(rows):
    return rows[:, 0] * rows[:, 1]


@dataclass
class Step:
    """A line of a walk: a function, and the lines of the functions that call it, the outermost first."""

    name: str
    above: tuple[str, ...]


def steps_of(piece: str) -> list[Step]:
    """Lines of a piece of a walk; stars in front of some of them count as space."""
    steps, open_lines = [], [(-1, "")]
    for line in piece.splitlines():
        match = STEP.match(line)
        if match is None:
            continue
        while open_lines[-1][0] >= match.start(1):
            open_lines.pop()
        steps.append(Step(match[1], tuple(name for _, name in open_lines[1:])))
        open_lines.append((match.start(1), match[1]))
    return steps


def walks() -> dict[str, list[list[Step]]]:
    """Walks by their headings, in pieces: a line of dots stands for what comes between two of them."""
    text = PAGE.partition("## Walks\n")[2].partition("\n## ")[0]
    found = {}
    for heading, section in re.findall(r"^### (.*?)\n(.*?)(?=^### |\Z)", text, flags=re.DOTALL | re.MULTILINE):
        blocks = re.findall(r"```text\n(.*?)```", section, flags=re.DOTALL)
        pieces = [steps_of(piece) for block in blocks for piece in block.split("\n...\n")]
        if any(pieces):
            found[heading] = pieces
    return found


WALKS = walks()


@dataclass
class Call:
    """A call of a function, and the functions of condshap inside of which it was made; a generator is called lazily."""

    name: str
    around: set[str | None]
    is_lazy: bool


def name_of(code: CodeType) -> str | None:
    """A function of condshap as the page writes it, None for others."""
    path = Path(code.co_filename)
    if not path.is_relative_to(SOURCE):
        return None
    return (
        f"{path.relative_to(SOURCE).as_posix()}:{code.co_qualname.replace('.<locals>', '').removesuffix('.<genexpr>')}"
    )


@contextmanager
def recording(wanted: set[str]) -> Iterator[list[Call]]:
    """Calls of the wanted functions in order, each with the functions of condshap inside of which it was made."""
    called: list[Call] = []
    names: dict[CodeType, str | None] = {}

    def known(code: CodeType) -> str | None:
        if code not in names:
            names[code] = name_of(code)
        return names[code]

    def note(frame: Any, event: str, _: Any) -> None:
        name = known(frame.f_code) if event == "call" else None
        if name in wanted:
            around, outer = set(), frame.f_back
            while outer is not None:
                around.add(known(outer.f_code))
                outer = outer.f_back
            called.append(Call(name, around, is_lazy=bool(frame.f_code.co_flags & inspect.CO_GENERATOR)))

    sys.setprofile(note)
    try:
        yield called
    finally:
        sys.setprofile(None)


@contextmanager
def pausing() -> Iterator[None]:
    """Record nothing of what is done inside."""
    profile = sys.getprofile()
    sys.setprofile(None)
    yield
    sys.setprofile(profile)


def explained(model: Any = product, approach: Any = "gaussian", **options: Any) -> cs.Explanation:
    return cs.explain(model, X, X[:3], approach=approach, progress=False, **options)


def by_networks() -> None:
    """Columns do not depend on each other, so even networks that have learned little have votes."""
    small = cs.approaches.VAEAC(epochs=2, depth=1, width=4, latent=2, device="cpu")
    cs.explain(product, MANY, MANY[:3], approach=small, progress=False)


def fitted(**options: Any) -> cs.Explainer:
    return cs.Explainer(product, approach="gaussian", progress=False, **options).fit(X)


def on_a_device() -> None:
    explained(RandomForestRegressor(3, random_state=0).fit(X, Y))


def causally() -> None:
    classifier = LogisticRegression().fit(X, product(X) > 0)
    order = {"causal_ordering": [["x0"], ["x1", "x2"]], "confounding": False}
    explained(classifier, output=1, link="logit", asymmetric=True, **order)
    explained(approach="ctree", **order)


def forecast() -> None:
    series = pd.Series(np.sin(np.arange(60.0)))
    model = LinearRegression().fit(*cs.lagged_table(series[:40], lags=3, horizon=2))
    cs.explain_forecast(model, series, lags=3, horizon=2, at=[50], approach="gaussian", progress=False)


def dataset() -> None:
    """Go on with a run whose last part is not finished."""
    table = pd.DataFrame(X, columns=["x0", "x1", "x2"])
    explainer = cs.Explainer(lambda rows: rows["x0"] * rows["x1"], approach="gaussian", progress=False).fit(table)
    with TemporaryDirectory() as name:
        rows, out = Path(name, "rows.parquet"), Path(name, "out")
        table[:6].to_parquet(rows)
        with pausing():
            explainer.explain_dataset(rows, out, rows_per_part=4)
            manifest = out / NAME
            manifest.write_bytes(b"\n".join(manifest.read_bytes().splitlines()[:-1]) + b"\n")
        explainer.explain_dataset(rows, out, rows_per_part=4)
        cs.open_explanations(out)


def interactions() -> None:
    wide = np.random.default_rng(1).normal(size=(60, 6))
    explained().interactions()
    cs.explain(product, wide, wide[:2], approach="gaussian", n_coalitions=60, progress=False).interactions("FSII")
    explained().owen({"a": ["x0"], "b": ["x1", "x2"]})


RUNS: dict[str, Callable[[], object]] = {
    "Every explanation": explained,
    "gaussian": explained,
    "vaeac": by_networks,
    'n_coalitions="auto"': lambda: explained(n_coalitions="auto"),
    "A device": on_a_device,
    "An additive model": lambda: explained(make_pipeline(SplineTransformer(), LinearRegression()).fit(X, Y)),
    "A regression approach": lambda: explained(approach=cs.approaches.RegressionSurrogate(LinearRegression())),
    "Forecasts": forecast,
    "Causal and asymmetric values, log-odds": causally,
    "A loss": lambda: fitted().explain_loss(X[:3], Y[:3]),
    "An amortised explanation": lambda: fitted().amortise(MANY, budget="100 rows", calibration_rows=30).explain(X[:3]),
    "A dataset": dataset,
    "Interactions and Owen values": interactions,
}


def test_every_walk_is_taken_here():
    assert set(WALKS) == set(RUNS)


def missed(piece: list[Step], called: list[Call]) -> list[str]:
    """Lines of a piece that are not gone through inside of the line that they hang on, after the line before them.

    Outermost lines may have begun earlier, and generators begin when somebody wants their first result.
    """
    found, start = [], 0
    for step in piece:
        above = {name for line in step.above[-1:] for name in (line, LAZY.get(line)) if name}
        places = [i for i, one in enumerate(called) if one.name == step.name and (not above or one.around & above)]
        is_free = not above or any(called[i].is_lazy for i in places)
        places = [i for i in places if is_free or i >= start]
        if not places:
            found.append(step.name)
        elif not is_free:
            start = places[0]
    return found


@pytest.fixture
def accelerator(monkeypatch, request):
    """torch's CPU in place of an accelerator, for the walk of devices alone."""
    if request.node.callspec.params["heading"] == "A device":
        real = devices.find_accelerator
        monkeypatch.setattr("condshap.learning.find_accelerator", lambda device: real(device) or "cpu")


@pytest.mark.usefixtures("accelerator")
@pytest.mark.filterwarnings("ignore::condshap.CondShapWarning")
@pytest.mark.parametrize("heading", RUNS)
def test_calls_take_the_walk(heading):
    with recording({step.name for piece in WALKS[heading] for step in piece}) as called:
        RUNS[heading]()
    for piece in WALKS[heading]:
        steps = [step for step in piece if not re.search(r":[A-Z]\w*$", step.name)]  # a class has no call of its own
        assert missed(steps, called) == []
