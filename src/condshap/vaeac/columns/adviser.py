"""Rows and what is known of them -> advice: the linear model of `advice` on a device, with tables by sets of features.

A table holds the coefficients of one set of known features on one scale. Tables are made when a set is first asked for, by
NumPy on the CPU and many at once on an accelerator, and kept as long as there is room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from condshap.types import Floats, Indices, Masks
from condshap.vaeac.columns.advice import LARGEST, WIDE, WIDE_FEATURE, LinearModel

_SOLVED = {"cpu": 2**21, "cuda": 2**25}  # numbers in the matrices that are solved at once
_GATHERED = {"cpu": 2**22, "cuda": 2**25}  # numbers in the tables that are looked up at once
_COUNTED, _NUMBERED = 12, 60  # features up to which sets of them are told apart by marks, and by numbers


class Adviser:
    """A linear model on a device, with tables of the sets of known features that were asked for."""

    def __init__(self, model: LinearModel, n_numbers: int, device: torch.device) -> None:
        self.model, self.device, self.n_numbers = model, device, n_numbers
        self.means64 = torch.from_numpy(model.means).to(device)  # (S, D)
        self.means = self.means64.float()
        self.features = torch.from_numpy(model.features).to(device)
        self.columns = torch.from_numpy(model.columns).to(device)
        self.blocks = _blocks(model.features)
        self.is_wide = len(model.features) > WIDE or max(len(block) for block in self.blocks) > WIDE_FEATURE
        at_once = max(1, _SOLVED[device.type] // len(model.features) ** 2)
        self._advice = _Tables(self._coefficients, at_once)
        self._draws = _Tables(lambda known, scale: (self._solve(known, scale),), at_once)
        self._factors = _Tables(self._factorised, at_once)

    def __call__(self, x: Tensor, scale_of: Tensor, visible: Tensor) -> Tensor:
        """Expected deviations (..., E, B, D) of the model's columns where hidden, zero where visible.

        Parameters
        ----------
        x : (..., E, B, D1) encoded rows
        scale_of : (E,) scale of each model
        visible : (..., E, B, M), 1 where a feature is known and there
        """
        x = x.index_select(-1, self.columns) if x.shape[-1] > len(self.columns) else x
        shape = x.shape
        seen = visible.index_select(-1, self.features)
        deviations = ((x - self.means[scale_of].unsqueeze(-2)) * seen).reshape(-1, shape[-1])
        scales = scale_of.view(-1, 1).expand(shape[-3], shape[-2]).expand(shape[:-1]).reshape(-1)
        places, (tables, *constants) = self._advice.find(visible.reshape(-1, visible.shape[-1]), scales)
        if self.is_wide:
            return self._look_up(x.reshape(-1, shape[-1]), places, tables.flatten(0, 1), constants[0]).view(shape)
        return self._apply(tables, places, deviations).view(shape)

    def _apply(self, tables: Tensor, places: Tensor, deviations: Tensor) -> Tensor:
        """Product of each row (n, D) with its own table; a sum per row, so that no row's bits depend on the others."""
        at_once = max(1, _GATHERED[self.device.type] // deviations.shape[1] ** 2)
        out = torch.empty_like(deviations)
        for start in range(0, len(out), at_once):
            some = slice(start, start + at_once)
            out[some] = tables.index_select(0, places[some]).mul_(deviations[some].unsqueeze(1)).sum(2)
        return out

    def _look_up(self, x: Tensor, at: Tensor, effects: Tensor, constants: Tensor) -> Tensor:
        """The same advice (n, D) for rows x (n, D) where most columns are zero: the effects of those that are not.

        Parameters
        ----------
        at : (n,) which of T tables
        effects, constants : (T D, D) what one more of each column adds, zero for hidden ones; (T, D) what all zeros give
        """
        out, start = constants.index_select(0, at), at * x.shape[1]
        for block in self.blocks:
            if len(block) == 1:
                out.addcmul_(effects.index_select(0, start + block[0]), x[:, block[0], None])
            else:
                out.add_(effects.index_select(0, start + block[0] + x[:, block[0] : block[-1] + 1].argmax(dim=1)))
        return out

    def table(self, visible: Masks, scale: int) -> tuple[Floats, Floats]:
        """Coefficients (D, D) of the advice, for visible features (M,) on one scale, and the means (D,) of columns."""
        places, (tables, *_) = self._advice.find(torch.from_numpy(visible[None]), torch.tensor([scale]))
        found = tables[places[0]].T if self.is_wide else tables[places[0]]
        return found.double().cpu().numpy(), self.means[scale].double().cpu().numpy()

    def coefficients(self, visible: Tensor, scale: int, own: slice) -> Tensor:
        """Coefficients (n, L, D), float64, of L columns `own` for visible features (n, M) on one scale."""
        places, (tables,) = self._draws.find(visible, self._on(visible, scale))
        n, D = len(places), tables.shape[1]
        rows = (places * D).unsqueeze(1) + torch.arange(own.start, own.stop, device=places.device)
        return tables.flatten(0, 1).index_select(0, rows.reshape(-1)).view(n, -1, D)

    def factors(self, visible: Tensor, scale: int) -> tuple[Tensor, Tensor]:
        """Factors of the hidden numbers' covariance given what is visible: (n, Mc, Mc) below the diagonal, (n, Mc) on it."""
        places, (below, diagonal) = self._factors.find(visible, self._on(visible, scale))
        return below.index_select(0, places), diagonal.index_select(0, places)

    def _on(self, visible: Tensor, scale: int) -> Tensor:
        return torch.full((len(visible),), scale, device=visible.device)

    def _coefficients(self, known: Masks, scale: int) -> tuple[Tensor, ...]:
        """Single precision: rounding of the solver, which differs between machines, does not reach the networks then."""
        tables = self._solve(known, scale)
        found = [tables]
        if self.is_wide:
            found = [tables.transpose(1, 2), -(tables @ self.means64[scale])]
        return tuple(part.float().contiguous() for part in found)

    def _factorised(self, known: Masks, scale: int) -> tuple[Tensor, ...]:
        tables = self._solve(known, scale)
        if self.device.type == "cpu":
            factors = torch.from_numpy(self.model.factors(known, tables.numpy(), scale, self.n_numbers))
        else:
            least = torch.from_numpy(self.model.least_left(scale)).to(self.device)
            factors = batched_factors(tables, self._covariance(scale), self._known(known), least, self.n_numbers)
        return factors.tril(-1), factors.diagonal(dim1=1, dim2=2).contiguous()

    def _solve(self, known: Masks, scale: int) -> Tensor:
        if self.device.type == "cpu":
            return torch.from_numpy(self.model.tables(known, scale))
        return batched_coefficients(self._covariance(scale), self._known(known))

    def _covariance(self, scale: int) -> Tensor:
        return torch.from_numpy(self.model.covariances[scale]).to(self.device)

    def _known(self, known: Masks) -> Tensor:
        """Columns (n, D) of sets of features (n, M)."""
        return torch.from_numpy(known[:, self.model.features]).to(self.device)


def batched_coefficients(covariance: Tensor, known: Tensor) -> Tensor:
    """Do what `LinearModel.tables` does, for columns (D, D) and sets of them (n, D), by torch: (n, D, D)."""
    rows, columns = known.unsqueeze(2), known.unsqueeze(1)
    matrix = torch.where(
        rows & columns, covariance, torch.eye(len(covariance), dtype=covariance.dtype, device=known.device)
    )
    crossing = torch.where(rows & ~columns, covariance, torch.zeros_like(covariance))
    return torch.cholesky_solve(crossing, torch.linalg.cholesky(matrix)).transpose(1, 2).contiguous()


def batched_factors(tables: Tensor, covariance: Tensor, known: Tensor, least: Tensor, n: int) -> Tensor:
    """Do what `LinearModel.factors` does, for the first n columns given sets of known ones (k, D), by torch: (k, n, n)."""
    hidden = ~known[:, :n]
    both = hidden.unsqueeze(2) & hidden.unsqueeze(1)
    left = covariance[:n, :n] - tables[:, :n] @ covariance[:, :n]
    left = torch.where(both, (left + left.transpose(1, 2)) / 2, torch.zeros_like(left))
    left.diagonal(dim1=1, dim2=2).add_(torch.where(hidden, least[:n], torch.ones_like(least[:n])))
    factors: Tensor = torch.linalg.cholesky(left)
    return factors * both


class _Tables:
    """Arrays by sets of known features and scales, made when they are first asked for.

    Where they get too large, those that were asked for only once are forgotten, as random sets of many features are; and all
    of them, if the others still take more than half of the room.

    Parameters
    ----------
    make : sets (n, M), a scale -> tensors with a leading axis n
    at_once : most sets that are made together
    """

    def __init__(self, make: Callable[[Masks, int], tuple[Tensor, ...]], at_once: int) -> None:
        self.make, self.at_once = make, at_once
        self._places: dict[bytes, int] = {}
        self._asked: Counter[bytes] = Counter()
        self._tensors: tuple[Tensor, ...] = ()

    def find(self, known: Tensor, scales: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Places (n,) of sets of known features (n, M) on scales (n,), and the tensors that they are places in."""
        sets, on = known.to(torch.bool).cpu().numpy(), scales.cpu().numpy()
        first, which = _distinct(sets, on)
        sets, on = sets[first], on[first]
        keys = [row.tobytes() for row in _packed(sets, on)]
        self._make_room()
        new = np.array([i for i, key in enumerate(keys) if key not in self._places], dtype=np.intp)
        for scale in np.unique(on[new]):
            own = new[on[new] == scale]
            for some in np.split(own, range(self.at_once, len(own), self.at_once)):
                start = len(self._places)
                self._tensors = _appended(self._tensors, start, self.make(sets[some], int(scale)))
                self._places |= {keys[i]: start + n for n, i in enumerate(some)}
        self._asked.update(keys)
        places = np.array([self._places[key] for key in keys])
        return torch.from_numpy(places[which]).to(known.device), self._tensors

    def _make_room(self) -> None:
        of_one = sum(tensor[0].nbytes for tensor in self._tensors)
        if of_one * len(self._places) <= LARGEST:
            return
        kept = [key for key in self._places if self._asked[key] > 1]
        if of_one * len(kept) > LARGEST // 2:
            kept = []
        at = torch.tensor([self._places[key] for key in kept], dtype=torch.long, device=self._tensors[0].device)
        with torch.inference_mode(mode=False):
            self._tensors = tuple(tensor.index_select(0, at) for tensor in self._tensors) if kept else ()
        self._places, self._asked = {key: place for place, key in enumerate(kept)}, Counter()


def _appended(tensors: tuple[Tensor, ...], n: int, new: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Tensors with new entries behind the first n; room for as many again, so that not every entry moves all others."""
    end = n + len(new[0])
    with torch.inference_mode(mode=False):  # draws make tables that are written into elsewhere, too
        if not tensors:
            return tuple(part.clone() for part in new)
        if end > len(tensors[0]):
            tensors = tuple(torch.cat([old[:n], old.new_empty((end, *old.shape[1:]))]) for old in tensors)
        for tensor, part in zip(tensors, new, strict=True):
            tensor[n:end] = part
    return tensors


def _blocks(features: Indices) -> list[range]:
    """Columns of each feature, from `features` (D,) behind columns, which lie side by side."""
    ends = np.flatnonzero(np.diff(features, append=-1)) + 1
    return [range(start, end) for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def _packed(known: Masks, scales: Indices) -> npt.NDArray[np.uint8]:
    """Masks (n, M) and scales (n,) in as few bytes as there can be, (n, B)."""
    return np.column_stack([np.packbits(known, axis=1), scales.astype(np.uint8)])


def _distinct(known: Masks, scales: Indices) -> tuple[Indices, Indices]:
    """One row of each kind among masks (n, M) with scales (n,), and which kind each row is of."""
    M = known.shape[1]
    if M > _NUMBERED:
        packed = _packed(known, scales)
        names = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
        _, first, which = np.unique(names, return_index=True, return_inverse=True)
        return first, which
    numbers = known @ (1 << np.arange(M, dtype=np.int64)) + (scales.astype(np.int64) << M)
    if M > _COUNTED:
        _, first, which = np.unique(numbers, return_index=True, return_inverse=True)
        return first, which
    rows = np.full((int(scales.max(initial=0)) + 1) << M, -1)  # marking is quicker than sorting
    rows[numbers] = np.arange(len(numbers))
    found = np.flatnonzero(rows >= 0)
    first = rows[found]
    rows[found] = np.arange(len(found))
    return first, rows[numbers]
