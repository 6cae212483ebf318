"""A fitted ensemble <-> arrays and JSON, for storage without pickle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from condshap.storage.file_kinds import clear_damage, new_header, read_header
from condshap.vaeac.columns.advice import LinearModel
from condshap.vaeac.columns.atoms import Atoms
from condshap.vaeac.columns.encoding import Layout, Scale, ScoreScale, StandardScale, SupportScale
from condshap.vaeac.columns.learned import Columns
from condshap.vaeac.config import VAEACConfig, in_new_words
from condshap.vaeac.network.layers import NetworkShape
from condshap.vaeac.training.checkpoint import Checkpoint, MaskQuery, restore_parts, store_parts
from condshap.vaeac.validation import History

_KIND = "networks"
_SCALE_CLASSES: dict[str, type[Scale]] = {
    "standard": StandardScale,
    "normal_scores": ScoreScale,
    "support": SupportScale,
}


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """What was learned, as arrays: enough to sample from, and to store.

    Attributes
    ----------
    config : with nothing left open
    members : scale name of each member
    weights : by parameter name, (E, ...) float32
    """

    config: VAEACConfig
    columns: Columns
    shape: NetworkShape
    members: tuple[str, ...]
    weights: dict[str, npt.NDArray[np.float32]]
    history: History


def network_shape(layout: Layout, config: VAEACConfig, *, has_flags: bool, n_advice: int) -> NetworkShape:
    """Widths of one network with this configuration."""
    assert config.width is not None
    assert config.latent is not None
    M = layout.n_features
    return NetworkShape(
        layout.n_inputs, M, layout.n_outputs, config.depth, config.width, config.latent, has_flags, n_advice
    )


def store(
    fitted: Fitted, asked: VAEACConfig, training: tuple[Checkpoint, MaskQuery] | None = None
) -> tuple[dict[str, npt.NDArray[Any]], str]:
    """Arrays and a JSON text; `asked` is the configuration before anything was filled in, `training` what can go on."""
    arrays: dict[str, npt.NDArray[Any]] = {f"weights/{name}": array for name, array in fitted.weights.items()}
    columns = fitted.columns
    for name, scale in columns.scales.items():
        arrays |= {f"scales/{name}/{f.name}": getattr(scale, f.name) for f in fields(scale)}
        arrays[f"floors/{name}"] = columns.floors[name]
    arrays |= {f"history/{f.name}": getattr(fitted.history, f.name) for f in fields(fitted.history)}
    arrays |= {"support": columns.support, "whole": columns.whole, "atoms": columns.atoms.values}
    if columns.linear is not None:
        arrays |= {f"linear/{f.name}": getattr(columns.linear, f.name) for f in fields(columns.linear)}
    if training is not None:
        arrays |= {**store_parts("training", training[0]), **store_parts("masks", training[1])}
    about = {
        "n_levels": columns.atoms.n_levels.tolist(), "members": fitted.members, "scales": list(columns.scales),
        "has_flags": fitted.shape.has_flags, "asked": asdict(asked), "config": asdict(fitted.config),
    }  # fmt: skip
    return arrays, new_header(_KIND, **about)


def restore(
    arrays: Mapping[str, npt.NDArray[Any]], about: str
) -> tuple[Fitted, VAEACConfig, tuple[Checkpoint, MaskQuery] | None]:
    """Inverse of `store`."""
    facts = read_header(about, _KIND, "a stored VAEAC")
    with clear_damage("a stored VAEAC must be complete", "Store it again."):
        return _rebuild(arrays, facts), _config(facts["asked"]), restore_parts(arrays)


def _rebuild(arrays: Mapping[str, npt.NDArray[Any]], facts: dict[str, Any]) -> Fitted:
    config, members = _config(facts["config"]), tuple(facts["members"])
    atoms = Atoms(arrays["atoms"], np.array(facts["n_levels"], dtype=np.intp))
    layout = Layout.of(atoms.inner_levels)
    scales: dict[str, Scale] = {}
    for name in facts["scales"]:
        kind = _SCALE_CLASSES[name]
        scales[name] = kind(**{f.name: arrays[f"scales/{name}/{f.name}"] for f in fields(kind)})
    linear = None
    if "linear/means" in arrays:
        linear = LinearModel(**{f.name: arrays[f"linear/{f.name}"] for f in fields(LinearModel)})
    floors = {name: arrays[f"floors/{name}"] for name in scales}
    columns = Columns(layout, scales, floors, arrays["support"], arrays["whole"], atoms, linear)
    shape = network_shape(layout, config, has_flags=facts["has_flags"], n_advice=columns.n_advice(config))
    weights = {}
    for name, (dims, _) in shape.parameters().items():
        weights[name] = np.asarray(arrays[f"weights/{name}"], dtype=np.float32).reshape(len(members), *dims)
    history = History(**{f.name: arrays[f"history/{f.name}"] for f in fields(History)})
    return Fitted(config, columns, shape, members, weights, history)


def _config(values: dict[str, Any]) -> VAEACConfig:
    lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    return VAEACConfig(**in_new_words({**values, **lists}))
