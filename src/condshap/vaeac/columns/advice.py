r"""Known columns -> what a linear model expects of the hidden ones, as further inputs of the encoders.

A network that has to find linear dependence by itself needs many rows for it, and where columns nearly repeat each other it
may never get there. So it is told: for every set of known features the conditional means of all hidden input columns,

.. math::

    E[x_u \mid x_k] = \mu_u + \Sigma_{uk} \Sigma_{kk}^{-1} (x_k - \mu_k),

by the covariance of the encoded columns, one-hot ones included (theirs are linear probabilities), shrunk towards its
diagonal. It comes as a deviation from the column means, and is zero for known columns. A missing value counts as hidden.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from condshap.seeding import generator
from condshap.types import Floats, Indices, Masks

_SHARES = (0.0, 1e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.2, 0.4, 0.7, 1.0)
_RIDGE = 1e-5  # of the mean variance: one-hot columns of a feature are linearly dependent
_FOLDS, _MASKS, _ROWS = 5, 16, 2000
_SETS = 128
_MANY_LEVELS = 12
_MOST_COLUMNS, _MOST_WIDE, _MOST_SETS = 512, 128, 4096  # columns of all features, and if some of them are wide
_LARGEST = 2**29  # bytes of tables that are kept
_WIDE_FEATURE, _WIDE = 40, 96  # columns of a feature, and of all, beyond which rows are mostly zeros
_SOLVED, _LEFT = 2**21, 2**24  # numbers in the matrices that are solved, or whose determinants are taken, at once
_GATHERED = 2**22  # numbers in the tables that are looked up at once
_COUNTED = 12  # features up to which a set of them is looked up by its number


@dataclass(frozen=True, slots=True, eq=False)
class LinearModel:
    """What a linear model knows of encoded columns, on each of S scales.

    Attributes
    ----------
    means, covariances : (S, D) and (S, D, D), for D of the encoded columns
    columns, features : (D,) positions of these columns, and the feature behind each
    shares : (S,) of the diagonal in the covariances; (S, 2) where some features have many levels, the second one for these
    """

    means: Floats
    covariances: Floats
    columns: Indices
    features: Indices
    shares: Floats

    @classmethod
    def learn(
        cls,
        inputs: npt.NDArray[Any],
        missing: Masks,
        features: Indices,
        columns: Indices | None = None,
        shares: Floats | None = None,
    ) -> LinearModel:
        """Learn from encoded rows (S, N, D1), zero where `missing` (N, M) says so; `features` (D1,) are behind columns.

        The share of the diagonal is the one that predicts held-out rows best, over random sets of known features.
        """
        columns = few_columns(features) if columns is None else columns
        features = features[columns]
        hidden, scales = missing[:, features], inputs[..., columns].astype(np.float64)
        if shares is None:
            shares = np.array([_best_shares(x, hidden, features) for x in scales])
        moments = [_moments(x, hidden) for x in scales]
        covariances = [_shrunk(covariance, own, features) for (_, covariance), own in zip(moments, shares, strict=True)]
        return cls(np.stack([mean for mean, _ in moments]), np.stack(covariances), columns, features, shares)

    def tables(self, known: Masks) -> Floats:
        """Coefficients (n, S, D, D) of sets of known features (n, M), of hidden columns on known ones."""
        columns = known[:, self.features]
        found = [coefficients(covariance, columns) for covariance in self.covariances]
        return np.stack(found, axis=1)

    def without_many_levels(self) -> LinearModel | None:
        """Return the same without features of many levels; None if there are none, or no others."""
        few = ~_has_many_levels(self.features)
        if few.all() or not few.any():
            return None
        own = self.covariances[:, few][:, :, few]
        return LinearModel(self.means[:, few], own, self.columns[few], self.features[few], self.shares)

    def shared_information(self, *, known: bool = True) -> float:
        """What hidden features tell about each other that known ones do not, in nats a hidden feature.

        The mean of (sum_f log det C_ff - log det C) / 2 over sets of known features, C the covariance of the hidden columns
        given those and C_ff that of the columns of one feature; the largest over scales. It is what latents have to carry.
        All sets count alike; from eight features on some are drawn. Without `known` ones everything is hidden.
        """
        M = int(self.features.max()) + 1
        sets = generator(0, "shared information").random((_SETS, M)) < 0.5
        if 2**M <= _SETS:
            sets = (np.arange(2**M)[:, None] >> np.arange(M)) % 2 == 1
        if not known:
            sets = np.zeros((1, M), dtype=bool)
        at_once = max(1, _LEFT // self.covariances.size)
        shared = sum(self._shared(sets[i : i + at_once]) for i in range(0, len(sets), at_once)) / 2
        return float(np.max(shared) / max((~sets[:, np.unique(self.features)]).sum(), 1))

    def _shared(self, sets: Masks) -> Floats:
        """Sums over sets (k, M) of twice the information, on each scale (S,)."""
        left = self._left(sets, self.tables(sets), len(self.columns))
        alone = np.where(self.features[:, None] == self.features, left, 0.0)
        return np.asarray((np.linalg.slogdet(alone)[1] - np.linalg.slogdet(left)[1]).sum(axis=0))

    def factors(self, known: Masks, tables: Floats, n_numbers: int) -> Floats:
        """Lower factors (n, S, Mc, Mc) of the hidden numbers' covariance given what is known; zero for known ones."""
        hidden = ~known[:, self.features][:, :n_numbers]
        both = (hidden[:, :, None] & hidden[:, None, :])[:, None]
        return np.asarray(np.linalg.cholesky(self._left(known, tables, n_numbers)) * both)

    def _left(self, known: Masks, tables: Floats, n: int) -> Floats:
        """Covariances (k, S, n, n) of the first n columns given sets of known features (k, M); 1 and 0 for known ones."""
        hidden = ~known[:, self.features][:, :n]
        both = (hidden[:, :, None] & hidden[:, None, :])[:, None]
        left = self.covariances[:, :n, :n] - tables[:, :, :n] @ self.covariances[:, :, :n]
        left = np.where(both, (left + left.swapaxes(2, 3)) / 2, 0.0)
        floor = _RIDGE * np.maximum(np.diagonal(self.covariances, axis1=1, axis2=2)[:, :n], 1e-12)
        left[..., range(n), range(n)] += np.where(hidden[:, None], floor * 1e-3, 1.0)
        return np.asarray(left)


