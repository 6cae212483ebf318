"""No flipped bit, and no bytes lost or added, load as other numbers: files are whole, or refused in our own words."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import condshap as cs
from condshap.exceptions import StorageError
from condshap.storage.file_kinds import EXPLANATION, FORMAT_VERSION, clear_damage, new_header, read_header
from condshap.storage.sealing import is_sealed, new_seal, sealed
from condshap.studies.cells import BurrCell
from condshap.studies.problems.truths import find_truth
from condshap.studies.store import Key, Result, Store

RNG = np.random.default_rng(0)
X = pd.DataFrame({"a": RNG.normal(size=60), "b": RNG.normal(size=60), "c": RNG.choice(["u", "v"], 60)})
BURR = BurrCell(5, 50, n_rows=4, n_trees=5)


def model(table):
    return np.asarray(table["a"]) * (1 + (np.asarray(table["c"]) == "u"))


def save_explainer(path):
    cs.Explainer(model, approach="independence", seed=3).fit(X).save(path)
    return lambda: cs.load_explainer(path, model)


def save_network(path):
    cs.VAEACNetworks(epochs=2, width=8, latent=2, scales=("standard",), device="cpu").fit(X).save(path)
    return lambda: cs.VAEACNetworks.load(path, device="cpu")


def save_explanation(path):
    cs.explain(model, X, X[:5], approach="independence", n_samples=8).save(path)
    return lambda: cs.load_explanation(path)


def save_store(path):
    for i in range(4):
        key = Key("study", "cell", "gaussian", i, 0, "0.1.0")
        own = {"machine": "J*", "peak": 0.5, "device_peak": 0.25}  # NaN equals nothing
        Store(path).append(Result(key, 0.1 * i, 0.2, 0.3, 1.0, 2.0, 3.5, 100, **own))
    return lambda: Store(path).read()


def save_truth(path):
    problem = BURR.make_problem(0)
    find_truth(BURR, 0, problem, path.parent / "truths")
    (made,) = (path.parent / "truths").rglob("*.npz")
    made.replace(path)
    made.symlink_to(path)
    return lambda: find_truth(BURR, 0, problem, path.parent / "truths")


WRITERS = {
    "explainer": save_explainer,
    "network": save_network,
    "explanation": save_explanation,
    "store": save_store,
    "truth": save_truth,
}


def damages(content, n):
    """Copies of a file with one bit flipped, then some cut short, longer, or with a part overwritten."""
    rng = np.random.default_rng(1)
    places = rng.choice(8 * len(content), size=min(n, 8 * len(content)), replace=False)
    ends = np.r_[np.arange(0, min(160, 8 * len(content))), 8 * len(content) - 1 - np.arange(0, 160)]  # headers, footers
    for place in np.unique(np.r_[places, ends]):
        changed = bytearray(content)
        changed[place // 8] ^= 1 << (place % 8)
        yield bytes(changed)
    for start in rng.integers(0, len(content) - 16, 20):
        changed = content[:start] + bytes(rng.integers(0, 256, 16, dtype=np.uint8)) + content[start + 16 :]
        yield changed


@pytest.mark.parametrize("kind", WRITERS)
def test_no_damage_goes_unnoticed(tmp_path, kind):
    path = tmp_path / "file"
    load = WRITERS[kind](path)
    load()
    for changed in damages(path.read_bytes(), 150):
        path.write_bytes(changed)
        with pytest.raises(StorageError):
            load()


@pytest.mark.parametrize("kind", ["explainer", "network", "explanation", "truth"])
def test_bytes_lost_or_added_are_refused(tmp_path, kind):
    path = tmp_path / "file"
    load, content = WRITERS[kind](path), path.read_bytes()
    for changed in (content[:-1], content[1:], content + b"\0", b"\0" + content, content[:40] + content[41:], b""):
        path.write_bytes(changed)
        with pytest.raises(StorageError):
            load()


def test_a_store_from_before_there_were_checksums_is_read(tmp_path):
    save_store(tmp_path / "file")
    lines = (tmp_path / "file").read_text().splitlines()
    old = [line.split(', "sha256"')[0].replace('"format": 2', '"format": 1') + "}" for line in lines]
    (tmp_path / "old").write_text("\n".join([old[0], lines[1]]) + "\n")
    assert list(Store(tmp_path / "old").read().values()) == list(Store(tmp_path / "file").read().values())[:2]


def test_a_seal_that_somebody_put_into_a_name_does_not_confuse():
    seal, other = new_seal(), new_seal()
    content = sealed(f"{other} and {seal} and {other}".encode(), seal)
    assert is_sealed(content)
    assert not is_sealed(content.replace(b"and", b"And"))
    assert not is_sealed(b"")


def test_a_header_tells_kind_version_and_writer():
    found = read_header(new_header("thing", seed=1), "thing", "it")
    assert found == {"kind": "thing", "format_version": FORMAT_VERSION, "written_by": cs.__version__, "seed": 1}
    with pytest.raises(StorageError, match="it must be of kind 'other', got 'thing'"):
        read_header(new_header("thing"), "other", "it")


@pytest.mark.parametrize("error", [MemoryError(), cs.CondShapWarning("odd"), StorageError("ours")])
def test_what_is_no_damage_is_not_called_so(error):
    with pytest.raises(type(error)) as found, clear_damage("it must be whole"):
        raise error
    assert found.value is error


def test_a_file_from_a_later_version_is_told_from_a_damaged_one(tmp_path):
    path = tmp_path / "file"
    load = save_explainer(path)
    path.write_bytes(path.read_bytes().replace(b'format_version\\": 4', b'format_version\\": 9'))
    with pytest.raises(StorageError, match="must have format version 4, got 9"):
        load()


def test_a_path_that_no_file_can_have_is_refused(tmp_path):
    for name in ("null\0character", "a" * 300):
        with pytest.raises(StorageError, match="must be a complete Parquet file, but cannot be read"):
            EXPLANATION.read(tmp_path / name)
