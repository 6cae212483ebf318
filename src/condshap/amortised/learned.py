"""What was learned of a pool: encoding, networks, calibration and likeness -> values, errors and flags of encoded rows."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from condshap.amortised.calibration import Answered, Calibration, RelativeError, signs_of_error
from condshap.amortised.encoding import RowEncoding
from condshap.amortised.hints import Hints
from condshap.amortised.likeness import Likeness
from condshap.amortised.network import Members
from condshap.approaches.base import State
from condshap.types import Floats, Masks, Outputs, Rows


@dataclass(frozen=True, eq=False)
class Question:
    """Rows as networks are asked about them.

    Attributes
    ----------
    rows : (n, M) encoded
    told : (n, H) predictions, on the scale of the values, and hints
    sums : (n, O) what values add up to
    active : (n, P) players that may have a value other than 0
    """

    rows: Rows
    told: Floats
    sums: Outputs
    active: Masks

    def take(self, some: Any) -> Question:
        """Some of the rows."""
        return Question(self.rows[some], self.told[some], self.sums[some], self.active[some])


@dataclass(frozen=True, eq=False)
class Network:
    """Networks and what they read and say: values in units of `scale` (O,)."""

    hints: Hints
    encoding: RowEncoding
    members: Members
    scale: Floats
    likeness: Likeness

    def answer(self, asked: Question) -> tuple[Floats, Floats, Floats]:
        """Values (n, P, O) that add up exactly, signs of their errors (n, 4, P, O), and distances to the pool (n,)."""
        n, P = asked.active.shape
        means, spreads = self.members.answer(self.encoding.inputs(asked.rows, asked.told))
        values, spread = ((some.reshape(n, P, -1) * self.scale) for some in (means, spreads))
        values = share_remainder(values, asked.sums, asked.active)
        distances = self.likeness.distances(self.encoding.places(asked.rows), self.encoding.is_new(asked.rows))
        return values, signs_of_error(values, spread, distances), distances

    def examine(self, asked: Question, exact: Floats) -> Answered:
        """What the networks say of rows whose values (n, P, O) are known."""
        values, signs, _ = self.answer(asked)
        return Answered(exact, values, signs, asked.active)

    def to_state(self) -> State:
        """All of it as arrays."""
        arrays = {f"weight {i}": one.detach().numpy() for i, one in enumerate(self.members.weights)}
        arrays |= {f"bias {i}": one.detach().numpy() for i, one in enumerate(self.members.biases)}
        arrays |= {"typical": self.hints.typical, "membership": self.hints.membership}
        state = State({**arrays, "scale": self.scale}, {"n_outputs": self.members.n_outputs})
        return state.joined(self.encoding.to_state().named("encoding")).joined(
            self.likeness.to_state().named("likeness")
        )

    @classmethod
    def from_state(cls, state: State) -> Network:
        """Inverse of `to_state`."""
        import torch

        n_layers = sum(name.startswith("weight ") for name in state.arrays)
        weights, biases = (
            tuple(torch.from_numpy(state.arrays[f"{name} {i}"]) for i in range(n_layers)) for name in ("weight", "bias")
        )
        encoding = RowEncoding.from_state(state.part("encoding"))
        members = Members(weights, biases, int(state.facts["n_outputs"]))
        hints = Hints(state.arrays["typical"], state.arrays["membership"])
        return cls(hints, encoding, members, state.arrays["scale"], Likeness.from_state(state.part("likeness")))


@dataclass(frozen=True, eq=False)
class Learned:
    """Networks with their calibration and their error on held-out rows; `facts` tell how they came about."""

    network: Network
    calibration: Calibration
    error: RelativeError
    facts: dict[str, Any]

    def explain(self, asked: Question) -> tuple[Floats, Floats, Masks]:
        """Values (n, P, O), their standard errors, and which rows (n,) are unlike the pool."""
        values, signs, distances = self.network.answer(asked)
        errors = np.where(asked.active[..., None], self.calibration.std_errors(signs), 0.0)
        return values, errors, self.network.likeness.is_unlike(distances)

    @property
    def digest(self) -> str:
        """Of all that the numbers depend on beside the explainer."""
        found = hashlib.sha256()
        for name, array in sorted(self.to_state().arrays.items()):
            found.update(f"{name} {array.shape}".encode() + np.ascontiguousarray(array).tobytes())
        return found.hexdigest()

    def to_state(self) -> State:
        """All of it."""
        state = State({"errors": self.error.errors, "sizes": self.error.sizes}, {"facts": self.facts})
        parts = {"network": self.network.to_state(), "calibration": self.calibration.to_state()}
        for name, part in parts.items():
            state = state.joined(part.named(name))
        return state

    @classmethod
    def from_state(cls, state: State) -> Learned:
        """Inverse of `to_state`."""
        network = Network.from_state(state.part("network"))
        error = RelativeError(state.arrays["errors"], state.arrays["sizes"])
        return cls(network, Calibration.from_state(state.part("calibration")), error, dict(state.facts["facts"]))


def share_remainder(values: Floats, sums: Outputs, active: Masks) -> Floats:
    """Values (n, P, O) changed by equal parts so that they add up to `sums` (n, O); players that are not active get 0.

    Players are added one after the other, so that bits are each row's own.
    """
    changed = values * active[..., None]
    total, count = changed[:, 0].copy(), active[:, 0].astype(np.float64)
    for p in range(1, active.shape[1]):
        total += changed[:, p]
        count += active[:, p]
    part = (sums - total) / np.maximum(count, 1.0)[:, None]
    for p in range(active.shape[1]):
        changed[:, p] += part * active[:, p, None]
    return changed
