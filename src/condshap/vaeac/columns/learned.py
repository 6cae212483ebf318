"""Training rows -> what is known about their columns: layout, scales, resolution and support."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log

import numpy as np
import torch
from torch import Tensor

from condshap.exceptions import OptionError
from condshap.types import Floats, Indices, Rows
from condshap.vaeac.columns.advice import LinearModel, few_columns
from condshap.vaeac.columns.atoms import Atoms
from condshap.vaeac.columns.encoded_rows import EncodedRows
from condshap.vaeac.columns.encoding import Bools, Layout, Scale, check_rows, learn_scale, scale_floors
from condshap.vaeac.columns.supports import find_poles
from condshap.vaeac.config import VAEACConfig

_SHARED = 0.04  # nats a hidden feature that are much, on average over coalitions
_SHARED_BLINDLY = 0.35  # and where nothing is known
_SHORT = 1e-6  # how far from an end that no training row holds draws stay, as a share of the way to the nearest one


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """What was learned about M columns, of which Mc are continuous.

    Attributes
    ----------
    scales : by name, those that members use
    floors : by scale name, (Mc,) least standard deviations of Gaussian heads
    support : (2, Mc) least and largest values that may be drawn, -inf and inf where there is no end
    whole : (Mc,) columns that hold whole numbers only
    atoms : columns that take few values, which are levels here
    linear : what a linear model knows of the encoded columns, where networks are told
    """

    layout: Layout
    scales: dict[str, Scale]
    floors: dict[str, Floats]
    support: Floats
    whole: Bools
    atoms: Atoms
    linear: LinearModel | None = None

    @classmethod
    def learn(cls, X: Rows, atoms: Atoms, config: VAEACConfig, support: Floats | None, *, n_sets: int = 1) -> Columns:
        """Learn from checked rows (N, M); `support` (2, M) is the training range by default, and where it is NaN.

        `n_sets` is how many sets of known features will be asked about.
        """
        layout = Layout.of(atoms.inner_levels)
        numbers = _numbers(X, layout)
        whole = np.all(np.isnan(numbers) | (numbers == np.rint(numbers)), axis=0)
        seen = np.stack([np.nanmin(numbers, axis=0), np.nanmax(numbers, axis=0)]) if numbers.size else np.zeros((2, 0))
        declared = np.full(seen.shape, np.nan) if support is None else _numbers(support, layout)
        declared = np.where(whole, np.stack([np.ceil(declared[0]), np.floor(declared[1])]), declared)
        names = sorted({*(config.scales or ()), *(config.linear_scales if numbers.size else ())} or {"standard"})
        poles = find_poles(numbers, declared, whole) if "support" in names else None
        scales = {name: learn_scale(name, numbers, cut=config.respect_support, poles=poles) for name in names}
        floors = {
            name: scale_floors(scale.encode(numbers), config.scale_floor, by_resolution=config.respect_support)
            for name, scale in scales.items()
        }
        if poles is not None:
            floors["support"] = np.maximum(floors["support"], _whole_floors(scales["support"], numbers, whole))
        columns = cls(layout, scales, floors, _ends(declared, seen, whole), whole, atoms)
        advised = few_columns(layout.column_features, n_sets)
        if not (config.advice or config.companions) or not len(advised):
            return columns
        return replace(columns, linear=columns._learn_linear(X, advised))

    def _learn_linear(self, X: Rows, advised: Indices) -> LinearModel:
        rows = self.encode(X, torch.device("cpu"))
        shares = None if self.linear is None else self.linear.shares
        inputs, missing = rows.inputs.numpy(), rows.missing.numpy() > 0
        return LinearModel.learn(inputs, missing, self.layout.column_features, advised, shares)

    def some(self, features: Indices, scale: str) -> Columns:
        """Return what is known about some features, in their order, on one scale; without a linear model."""
        atoms = Atoms(self.atoms.values[features], self.atoms.n_levels[features])
        layout, numbers = Layout.of(atoms.inner_levels), self.layout.places(features)
        numbers = numbers[numbers < self.layout.n_continuous]
        return Columns(
            layout=layout,
            scales={scale: self.scales[scale].some(numbers)},
            floors={scale: self.floors[scale][numbers]},
            support=self.support[:, numbers],
            whole=self.whole[numbers],
            atoms=atoms,
        )

    @property
    def is_linear(self) -> bool:
        """There is a linear model of all columns, so that it can draw."""
        return self.linear is not None and len(self.linear.columns) == self.layout.n_inputs

    def n_advice(self, config: VAEACConfig) -> int:
        """Number of columns of advice."""
        return len(self.linear.columns) if self.linear is not None and config.advice else 0

    def share_much(self, X: Rows, config: VAEACConfig) -> bool:
        """Whether hidden features tell so much about each other that latents are worth a warm-up.

        Much is what counts on average over coalitions, or where nothing is known: among many features that depend on each
        other, known ones soon tell the same as hidden ones would, but not all coalitions have some. Numbers that take few
        values count as levels and as numbers, because as levels they have so many columns that noise hides what they share.
        Features of many levels, which are hard to learn, must not dilute what others share.
        """
        found = [self.linear, None if self.linear is None else self.linear.without_many_levels()]
        if self.atoms.columns:
            found.append(Columns.learn(X, Atoms.none(self.atoms.n_levels), config, None).linear)
        models = [model for model in found if model is not None]
        return any(
            model.shared_information() >= _SHARED or model.shared_information(known=False) >= _SHARED_BLINDLY
            for model in models
        )

    def relearned(self, X: Rows) -> Columns:
        """Return the same columns with the linear model of other rows (n, M), shrunk as before."""
        assert self.linear is not None
        return replace(self, linear=self._learn_linear(X, self.linear.columns))

    def truncation(self) -> Floats:
        """Ends (2, Mc) between which heads draw: half a step further out for whole numbers, which are rounded."""
        reach = np.where(self.whole & (self.support[0] < self.support[1]), 0.5, 0.0)
        return np.stack([self.support[0] - reach, self.support[1] + reach])

    def check(self, X: Rows) -> Rows:
        """Refuse rows (n, M) that do not fit."""
        return check_rows(X, self.atoms.n_levels, training=False)

    def encode(self, X: Rows, device: torch.device) -> EncodedRows:
        """Encode rows (n, M) on every scale."""
        return EncodedRows.of(self.layout, list(self.scales.values()), self.atoms.encode(X), device)

    def scale_of(self, members: Sequence[str], device: torch.device) -> Tensor:
        """Position of each member's scale, (E,)."""
        names = list(self.scales)
        return torch.tensor([names.index(member) for member in members], device=device)

    def floors_of(self, members: Sequence[str], device: torch.device) -> Tensor:
        """Floors of each member, (E, Mc) float32."""
        return torch.from_numpy(np.stack([self.floors[member] for member in members])).float().to(device)

    def log_slopes(self, X: Rows) -> Floats:
        """Log-slopes of all scales at rows (n, M), (n_scales, n, Mc)."""
        return np.stack([scale.log_slopes(_numbers(X, self.layout)) for scale in self.scales.values()])


