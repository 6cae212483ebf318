"""Models that misbehave: in what they return, when, to whom, and in what they do to their input."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import torch
from hypothesis import strategies as st


def plain(X: Any) -> np.ndarray:
    """What the models would say if they behaved, (n,); rounded row by row."""
    x = np.array(X, dtype=np.float64)
    return x[:, 0] * x[:, 1] + np.abs(x[:, 2])


def _failing(error: BaseException) -> Callable[[Any], Any]:
    def fail(f: Any) -> Any:
        raise error

    return fail


def _at(value: float) -> Callable[[Any], Any]:
    return lambda f: np.where(np.arange(len(f)) == len(f) // 2, value, f)


HONEST: dict[str, Callable[[Any], Any]] = {
    "array": lambda f: f,
    "column": lambda f: f[:, None],
    "list": lambda f: f.tolist(),
    "tuple of lists": lambda f: tuple([one] for one in f.tolist()),
    "series": lambda f: pd.Series(f, index=np.arange(len(f))[::-1]),
    "frame": lambda f: pd.DataFrame({"y": f}),
    "polars": lambda f: pl.Series(f),
    "polars frame": lambda f: pl.DataFrame({"y": f}),
    "arrow": lambda f: pa.array(f),
    "tensor": lambda f: torch.tensor(f),
    "tensor that learns": lambda f: torch.tensor(f, requires_grad=True),
    "objects": lambda f: f.astype(object),
    "masked": lambda f: np.ma.array(f, mask=False),
    "fortran": lambda f: np.asfortranarray(np.column_stack([f]))[:, :1],
    "strided": lambda f: np.repeat(f, 2)[::2],
    "nullable": lambda f: pd.array(f, dtype="Float64"),
    "read only": lambda f: np.broadcast_to(f[:, None], (len(f), 1)),
}
"""Ways to return the same numbers; whatever is answered must be about these."""

OTHER: dict[str, Callable[[Any], Any]] = {
    "two outputs": lambda f: np.column_stack([f, -2 * f]),
    "many outputs": lambda f: np.outer(f, np.arange(1, 12)),
    "constant": np.ones_like,
    "zero": np.zeros_like,
    "whole numbers": lambda f: np.rint(f).astype(int),
    "truths": lambda f: f > 0,
    "half precision": lambda f: f.astype(np.float16),
    "bfloat": lambda f: torch.tensor(f).to(torch.bfloat16),
    "tiny": lambda f: f * 1e-310,
    "small": lambda f: f * 1e-160,
    "large": lambda f: f * 1e60,
    "larger": lambda f: np.where(f > 0, 1e69, -1e69),
    "too large": lambda f: f * 1e100,
    "largest": lambda f: np.full(len(f), 1.7e308),
    "mostly constant": lambda f: np.where(f > np.quantile(f, 0.99), 1e50, 0.0),
    "NaN": _at(np.nan),
    "infinity": _at(np.inf),
    "all NaN": lambda f: np.full(len(f), np.nan),
    "masked NaN": lambda f: np.ma.array(f, mask=f > 0),
    "text": lambda f: f.astype(str),
    "text objects": lambda f: f.astype(str).astype(object),
    "complex": lambda f: f + 1j,
    "long": lambda f: f.astype(np.longdouble),
    "dates": lambda f: f.astype("datetime64[D]"),
    "bytes": lambda f: f.tobytes(),
    "None": lambda f: None,
    "object": lambda f: object(),
    "dictionary": lambda f: {"y": f},
    "set": lambda f: set(f.tolist()),
    "generator": lambda f: (one for one in f.tolist()),
    "nothing": lambda f: [],
    "one number": lambda f: float(f.sum()),
    "one row more": lambda f: np.append(f, 0.0),
    "one row less": lambda f: f[1:],
    "transposed": lambda f: f[None],
    "three axes": lambda f: f[:, None, None],
    "no columns": lambda f: f[:, None][:, :0],
    "ragged": lambda f: [[0.0] * (1 + i % 2) for i in range(len(f))],
    "nested objects": lambda f: np.array([[one] for one in f] + [None], dtype=object)[:-1],
    "missing": lambda f: pd.array([None] * len(f), dtype="Float64"),
    "records": lambda f: np.array([(one,) for one in f], dtype=[("y", float)]),
    "sparse": lambda f: pd.DataFrame({"y": pd.arrays.SparseArray(f)}),
    "tensors": lambda f: [torch.tensor(one) for one in f],
    "huge integers": lambda f: [10**400] * len(f),
    "value error": _failing(ValueError("no")),
    "key error": _failing(KeyError("x9")),
    "index error": _failing(IndexError()),
    "type error": _failing(TypeError("f() takes 2 arguments")),
    "attribute error": _failing(AttributeError("nothing")),
    "stop": _failing(StopIteration()),
    "assertion": _failing(AssertionError()),
    "recursion": _failing(RecursionError("too deep")),
    "runtime": _failing(RuntimeError("CUDA error: out of luck")),
    "warning": _failing(UserWarning("as an error")),
    "arithmetic": _failing(FloatingPointError("overflow")),
    "files": _failing(FileNotFoundError(2, "No such file", "weights")),
    "import": _failing(ImportError("no module named x")),
}


class Odd:
    """A model that behaves as `first` until it has been called `after` times, then as `then`.

    `habit` is what it does besides: it writes into its input, answers with a buffer of its own that it uses again, draws
    noise, or answers a single row with a number.
    """

    def __init__(self, first: Callable[[Any], Any], then: Callable[[Any], Any], after: int, habit: str) -> None:
        self.first, self.then, self.after, self.habit = first, then, after, habit
        self.n_calls, self.buffer = 0, np.zeros(0)
        self.rng = np.random.default_rng(0)

    def __call__(self, X: Any) -> Any:
        self.n_calls += 1
        found = plain(X)
        if self.habit == "writes":
            _spoil(X)
        if self.habit == "noise":
            found = found + self.rng.normal(size=len(found))
        if self.habit == "number" and len(found) == 1:
            return float(found[0])
        if self.habit == "buffer":
            self.buffer = self.buffer if len(self.buffer) >= len(found) else np.zeros(2 * len(found))
            self.buffer[:] = 1e9
            self.buffer[: len(found)] = found
            found = self.buffer[: len(found)]
        return (self.then if self.n_calls > self.after else self.first)(found)


def _spoil(X: Any) -> None:
    if isinstance(X, np.ndarray):
        X[:] = 7.0
    elif isinstance(X, pd.DataFrame):
        X.iloc[:, :] = 7.0
        X.insert(0, "new", 1.0)


FACES: dict[str, Callable[[Any], Any]] = {
    "function": lambda model: lambda X: model(X),
    "callable": lambda model: model,
    "predict": lambda model: SimpleNamespace(predict=model),
    "probabilities": lambda model: SimpleNamespace(predict_proba=model, classes_=["n", "y"]),
    "odd classes": lambda model: SimpleNamespace(predict_proba=model, classes_=3),
    "classes with gaps": lambda model: SimpleNamespace(predict_proba=model, classes_=np.array([None, np.nan, 1.0])[:2]),
    "same classes": lambda model: SimpleNamespace(predict_proba=model, classes_=["1", 1]),
    "names": lambda model: SimpleNamespace(predict=model, feature_names_in_=["x2", "x0", "x1"]),
    "other names": lambda model: SimpleNamespace(predict=model, feature_names_in_=["u", "v"]),
    "names that are none": lambda model: SimpleNamespace(predict=model, feature_names_in_=3),
    "no method": lambda model: SimpleNamespace(predict=None),
    "class": lambda model: Odd,
    "nothing": lambda model: None,
    "text": lambda model: "model.pkl",
}


@st.composite
def odd_models(draw) -> tuple[Any, bool]:
    """A model, and whether its answers, if it gives any, must be those of `plain`."""
    honest = st.sampled_from(sorted(HONEST)).map(lambda name: HONEST[name])
    other = st.sampled_from(sorted(OTHER)).map(lambda name: OTHER[name])
    first = draw(st.one_of(honest, other))
    after = draw(st.sampled_from([0, 1, 2, 3, 5, 9, 1000]))
    then = draw(st.one_of(st.just(first), honest, other))
    habit = draw(st.sampled_from(["", "", "writes", "buffer", "noise", "number"]))
    face = draw(st.sampled_from([*["function"] * 8, *["predict"] * 4, *sorted(FACES)]))
    is_honest = first in HONEST.values() and then in HONEST.values() and habit != "noise" and "names" not in face
    return FACES[face](Odd(first, then, after, habit)), is_honest
