"""State (arrays and facts) <-> one safetensors file: readable by anything, no pickle.

Arrays are the file's tensors. Facts are JSON in its metadata, under the key ``condshap``, beside the format version and what
restores arrays exactly: `same` (an array that is stored under another name already) and `turned` (one in Fortran order,
stored transposed, because linear algebra may round differently in another order). A checksum guards all of it, see
`condshap.storage.sealing`.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from condshap.approaches.base import State
from condshap.exceptions import StorageError
from condshap.storage.tensor_file import read_tensors, write_tensors

FORMAT_VERSION = 2
_KEY = "condshap"


def write_state(state: State, path: Path) -> None:
    """Write a state; a file that exists is replaced once the new one is complete."""
    tensors, about = _lay_out(state)
    about |= {"format_version": FORMAT_VERSION, "written_by": version("condshap")}
    try:
        text = json.dumps({**about, "facts": _plain(state.facts)})
    except (TypeError, ValueError) as error:
        raise StorageError(
            f"the facts of a state must be what JSON can hold, but {error}. Let to_state return numbers, text and lists."
        ) from None
    write_tensors(path, tensors, {_KEY: text}, "an explainer")


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


def read_state(path: Path) -> State:
    """Read a state that `write_state` wrote."""
    about, tensors = _read(path)
    try:
        arrays = {name: tensor.T if name in about["turned"] else tensor for name, tensor in tensors.items()}
        return State({**arrays, **{name: arrays[first] for name, first in about["same"].items()}}, about["facts"])
    except (KeyError, TypeError, AttributeError) as error:
        raise damaged(path, error) from error


def damaged(path: Path, error: Exception) -> StorageError:
    """Error for a file with a part missing or changed."""
    return StorageError(
        f"'{path}' must be an explainer saved by condshap, but part of it is missing or damaged: {error!r}. Save it again."
    )


def _read(path: Path) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    file = read_tensors(path, "a saved explainer")
    about = _read_about(path, file.text(_KEY, "an explainer saved by condshap"))
    return about, file.arrays()


def _read_about(path: Path, text: str) -> dict[str, Any]:
    try:
        about = json.loads(text)
        found, writer = about["format_version"], about.get("written_by", "of unknown version")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise damaged(path, error) from None
    if found != FORMAT_VERSION:
        raise StorageError(
            f"'{path}' must have format version {FORMAT_VERSION}, got {found!r}, written by condshap {writer}. Read it with "
            "that version of condshap, or fit and save it again."
        )
    return dict(about)
