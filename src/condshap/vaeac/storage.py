"""Fitted networks and a schema <-> one safetensors file, with JSON in its header; no pickle.

Tensors are what `Networks.to_state` returns; the header's metadata hold one JSON text under the key ``condshap.vaeac``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from condshap.exceptions import StorageError
from condshap.vaeac.model import Networks

FORMAT_VERSION = 1
_KEY = "condshap.vaeac"


def write_network(
    path: Path, arrays: Mapping[str, npt.NDArray[Any]], networks: str, schema: dict[str, Any], writer: str
) -> None:
    """Write the state of networks, arrays and text, and the JSON of their schema; `writer` is the version of condshap."""
    from safetensors.numpy import save

    about = {"format_version": FORMAT_VERSION, "condshap": writer, "schema": schema, "networks": networks}
    content = save({name: np.asarray(array, order="C") for name, array in arrays.items()}, {_KEY: json.dumps(about)})
    partial = path.with_name(f"{path.name}.{os.getpid()}.part")  # a file that exists is replaced by a complete one only
    try:
        partial.write_bytes(content)
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise StorageError(f"a VAEAC must be saved to a writable path, got '{path}': {error}.") from None


def read_network(path: Path, device: str) -> tuple[Networks, dict[str, Any]]:
    """Read networks and the JSON of their schema."""
    arrays, text = _open(path)
    about = _check(path, text)
    try:
        networks, schema = about["networks"], about["schema"]
    except KeyError as error:
        raise StorageError(
            f"'{path}' must hold networks and a schema, but {error} is missing. Save it again."
        ) from None
    return Networks.from_state(arrays, networks, device=device), schema


def _open(path: Path) -> tuple[dict[str, Any], str | None]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            text = (file.metadata() or {}).get(_KEY)
            return {name: file.get_tensor(name) for name in file.keys()} if text else {}, text  # noqa: SIM118
    except FileNotFoundError:
        raise StorageError(f"a VAEAC must be loaded from an existing file, got '{path}'.") from None
    except (SafetensorError, OSError) as error:
        raise StorageError(
            f"'{path}' must be a complete safetensors file, but cannot be read: {error}. Save it again."
        ) from None


def _check(path: Path, text: str | None) -> dict[str, Any]:
    if text is None:
        raise StorageError(f"'{path}' must be a file saved by condshap.VAEAC.save, but is some other safetensors file.")
    try:
        about: dict[str, Any] = json.loads(text)
        version, writer = about["format_version"], about.get("condshap", "of unknown version")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StorageError(
            f"'{path}' must have a readable header, but it is damaged: {error!r}. Save it again."
        ) from None
    if version != FORMAT_VERSION:
        raise StorageError(
            f"'{path}' must have format version {FORMAT_VERSION}, got {version}, written by condshap {writer}. Read it with "
            "that version of condshap."
        )
    return about