def few_columns(features: Indices, n_sets: int = 1) -> Indices:
    """Columns (D,) of features that have few enough of them for matrices of all columns, those with the fewest first.

    A feature with thousands of levels would make a matrix of millions; it goes without advice. So do features that would
    make the tables of `n_sets` sets of known features too large to be kept: to make them again and again takes hours. Those
    of many levels must leave room for sets that nobody asked about, which are a part of the training masks.
    """
    most = min(_MOST_COLUMNS, isqrt(_LARGEST // (2 * 4 * min(n_sets, _MOST_SETS))))  # two scales in single precision
    counts = np.bincount(features)
    order = np.argsort(counts, kind="stable")
    limits = np.where(counts[order] <= _WIDE_FEATURE, most, min(most, _MOST_WIDE))
    kept = order[np.cumsum(counts[order]) <= limits]
    return np.flatnonzero(np.isin(features, kept))


def coefficients(covariance: Floats, known: Masks) -> Floats:
    """Coefficients (n, D, D) of hidden columns on known ones (n, D), by one covariance (D, D); zero elsewhere."""
    D = len(covariance)
    if D > _WIDE:
        return np.array([_coefficients_of_one(covariance, columns) for columns in known]).reshape(-1, D, D)
    both = known[:, :, None] & known[:, None, :]
    matrix = np.where(both, covariance, np.eye(D))
    solved = np.linalg.solve(matrix, np.where(known[:, :, None] & ~known[:, None, :], covariance, 0.0))
    return np.ascontiguousarray(solved.transpose(0, 2, 1))


def _coefficients_of_one(covariance: Floats, known: Masks) -> Floats:
    """The same (D, D) for one set (D,): a matrix of the known columns alone is quicker to solve where there are many."""
    table, seen, hidden = np.zeros(covariance.shape), np.flatnonzero(known), np.flatnonzero(~known)
    if len(seen) and len(hidden):
        solved = np.linalg.solve(covariance[np.ix_(seen, seen)], covariance[np.ix_(seen, hidden)])
        table[np.ix_(hidden, seen)] = solved.T
    return table


def _moments(x: Floats, hidden: Masks) -> tuple[Floats, Floats]:
    """Mean (D,) and covariance (D, D) of columns (N, D) from the rows where both are present."""
    there = (~hidden).astype(np.float64)
    n = np.maximum(there.sum(axis=0), 1.0)
    mean = (x * there).sum(axis=0) / n
    centred = (x - mean) * there
    covariance = centred.T @ centred / np.maximum(there.T @ there, 1.0)
    if hidden.any():  # pairs of columns have rows of their own then, and the matrix may be indefinite
        values, vectors = np.linalg.eigh(covariance)
        covariance = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return mean, covariance


def _has_many_levels(features: Indices) -> Masks:
    """Columns (D,) of features that have many of them, by the features behind columns."""
    return np.asarray(np.bincount(features)[features] > _MANY_LEVELS)


def _shrunk(covariance: Floats, shares: Any, features: Indices) -> Floats:
    """Covariance (D, D) drawn towards its diagonal, by one share for all or two: the second one for many levels.

    That is the larger one, so that no variance gets negative.
    """
    few, many = np.broadcast_to(shares, 2)
    is_many = _has_many_levels(features) & (few != many)
    share = np.where(is_many[:, None] | is_many, many, few)
    variances = np.diagonal(covariance)
    ridge = _RIDGE * max(float(variances.mean()), 1e-12)
    return np.asarray((1 - share) * covariance + np.diag(np.diagonal(share) * variances + ridge))


def _best_shares(x: Floats, hidden: Masks, features: Indices) -> Any:
    """One share for all columns, or two if some features have many levels: what these are to others is mostly noise.

    So the share of the others is found without them, and then theirs, with every feature counting alike.
    """
    many = _has_many_levels(features)
    if many.all() or not many.any():
        return _best_share(x, hidden, features, _SHARES)
    few = _best_share(x[:, ~many], hidden[:, ~many], features[~many], _SHARES)
    pairs = [(few, share) for share in _SHARES if share >= few]
    return _best_share(x, hidden, features, pairs, alike=True)


def _best_share(x: Floats, hidden: Masks, features: Indices, choices: Sequence[Any], *, alike: bool = False) -> Any:
    """Share of the diagonal with the least squared error of held-out hidden columns, in units of their variances.

    `alike`: of features, not of columns.
    """
    rng = generator(0, "advice")
    chosen = rng.permutation(len(x))[:_ROWS]
    x, hidden = x[chosen], hidden[chosen]
    M = int(features.max()) + 1
    sets = (
        np.array([rng.permutation(M) < rng.integers(1, M) for _ in range(_MASKS)]) if M > 1 else np.ones((1, 1), bool)
    )
    weights = 1 / np.sqrt(np.bincount(features)[features]) if alike else np.ones(len(features))
    losses = np.zeros(len(choices))
    n_folds = min(_FOLDS, len(x))
    for fold in range(n_folds):
        out = np.arange(len(x)) % n_folds == fold
        mean, covariance = _moments(x[~out], hidden[~out])
        scale = weights / np.sqrt(np.maximum(np.diagonal(covariance), 1e-12))
        deviations = np.where(hidden[out], 0.0, x[out] - mean)
        for i, shares in enumerate(choices):
            table = coefficients(_shrunk(covariance, shares, features), sets[:, features])
            errors = (np.einsum("sij,nj->sni", table, deviations) - deviations) * scale
            counted = ~sets[:, None, features] & ~hidden[out]
            losses[i] += float((errors**2).sum(where=counted))
    return choices[int(np.argmin(losses))]


class Adviser:
    """A linear model on a device, with tables of the sets of known features that were asked for."""

    def __init__(self, model: LinearModel, n_numbers: int, device: torch.device) -> None:
        self.model, self.device, self.n_numbers = model, device, n_numbers
        self.means64 = torch.from_numpy(model.means).to(device)  # (S, D)
        self.means = self.means64.float()
        self.features = torch.from_numpy(model.features).to(device)
        self.columns = torch.from_numpy(model.columns).to(device)
        self.blocks = _blocks(model.features)
        self.is_wide = len(model.features) > _WIDE or max(len(block) for block in self.blocks) > _WIDE_FEATURE
        self._advice = _Tables(self._coefficients)
        self._draws = _Tables(self._coefficients_and_factors)

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
        places, (tables, *constants) = self._advice.find(visible.reshape(-1, visible.shape[-1]))
        if self.is_wide:
            at = places * len(self.means) + scales
            return self._look_up(x.reshape(-1, shape[-1]), at, tables.flatten(0, 2), constants[0].flatten(0, 1)).view(
                shape
            )
        return _apply(tables.flatten(0, 1), places * len(self.means) + scales, deviations).view(shape)

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
        places, (tables, *_) = self._advice.find(torch.from_numpy(visible[None]))
        found = tables[places[0], scale].T if self.is_wide else tables[places[0], scale]
        return found.double().cpu().numpy(), self.means[scale].double().cpu().numpy()

    def conditional(self, visible: Tensor, scale: int) -> tuple[Tensor, Tensor]:
        """Coefficients (n, D, D) and factors (n, Mc, Mc), float64, for visible features (n, M) on one scale."""
        places, (tables, factors) = self._draws.find(visible)
        return tables[:, scale].index_select(0, places), factors[:, scale].index_select(0, places)

    def _coefficients(self, known: Masks) -> tuple[Tensor, ...]:
        """Single precision: rounding of the solver, which differs between machines, does not reach the networks then."""
        tables = self._tables(known)
        found = [tables]
        if self.is_wide:
            found = [tables.swapaxes(2, 3), -np.einsum("nsij,sj->nsi", tables, self.model.means)]
        return tuple(torch.from_numpy(part.astype(np.float32, order="C")).to(self.device) for part in found)

    def _coefficients_and_factors(self, known: Masks) -> tuple[Tensor, ...]:
        tables = self._tables(known)
        factors = self.model.factors(known, tables, self.n_numbers)
        return torch.from_numpy(tables).to(self.device), torch.from_numpy(factors).to(self.device)

    def _tables(self, known: Masks) -> Floats:
        n_scales, D = self.model.means.shape
        at_once = max(1, _SOLVED // (n_scales * D**2))
        return np.concatenate([self.model.tables(known[i : i + at_once]) for i in range(0, len(known), at_once)])


class _Tables:
    """Arrays by sets of known features, made when they are first asked for; all are forgotten where they get too large.

    Parameters
    ----------
    make : sets (n, M) -> tensors with a leading axis n
    """

    def __init__(self, make: Callable[[Masks], tuple[Tensor, ...]]) -> None:
        self.make = make
        self._places: dict[bytes, int] = {}
        self._tensors: tuple[Tensor, ...] = ()

    def find(self, known: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Places (n,) of sets of known features (n, M), and the tensors that they are places in."""
        sets, which = _distinct(known.to(torch.bool).cpu().numpy())
        keys = [row.tobytes() for row in sets]
        if self._places and sum(tensor[0].nbytes for tensor in self._tensors) * len(self._places) > _LARGEST:
            self._places, self._tensors = {}, ()
        new = [i for i, key in enumerate(keys) if key not in self._places]
        if new:
            first = len(self._places)
            self._tensors = _appended(self._tensors, first, self.make(sets[new]))
            self._places |= {keys[i]: first + n for n, i in enumerate(new)}
        places = np.array([self._places[key] for key in keys])
        return torch.from_numpy(places[which]).to(known.device), self._tensors


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


def _apply(tables: Tensor, places: Tensor, deviations: Tensor) -> Tensor:
    """Product of each row (n, D) with its own table; a sum per row, so that no row's bits depend on the others."""
    at_once = max(1, _GATHERED // deviations.shape[1] ** 2)
    out = torch.empty_like(deviations)
    for start in range(0, len(out), at_once):
        some = slice(start, start + at_once)
        out[some] = tables.index_select(0, places[some]).mul_(deviations[some].unsqueeze(1)).sum(2)
    return out


def _blocks(features: Indices) -> list[range]:
    """Columns of each feature, from `features` (D,) behind columns, which lie side by side."""
    ends = np.flatnonzero(np.diff(features, append=-1)) + 1
    return [range(start, end) for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def _distinct(known: Masks) -> tuple[Masks, Indices]:
    """Distinct rows of masks (n, M), and which of them each row is; by numbers where they hold all bits."""
    if known.shape[1] > 62:
        sets, which = np.unique(known, axis=0, return_inverse=True)
        return sets, which.ravel()
    numbers = known @ (1 << np.arange(known.shape[1], dtype=np.int64))
    if known.shape[1] <= _COUNTED:  # marking is quicker than sorting
        there = np.zeros(1 << known.shape[1], dtype=np.intp)
        there[numbers] = 1
        found = np.flatnonzero(there)
        there[found] = np.arange(len(found))
        return (found[:, None] >> np.arange(known.shape[1])) % 2 == 1, there[numbers]
    _, first, which = np.unique(numbers, return_index=True, return_inverse=True)
    return known[first], which
