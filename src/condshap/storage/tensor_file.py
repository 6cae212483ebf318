"""Named arrays and texts <-> one sealed safetensors file: readable by anything, no pickle.

Explainers and networks are such files. Texts are the file's metadata, the seal is one of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from condshap.exceptions import StorageError
from condshap.storage.sealing import is_sealed, new_seal, sealed
from condshap.storage.writing import write_whole

_SEAL = "seal"


@dataclass(frozen=True, slots=True, eq=False)
class TensorFile:
    """What a file held: its texts, and its arrays once `arrays` has found the seal whole."""

    path: Path
    texts: dict[str, str]
    content: bytes
    loaded: dict[str, npt.NDArray[Any]]

    def text(self, key: str, what: str) -> str:
        """Text by its key, without which the file is not `what` was looked for."""
        if key not in self.texts:
            raise StorageError(f"'{self.path}' must be {what}, but is some other safetensors file. Check the path.")
        return self.texts[key]

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays by name; a file whose bytes are not those that were written is refused."""
        if not is_sealed(self.content):
            raise StorageError(
                f"'{self.path}' must be as it was written, but part of it is missing or damaged: its checksum is that of "
                "other bytes. Save it again, or take a copy that is whole."
            )
        return {name: np.array(array) for name, array in self.loaded.items()}  # of their own, to be written to


def write_tensors(path: Path, arrays: Mapping[str, npt.NDArray[Any]], texts: Mapping[str, str], what: str) -> None:
    """Write arrays and texts; `what` they are is for messages, such as "an explainer"."""
    import safetensors.numpy

    seal = new_seal()
    plain = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    write_whole(path, sealed(safetensors.numpy.save(plain, {**texts, _SEAL: seal}), seal), what)


def read_tensors(path: Path, what: str) -> TensorFile:
    """Read a file's texts, which tell what it is, before its arrays are touched."""
    import safetensors.numpy

    try:
        content = path.read_bytes()
        loaded = safetensors.numpy.load(content)
        length = int.from_bytes(content[:8], "little")
        texts = json.loads(content[8 : 8 + length]).get("__metadata__") or {}
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        raise StorageError(f"{what} must be an existing file, got '{path}'. Check the path.") from None
    except (safetensors.SafetensorError, OSError, ValueError, RecursionError) as error:
        raise StorageError(
            f"'{path}' must be a complete safetensors file, but cannot be read: {error}. Save it again, or check the path."
        ) from None
    return TensorFile(path, texts, content, loaded)
