"""Fitted networks and the schema of their table <-> one safetensors file: readable by anything, no pickle.

Tensors and a text are what `Networks.to_state` returns; the schema is JSON beside that text.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from condshap.approaches.base import State
from condshap.schema import FeatureSchema
from condshap.storage.file_kinds import NETWORKS
from condshap.storage.schemas import schema_from_json, schema_to_json
from condshap.storage.state_file import read_state, write_state

if TYPE_CHECKING:
    from condshap.vaeac.ensemble import Networks


def save_networks(path: Path, networks: Networks, schema: FeatureSchema, *, keep_optimiser: bool) -> None:
    """Write networks, see `condshap.VAEACNetworks.save`."""
    arrays, about = networks.to_state(keep_optimiser=keep_optimiser)
    write_state(State(arrays, {"networks": about, "schema": schema_to_json(schema)}), path, NETWORKS)


def load_networks(path: Path, device: str) -> tuple[Networks, FeatureSchema]:
    """Read networks, to run on `device`, and the schema of their table."""
    from condshap.vaeac.ensemble import Networks

    state = read_state(path, NETWORKS)
    with NETWORKS.clear_damage(path):
        schema = schema_from_json(state.facts["schema"])
        networks = Networks.from_state(state.arrays, state.facts["networks"], device=device)
        n_levels = [len(feature.levels or ()) for feature in schema.features]
        if n_levels != networks.fitted_.columns.atoms.n_levels.tolist():
            raise ValueError("its schema and its networks have different features")
    return networks, schema
