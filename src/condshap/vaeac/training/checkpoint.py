"""Training that can go on: all that it needs beside the rows, as arrays."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from condshap.exceptions import OptionError, SchemaError
from condshap.types import Rows
from condshap.vaeac.columns.encoding import Layout
from condshap.vaeac.config import VAEACConfig
from condshap.vaeac.training.masks import MaskScheme, in_order, make_scheme

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class MaskQuery:
    """What masks follow, as given to `fit`: coalitions (C, M), probabilities (C,), groups (M,); empty where not given."""

    coalitions: Array
    probabilities: Array
    membership: Array

    @classmethod
    def of(cls, coalitions: Any = None, probabilities: Any = None, membership: Any = None) -> MaskQuery:
        """Make arrays of what was given."""
        known = np.zeros((0, 0), dtype=bool) if coalitions is None else np.asarray(coalitions, dtype=bool)
        shares = np.zeros(0) if probabilities is None else np.asarray(probabilities, dtype=np.float64)
        groups = np.zeros(0, dtype=np.int64) if membership is None else np.asarray(membership, dtype=np.int64)
        return cls(known, shares, groups)

    def scheme(self, config: VAEACConfig, layout: Layout) -> MaskScheme:
        """Masks for training, in the internal order of features."""
        scheme = make_scheme(
            config.masking,
            layout.n_features,
            known=self.coalitions if self.coalitions.size else None,
            probabilities=self.probabilities if self.probabilities.size else None,
            floor=config.mask_floor,
            size_probabilities=config.size_probabilities,
            membership=self.membership.tolist() or None,
        )
        return in_order(scheme, layout.order)


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """Training of E models after some epochs.

    Attributes
    ----------
    weights, first, second, average, best : flat, one number per parameter of all models: current weights, moments of Adam,
        moving average, and the best weights so far
    generator, before_validation : state of the random numbers now, and when the held-out masks were drawn
    members, training, held_out : (E,) positions of the models' members, (E, n_train) and (E, n_val) of their rows
    best_iwae, best_epoch, factors, changed : (E,) see `Keeper` and `Schedule`
    vlb, validated, iwae, kl : the history of all E models, see `History`
    progress : (2,) epochs and steps so far
    rows : (32,) digest of the training rows
    cuda : () whether the random numbers are those of an accelerator
    """

    weights: Array
    first: Array
    second: Array
    average: Array
    best: Array
    generator: Array
    before_validation: Array
    members: Array
    training: Array
    held_out: Array
    best_iwae: Array
    best_epoch: Array
    factors: Array
    changed: Array
    vlb: Array
    validated: Array
    iwae: Array
    kl: Array
    progress: Array
    rows: Array
    cuda: Array

    @property
    def epoch(self) -> int:
        """Epochs so far."""
        return int(self.progress[0])

    def check(self, X: Rows, device: str) -> None:
        """Refuse other rows (N, M) than those of the training so far, and another kind of device."""
        if not np.array_equal(self.rows, digest(X)):
            raise SchemaError(
                f"training must continue with the rows it began with, in the same order, but these {len(X)} rows differ. "
                "Pass the rows that you passed to fit, or fit a new model."
            )
        if bool(self.cuda) != (device == "cuda"):
            was = "an accelerator" if self.cuda else "the CPU"
            raise OptionError(f"training must continue where it began, on {was}, got device {device!r}. Change device.")


def digest(X: Rows) -> Array:
    """Digest (32,) of rows (N, M) and their order; all NaN are alike."""
    canonical = np.where(np.isnan(X), np.nan, X) + 0.0
    text = repr(X.shape).encode() + np.ascontiguousarray(canonical).tobytes()
    return np.frombuffer(hashlib.blake2b(text, digest_size=32).digest(), dtype=np.uint8)


def store_parts(prefix: str, parts: Checkpoint | MaskQuery) -> dict[str, Array]:
    """Arrays by name."""
    return {f"{prefix}/{f.name}": np.asarray(getattr(parts, f.name)) for f in fields(parts)}


def restore_parts(arrays: Mapping[str, Array]) -> tuple[Checkpoint, MaskQuery] | None:
    """Checkpoint and masks, or None where no optimiser was stored."""
    if not any(name.startswith("training/") for name in arrays):
        return None
    checkpoint = Checkpoint(**{f.name: arrays[f"training/{f.name}"] for f in fields(Checkpoint)})
    return checkpoint, MaskQuery(**{f.name: arrays[f"masks/{f.name}"] for f in fields(MaskQuery)})
