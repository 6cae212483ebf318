"""Fitted networks and a schema <-> one safetensors file, with JSON in its header; no pickle.

Tensors are what `Networks.to_state` returns; the header's metadata hold one JSON text under the key ``condshap.vaeac``,
and a checksum of the whole file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy.typing as npt

from condshap.exceptions import StorageError
from condshap.storage.tensor_file import read_tensors, write_tensors
from condshap.vaeac.ensemble import Networks

FORMAT_VERSION = 2
_KEY = "condshap.vaeac"


def write_network(
    path: Path, arrays: Mapping[str, npt.NDArray[Any]], networks: str, schema: dict[str, Any], writer: str
) -> None:
    """Write the state of networks, arrays and text, and the JSON of their schema; `writer` is the version of condshap."""
    about = {"format_version": FORMAT_VERSION, "condshap": writer, "schema": schema, "networks": networks}
    write_tensors(path, arrays, {_KEY: json.dumps(about)}, "a VAEAC")


def read_network(path: Path, device: str) -> tuple[Networks, dict[str, Any]]:
    """Read networks and the JSON of their schema."""
    file = read_tensors(path, "a saved VAEAC")
    about = _check(path, file.text(_KEY, "a file saved by condshap.VAEAC.save"))
    arrays = file.arrays()
    try:
        networks, schema = about["networks"], about["schema"]
    except KeyError as error:
        raise StorageError(
            f"'{path}' must hold networks and a schema, but {error} is missing. Save it again."
        ) from None
    return Networks.from_state(arrays, networks, device=device), schema


def _check(path: Path, text: str) -> dict[str, Any]:
    try:
        about: dict[str, Any] = json.loads(text)
        version, writer = about["format_version"], about.get("condshap", "of unknown version")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StorageError(
            f"'{path}' must have a readable header, but it is damaged: {error!r}. Save it again."
        ) from None
    if version != FORMAT_VERSION:
        raise StorageError(
            f"'{path}' must have format version {FORMAT_VERSION}, got {version}, written by condshap {writer}. Read it with "
            "that version of condshap."
        )
    return about
