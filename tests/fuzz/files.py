"""Files of every kind that condshap writes, after an accident, or changed by somebody who sealed them anew."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import safetensors.numpy
from hypothesis import strategies as st

import condshap as cs
from condshap.storage.explanations import parquet_bytes
from condshap.storage.file_kinds import HEADER, SEAL
from condshap.storage.sealing import new_seal, sealed
from condshap.studies.cells import BurrCell
from condshap.studies.problems.truths import find_truth
from condshap.studies.store import Key, Result, Store

RNG = np.random.default_rng(0)
X = pd.DataFrame({"a": RNG.normal(size=60), "b": RNG.normal(size=60), "c": RNG.choice(["u", "v"], 60)})
BURR = BurrCell(5, 50, n_rows=4, n_trees=5)
ODD: list[Any] = [
    None, True, -1, 0, 1, 3, 0.5, 1e300, 10**30, "", "x", "auto", "numpy", "float64", [], [1], [[[1]]], ["a", "b", "c"], {},
    {"a": {"b": [1]}},
]  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """A kind of file: its bytes, how it is read, how what was read is used, and where it keeps its facts if it is sealed."""

    content: bytes
    load: Callable[[Path], Any]
    use: Callable[[Any], Any] = lambda found: found
    facts: str = ""


class Content(bytes):
    """Bytes that are too many to be shown."""

    def __repr__(self) -> str:
        return f"<{len(self)} bytes>"


def model(table: Any) -> np.ndarray:
    return np.asarray(table["a"], dtype=np.float64) * (1 + (np.asarray(table["c"]) == "u"))


@cache
def kinds() -> dict[str, Kind]:
    """Kinds of files by name; made once."""
    folder = Path(mkdtemp())
    found = {}
    for approach in ("independence", "ctree", "regression_separate"):
        explainer = cs.Explainer(model, approach=approach, seed=3, check_draws=False).fit(X)
        explainer.save(folder / "file")
        found[f"explainer of {approach}"] = Kind((folder / "file").read_bytes(), load_explainer, use_explainer, HEADER)
    explainer.explain(X[:4]).save(folder / "file")
    found["explanation"] = Kind((folder / "file").read_bytes(), cs.load_explanation, use_explanation, "parquet")
    cs.VAEACNetworks(epochs=2, width=4, depth=1, latent=1, companions=False, device="cpu").fit(X).save(folder / "file")
    found["networks"] = Kind((folder / "file").read_bytes(), load_networks, use_networks, HEADER)
    for i in range(4):
        result = Result(Key("study", "cell", "gaussian", i, 0, "0.1.0"), 0.1 * i, 0.2, 0.3, 1.0, 2.0, 3.5, 100)
        Store(folder / "store").append(result)
    found["store"] = Kind((folder / "store").read_bytes(), lambda path: Store(path).read())
    problem = BURR.make_problem(0)
    find_truth(BURR, 0, problem, folder / "truths")
    (made,) = (folder / "truths").rglob("*.npz")
    content = made.read_bytes()

    def load_truth(path: Path) -> Any:
        made.write_bytes(path.read_bytes())
        return find_truth(BURR, 0, problem, folder / "truths")

    found["truth"] = Kind(content, load_truth)
    return found


def load_explainer(path: Path) -> Any:
    return cs.load_explainer(path, model)


def use_explainer(explainer: Any) -> Any:
    explainer.progress, explainer.n_jobs = False, 1
    return explainer.explain(X[:2])


def use_explanation(found: Any) -> Any:
    return found.to_frame(errors=True), found.msev, found[0]


def load_networks(path: Path) -> Any:
    return cs.VAEACNetworks.load(path, device="cpu")


def use_networks(networks: Any) -> Any:
    return networks.sample(X[:2], [["a"]], 2)


@st.composite
def damaged(draw, content: bytes) -> bytes:
    """Bytes of a file after an accident; sometimes it went well."""
    size = len(content)
    ends = st.one_of(st.integers(0, min(200, size - 1)), st.integers(max(0, size - 200), size - 1))
    places = st.one_of(st.integers(0, size - 1), ends)
    way, place = draw(st.integers(0, 6)), draw(places)
    return Content(_damaged(draw, content, way, place, places))


def _damaged(draw, content, way, place, places):
    if way == 0:
        return content[:place]
    if way == 1:
        return content[place:]
    if way == 2:
        return content[:place] + content[place + draw(st.integers(1, 64)) :]
    if way == 3:
        return content[:place] + draw(st.binary(min_size=1, max_size=64)) + content[place:]
    if way == 4:
        return draw(st.binary(max_size=200))
    some = draw(st.binary(min_size=1, max_size=8))
    if way == 5:
        return content[:place] + some + content[place + len(some) :]
    changed = bytearray(content)
    for _ in range(draw(st.integers(0, 3))):
        changed[draw(places)] ^= 1 << draw(st.integers(0, 7))
    return bytes(changed)


@st.composite
def forged(draw, kind: Kind) -> bytes:
    """Bytes of a file of which one fact, or one array, was changed by somebody who sealed it again."""
    if kind.facts == "parquet":
        return Content(_forged_parquet(draw, kind.content))
    texts, arrays = _texts(kind.content), safetensors.numpy.load(kind.content)
    if draw(st.integers(0, 3)):
        texts[kind.facts] = json.dumps(draw(changed_facts(json.loads(texts[kind.facts]))))
    else:
        name = draw(st.sampled_from(sorted(arrays)))
        arrays[name] = draw(changed_array(arrays[name]))
    seal = new_seal()
    return Content(sealed(safetensors.numpy.save(arrays, {**texts, SEAL: seal}), seal))


def _forged_parquet(draw, content):
    import pyarrow as pa

    arrow = pq.read_table(pa.BufferReader(content))
    about = json.loads(arrow.schema.metadata[HEADER.encode()])
    if draw(st.integers(0, 3)):
        about = draw(changed_facts(about))
    else:
        name = draw(st.sampled_from(arrow.column_names))
        way = draw(st.integers(0, 2))
        position = arrow.column_names.index(name)
        if way == 0:
            arrow = arrow.drop_columns([name])
        else:
            other = pa.array([1.5] * arrow.num_rows) if way == 1 else pa.nulls(arrow.num_rows)
            arrow = arrow.set_column(position, name, other)
    return parquet_bytes(arrow, json.dumps(about))


@st.composite
def changed_facts(draw, facts: Any) -> Any:
    """Facts with one value replaced by something else, or taken away, wherever that is."""
    changed = copy.deepcopy(facts)
    node = changed
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            return changed
        key = draw(st.sampled_from(keys))
        if not isinstance(node[key], (dict, list)) or not node[key] or draw(st.integers(0, 4)) == 0:
            break
        node = node[key]
    if draw(st.integers(0, 5)) == 0:
        del node[key]
    else:
        node[key] = draw(st.sampled_from(ODD))
    return changed


@st.composite
def changed_array(draw, array: np.ndarray) -> np.ndarray:
    """An array of another shape or dtype, or with other numbers."""
    way = draw(st.integers(0, 4))
    if way == 0:
        return array[:0] if array.ndim else array[None]
    if way == 1:
        return np.repeat(array, 2, axis=0) if array.ndim else array.astype(np.float32)
    if way == 2:
        return array.ravel()
    if way == 3:
        with np.errstate(all="ignore"):
            return array.astype(draw(st.sampled_from(["float64", "int64", "bool", "float32"])))
    changed = array.copy()
    if changed.size:
        value = draw(st.sampled_from([-1.0, 0.0, 1e300, float("nan"), float("inf"), 2.0**40, 7.0]))
        with np.errstate(all="ignore"):
            changed.reshape(-1)[draw(st.integers(0, changed.size - 1))] = np.array(value).astype(array.dtype)
    return changed


def _texts(content: bytes) -> dict[str, str]:
    length = int.from_bytes(content[:8], "little")
    return dict(json.loads(content[8 : 8 + length])["__metadata__"])
