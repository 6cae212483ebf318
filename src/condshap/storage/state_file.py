"""State (arrays and facts) <-> one safetensors file: readable by anything, no pickle.

Arrays are the file's tensors. Facts are JSON in its header, see `condshap.storage.file_kinds`, beside what restores arrays
exactly: `same` (an array that is stored under another name already) and `turned` (one in Fortran order, stored transposed,
because linear algebra may round differently in another order). A checksum guards all of it, see `condshap.storage.sealing`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from condshap.approaches.base import State
from condshap.exceptions import StorageError
from condshap.storage.file_kinds import EXPLAINER, HEADER, SEAL, FileKind
from condshap.storage.sealing import new_seal, sealed
from condshap.storage.writing import write_whole

damaged = EXPLAINER.damaged
"""Error for an explainer with a part missing or changed, by its path and what went wrong."""


def write_state(state: State, path: Path, kind: FileKind = EXPLAINER) -> None:
    """Write a state; a file that exists is replaced once the new one is complete."""
    tensors, layout = _lay_out(state)
    try:
        header = kind.new_header(**layout, facts=_plain(state.facts))
    except (TypeError, ValueError) as error:
        raise StorageError(
            f"the facts of a state must be what JSON can hold, but {error}. Let to_state return numbers, text and lists."
        ) from None
    write_tensors(path, tensors, header, kind)


def write_tensors(path: Path, tensors: Mapping[str, npt.NDArray[Any]], header: str, kind: FileKind) -> None:
    """Write arrays in C order and the text of a header, sealed."""
    import safetensors.numpy

    seal = new_seal()
    content = safetensors.numpy.save(dict(tensors), {HEADER: header, SEAL: seal})
    write_whole(path, sealed(content, seal), kind.what)


def read_state(path: Path, kind: FileKind = EXPLAINER) -> State:
    """Read a state that `write_state` wrote."""
    import safetensors.numpy

    content = kind.read(path)
    with kind.opening(path):
        tensors = safetensors.numpy.load(content)
        texts = _metadata(content)
    header = kind.read_header(path, texts.get(HEADER))
    kind.check_seal(path, content)
    with kind.clear_damage(path):
        own = {name: np.array(tensor) for name, tensor in tensors.items()}  # those of safetensors cannot be written to
        arrays = {name: array.T if name in header["turned"] else array for name, array in own.items()}
        return State({**arrays, **{name: arrays[first] for name, first in header["same"].items()}}, header["facts"])


def _metadata(content: bytes) -> dict[str, str]:
    """Texts beside the tensors of a safetensors file, which its library does not read from bytes."""
    length = int.from_bytes(content[:8], "little")
    return dict(json.loads(content[8 : 8 + length]).get("__metadata__") or {})


def _plain(facts: Any) -> Any:
    """Facts with mappings as dictionaries, which JSON wants."""
    return {key: _plain(value) for key, value in facts.items()} if hasattr(facts, "items") else facts


def _lay_out(state: State) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """Tensors for the file, each array once and in C order, and what was done to them."""
    tensors: dict[str, npt.NDArray[Any]] = {}
    first: dict[int, str] = {}
    same, turned = {}, []
    for name, array in state.arrays.items():
        _check_array(name, array)
        if id(array) in first:
            same[name] = first[id(array)]
            continue
        first[id(array)] = name
        if array.flags.f_contiguous and not array.flags.c_contiguous:
            turned.append(name)
            array = array.T
        tensors[name] = np.ascontiguousarray(array).reshape(array.shape)  # which would give a single number an axis
    return tensors, {"same": same, "turned": turned}


def _check_array(name: str, array: object) -> None:
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        what = f"an array of {array.dtype}" if isinstance(array, np.ndarray) else type(array).__name__
        raise StorageError(
            f"the arrays of a state must hold booleans, integers or floats, got {what} as '{name}'. Let to_state convert it."
        )