def _numbers(X: Rows, layout: Layout) -> Rows:
    return X[:, list(layout.order)[: layout.n_continuous]]


def check_support(support: Floats, X: Rows, n_levels: Indices) -> Floats:
    """Ends (2, M) of the columns, NaN where none is declared, once they hold all training rows (N, M)."""
    bounds = np.asarray(support, dtype=np.float64)
    if bounds.shape != (2, X.shape[1]):
        raise OptionError(f"support must have shape (2, {X.shape[1]}), least values first, got {bounds.shape}.")
    outside = (n_levels == 0) & ((bounds[0] > X) | (bounds[1] < X)).any(axis=0)
    if outside.any():
        raise OptionError(
            f"support must hold all training rows, least values first, but rows lie outside in columns "
            f"{np.flatnonzero(outside).tolist()[:5]}. Declare a wider support there, -inf or inf for no end."
        )
    return bounds


def _whole_floors(scale: Scale, X: Rows, whole: Bools) -> Floats:
    """Least standard deviations (Mc,) for whole numbers on an uneven scale: a step where most rows are, over sqrt(12).

    Logarithms of large counts lie close together; a head as narrow as the steps between those would make a spike of zero.
    """
    if not whole.any():
        return np.zeros(len(whole))
    log_steps = np.nanmedian(scale.log_slopes(X), axis=0)
    return np.where(whole, np.exp(np.minimum(log_steps - log(12) / 2, 0.0)), 0.0)  # at most 1


def _ends(declared: Floats, seen: Floats, whole: Bools) -> Floats:
    """Least and largest values to be drawn, (2, Mc): those seen in training where none are declared (NaN).

    Whole numbers up to the ends. Otherwise an end that no training row holds is not drawn either, so that a column
    declared as (0, inf) stays positive: draws stop short of it, at 1e-6 of the way to the nearest training value.
    """
    with np.errstate(invalid="ignore"):
        short = declared + (_SHORT * seen - _SHORT * declared)  # in this order nothing overflows
        inner = np.where((short == declared) & (seen != declared), np.nextafter(declared, seen), short)
    drawn = np.where(whole | np.isinf(declared), declared, inner)
    return np.where(np.isnan(declared), seen, drawn)
