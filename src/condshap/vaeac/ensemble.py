"""The network with its own fit, sample, impute and log_likelihood; knows nothing about Shapley values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from condshap.exceptions import NotFittedError, OptionError, SchemaError
from condshap.numerics.additive import AdditiveFunction
from condshap.seeding import derive_seed, row_keys
from condshap.types import Floats, Indices, Masks, RowKeys, Rows
from condshap.vaeac.columns.adviser import Adviser
from condshap.vaeac.columns.atoms import Atoms
from condshap.vaeac.columns.encoded_rows import EncodedRows
from condshap.vaeac.columns.encoding import check_rows
from condshap.vaeac.columns.learned import Columns, check_support
from condshap.vaeac.config import VAEACConfig
from condshap.vaeac.network.layers import Parameters
from condshap.vaeac.sampling.decoder import Ensemble
from condshap.vaeac.sampling.densities import log_likelihood
from condshap.vaeac.sampling.draws import sample
from condshap.vaeac.sampling.expectations import expect
from condshap.vaeac.sampling.linear_member import LinearMember
from condshap.vaeac.sampling.singles import SingleDrawer
from condshap.vaeac.sampling.tiles import Asked, Query, member_shares
from condshap.vaeac.state import Fitted, network_shape, restore, store
from condshap.vaeac.threads import single_threaded_torch
from condshap.vaeac.training.best_weights import Trained
from condshap.vaeac.training.checkpoint import Checkpoint, MaskQuery, digest
from condshap.vaeac.training.steps import Task
from condshap.vaeac.training.trainer import Progress, Trainer, refit
from condshap.vaeac.validation import History


class Networks:
    """An ensemble of variational autoencoders with arbitrary conditioning: p(x_unknown | x_known) for every subset at once.

    Parameters
    ----------
    config : choices; by default those that fit the data, see `VAEACConfig.resolve`
    device : "cpu", "cuda" or "auto"

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(60, 3))
    >>> model = Networks(VAEACConfig(epochs=2)).fit(rows, n_levels=[0, 0, 0])
    >>> model.sample(rows[:2], np.array([[True, False, False]]), 8).shape
    (1, 2, 8, 3)

    Notes
    -----
    Section 3 and appendix C of the paper. Rows are encoded: numbers as they are, levels as codes 0, 1, ..., NaN for gaps.
    Masks are coalitions, True = known.
    """

    def __init__(self, config: VAEACConfig | None = None, *, device: str = "cpu") -> None:
        self.config = config or VAEACConfig()
        self.device = device
        self._ensembles: dict[Any, Any] = {}
        self._adviser: Adviser | None = None

    @classmethod
    def paper(cls, *, device: str = "cpu", **overrides: Any) -> Networks:
        """Return the paper's network, with single settings changed."""
        return cls(VAEACConfig.paper(**overrides), device=device)

    def fit(
        self,
        X: Rows,
        n_levels: npt.ArrayLike,
        *,
        masks: MaskQuery | None = None,
        support: Floats | None = None,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> Networks:
        """Learn from training rows.

        Parameters
        ----------
        X : (N, M) encoded rows
        n_levels : (M,) number of levels, 0 for continuous features
        masks : which features will be known, and which of them together; by default any of them
        support : (2, M) least and largest value of each feature, which no draw leaves; -inf and inf where there is no end.
            By default, and where it is NaN, those of the training rows. An end that no training row holds is not drawn, so
            (0, inf) is positive
        progress : called after every epoch with (epoch, epochs, VLB, IWAE)
        """
        counts = np.asarray(n_levels, dtype=np.intp)
        X = check_rows(X, counts, training=True)
        checked = None if support is None else check_support(support, X, counts)
        atoms = Atoms.learn(X, counts, checked) if self.config.respect_support else Atoms.none(counts)
        config = self.config.resolve(len(X), X.shape[1], has_continuous=bool((atoms.inner_levels == 0).any()))
        masks = masks or MaskQuery.of()
        columns = Columns.learn(X, atoms, config, checked, n_sets=len(masks.coalitions) or 2 ** X.shape[1])
        config = config.warmed_up(len(X), share_much=columns.share_much(X, config))
        with single_threaded_torch():
            trainer = self._trainer(X, columns, config, masks, derive_seed(seed, "vaeac training"), progress)
            trained = trainer.fit()
            if config.refit:
                trained = refit(trainer, trained)
        return self._learned(trained, config, columns, masks)

    def continue_training(self, X: Rows, epochs: int, *, progress: Progress | None = None) -> Networks:
        """Train for more epochs, with the same hold-out, moments of Adam, moving average and best weights so far.

        With a constant schedule, no patience and a `kl_warmup` of your own, a epochs and then b more give the same weights
        as a + b at once on the CPU.
        A cosine schedule begins a new half wave; patience counts from here.

        Parameters
        ----------
        X : (N, M) the rows that were given to `fit`, in the same order
        epochs : how many more
        progress : called after every epoch with (epoch, epochs, VLB, IWAE)

        Notes
        -----
        A fitted model keeps what it needs; a stored one only if ``to_state(keep_optimiser=True)`` stored it.
        """
        fitted = self._fitted()
        if isinstance(epochs, bool) or not isinstance(epochs, int) or epochs < 1:
            raise OptionError(f"epochs must be an integer of at least 1, got {epochs!r}.")
        point, masks = self._training()
        X, device = fitted.columns.check(X), self.where
        point.check(X, device.type)
        config = replace(fitted.config, epochs=point.epoch + epochs)
        with single_threaded_torch():
            trained = self._trainer(X, fitted.columns, config, masks, 0, progress).resume(point, epochs)
        return self._learned(trained, config, fitted.columns, masks)

    def _trainer(
        self, X: Rows, columns: Columns, config: VAEACConfig, masks: MaskQuery, seed: int, progress: Progress | None
    ) -> Trainer:
        device, members = self.where, tuple(config.scales or ())
        has_flags = config.missing_flags and bool(np.isnan(X).any())
        task = Task(
            rows=self._encode(columns, config, X),
            config=config,
            masks=masks.scheme(config, columns.layout),
            floors=columns.floors_of(members, device),
            scale_of=columns.scale_of(members, device),
            generator=torch.Generator(device=device),
        )
        shape = network_shape(columns.layout, config, has_flags=has_flags, n_advice=columns.n_advice(config))
        return Trainer(task, shape, seed, digest(X), progress)

    def _learned(self, trained: Trained, config: VAEACConfig, columns: Columns, masks: MaskQuery) -> Networks:
        kept = tuple((config.scales or ())[m] for m in trained.members)
        self.fitted_ = Fitted(config, columns, trained.parameters.shape, kept, _numpy_weights(trained), trained.history)
        self.held_out_ = trained.held_out
        self.training_ = None if trained.checkpoint is None else (trained.checkpoint, masks)
        return self

    def _training(self) -> tuple[Checkpoint, MaskQuery]:
        if self.training_ is None:
            raise OptionError(
                "training can continue only if the optimiser was kept and the networks were not refitted on all rows. "
                "Store with to_state(keep_optimiser=True), fit with refit=False, or fit again with more epochs."
            )
        return self.training_

    @property
    def history(self) -> History:
        """VLB, IWAE and KL divergences of training."""
        return self._fitted().history

    def sample(
        self,
        X: Rows,
        masks: Masks,
        n_samples: int,
        *,
        keys: RowKeys | None = None,
        seed: int = 0,
        fill_missing: bool = False,
        blind: bool = False,
    ) -> Floats:
        """Draw the unknown features given the known ones.

        Parameters
        ----------
        X : (R, M) encoded rows
        masks : (C, M), True = known
        n_samples : K; members of an ensemble share them out
        keys : (R,) names of the rows' random streams, by default a hash of their content
        fill_missing : draw known features that are missing as well, given that they are; otherwise they stay NaN
        blind : draw with the same random numbers, but as if nothing were known; the difference shows what was learned
            about dependence

        Returns
        -------
        (C, R, K, M) float64 with known columns unchanged
        """
        return as_array(self.draw(Asked(X, masks, n_samples, keys, seed, fill_missing, blind)))

    def draw(self, asked: Asked, members: Sequence[int] | None = None) -> torch.Tensor:
        """Draw as `sample` does, with the members at these positions, and leave the draws where the networks are."""
        with single_threaded_torch():
            query = self._query(asked)
            return self._values(sample(self.as_ensemble(members), query), query)

    @property
    def draws_singles(self) -> bool:
        """Whether there is a quicker way for rows that take single points; accelerators are quick enough."""
        return self.where.type == "cpu"

    def fill_each(self, asked: Asked, member: int) -> None:
        """Draw once for each row (R, M), which takes a single point, with one member, and write that into the row."""
        X, mask = asked.X, asked.masks[0]
        is_quick = ~np.isnan(X[:, mask]).any(axis=1) & self.draws_singles
        if is_quick.any() and not is_quick.all():  # how a row is drawn must not depend on others
            for some in (np.flatnonzero(is_quick), np.flatnonzero(~is_quick)):
                own = asked.only(some)
                self.fill_each(own, member)
                X[some] = own.X
        elif not is_quick.all():
            X[:] = as_array(self.draw(asked, [member]))[0, :, 0]
        elif not mask.all():
            with single_threaded_torch():
                drawn = self._drawer(member).draw(asked)
            for j, column in zip(np.flatnonzero(~mask), drawn, strict=True):
                X[:, j] = column

    def expect(self, function: AdditiveFunction, asked: Asked) -> Floats:
        """E[function(X) | x_known, z] for K latents z, (C, R, K, O), the same latents as those of draws."""
        with single_threaded_torch():
            return expect(self.as_ensemble(), self._query(asked), function, self._fitted().columns.atoms)

    @property
    def linear_names(self) -> tuple[str, ...]:
        """Scales of the linear members that could vote."""
        columns, wanted = self._fitted().columns, self._fitted().config.linear_scales
        return () if not columns.is_linear else tuple(name for name in wanted if name in columns.scales)

    def draw_linear(self, i: int, asked: Asked) -> torch.Tensor:
        """Draw with the i-th linear member, as `draw` does with the networks."""
        columns, config, name = self._fitted().columns, self._fitted().config, self.linear_names[i]
        with single_threaded_torch():
            member = LinearMember.of(columns, config, name, self._adviser_of(columns))
            query = self._query(asked)
            return self._values(member.sample(query), query)

    def without(self, X: Rows, held: Indices) -> Networks:
        """The same with linear members that have not seen the training rows X (N, M) at positions `held`."""
        fitted = self._fitted()
        other = Networks(self.config, device=self.device)
        other.fitted_ = fitted
        if fitted.columns.linear is not None:
            left = np.delete(X, held, axis=0)
            other.fitted_ = replace(fitted, columns=fitted.columns.relearned(left))
        return other

    def shares(self, n_samples: int) -> Indices:
        """How many of K draws each member has, (E,); they stand one after the other."""
        return np.array(member_shares(len(self._fitted().members), n_samples))

    def weights(self, n_samples: int) -> Floats:
        """Weights (K,) of draws under which every member counts alike, when K is no multiple of their number."""
        shares = self.shares(n_samples)
        used = shares[shares > 0]
        return np.repeat(1 / (len(used) * used), used)

    def impute(self, X: Rows, n: int, *, keys: RowKeys | None = None, seed: int = 0) -> Floats:
        """Fill the gaps of rows (R, M) n times, (n, R, M): multiple imputation, a gap is treated like a masked feature."""
        X = self._fitted().columns.check(X)
        keys = row_keys(X) if keys is None else keys
        out = np.repeat(X[None], n, axis=0)
        patterns, which = np.unique(~np.isnan(X), axis=0, return_inverse=True)
        for i, known in enumerate(patterns):
            rows = np.flatnonzero(which.ravel() == i)
            if not known.all():
                drawn = self.sample(X[rows], known[None], n, keys=keys[rows], seed=seed)
                out[:, rows] = drawn[0].transpose(1, 0, 2)
        return out

    def log_likelihood(
        self, X: Rows, masks: Masks, *, n_draws: int = 64, keys: RowKeys | None = None, seed: int = 0
    ) -> Floats:
        """Importance-weighted estimate (IWAE) of log p(x_unknown | x_known) in units of the rows, shape (C, R)."""
        X, masks, keys = self._check_query(X, masks, keys)
        columns = self._fitted().columns
        rows, slopes = self._encode(columns, self._fitted().config, X), columns.log_slopes(X)
        with single_threaded_torch():
            return log_likelihood(self.as_ensemble(), rows, slopes, masks, n_draws, keys=keys, seed=seed)

    def to_state(self, *, keep_optimiser: bool = False) -> tuple[dict[str, npt.NDArray[Any]], str]:
        """Arrays and a JSON text from which `from_state` makes the same model again.

        `keep_optimiser` stores what `continue_training` needs, too, which makes the arrays about six times as large.
        """
        return store(self._fitted(), self.config, self._training() if keep_optimiser else None)

    @classmethod
    def from_state(cls, arrays: Mapping[str, npt.NDArray[Any]], about: str, *, device: str = "cpu") -> Networks:
        """Make a model from what `to_state` returned."""
        fitted, asked, training = restore(arrays, about)
        model = cls(asked, device=device)
        model.fitted_, model.training_ = fitted, training
        return model

    def __getstate__(self) -> dict[str, Any]:
        """Leave out tensors that can be made again."""
        return {**vars(self), "_ensembles": {}, "_adviser": None}

    def _fitted(self) -> Fitted:
        if not hasattr(self, "fitted_"):
            raise NotFittedError("a VAEAC must be fitted first. Call fit(X).")
        return self.fitted_

    def _query(self, asked: Asked) -> Query:
        """Check and encode what is asked."""
        X, masks, keys = self._check_query(asked.X, asked.masks, asked.keys)
        if asked.n_samples < 1:
            raise OptionError(f"n_samples must be at least 1, got {asked.n_samples}.")
        rows = self._encode(self._fitted().columns, self._fitted().config, X)
        same = (asked.n_samples, keys, asked.seed, asked.fill_missing, asked.blind, asked.points, asked.n_points)
        return Query(rows, X, masks, *same)

    def _values(self, drawn: torch.Tensor, query: Query) -> torch.Tensor:
        """Draws (C, R, K, M) with values in place of the codes of columns that take few."""
        atoms = self._fitted().columns.atoms
        values: torch.Tensor = atoms.decode(drawn, query.X, query.masks, fill_missing=query.fill_missing)
        return values

    def _check_query(self, X: Rows, masks: Masks, keys: RowKeys | None) -> tuple[Rows, Masks, RowKeys]:
        columns = self._fitted().columns
        X, M = columns.check(X), columns.layout.n_features
        masks = np.asarray(masks, dtype=bool)
        if masks.ndim != 2 or masks.shape[1] != M or len(masks) == 0:
            raise SchemaError(f"masks must have shape (C, {M}) with C >= 1, got {masks.shape}.")
        return X, masks, row_keys(X) if keys is None else np.asarray(keys, dtype=np.uint64)

    @property
    def where(self) -> torch.device:
        """Device that the networks are on."""
        return torch.device(("cuda" if torch.cuda.is_available() else "cpu") if self.device == "auto" else self.device)

    def _encode(self, columns: Columns, config: VAEACConfig, X: Rows) -> EncodedRows:
        """Rows as the networks read them, with an adviser where they take advice."""
        rows = columns.encode(X, self.where)
        return replace(rows, advise=self._adviser_of(columns)) if columns.n_advice(config) else rows

    def _adviser_of(self, columns: Columns) -> Adviser:
        """The linear model with its tables, which are made once."""
        device, model = self.where, columns.linear
        assert model is not None
        if self._adviser is None or self._adviser.model is not model or self._adviser.device != device:
            self._adviser = Adviser(model, columns.layout.n_continuous, device)
        return self._adviser

    def as_ensemble(self, members: Sequence[int] | None = None) -> Ensemble:
        """Members as tensors, which are made once: copying them to a device costs more than a few draws."""
        fitted, device = self._fitted(), self.where
        key = (None if members is None else tuple(members), device)
        made = self._made()
        if key not in made:
            made[key] = self._new_ensemble(fitted, device, members)
        found: Ensemble = made[key]
        return found

    def _made(self) -> dict[Any, Any]:
        """What has been made of the fitted networks."""
        if self._ensembles.get("of") is not self._fitted():
            self._ensembles = {"of": self._fitted()}
        return self._ensembles

    def _drawer(self, member: int) -> SingleDrawer:
        """Member for single rows, which is made once."""
        fitted, made = self._fitted(), self._made()
        if ("single", member) not in made:
            adviser = self._adviser_of(fitted.columns) if fitted.columns.n_advice(fitted.config) else None
            weights = {name: array[member] for name, array in fitted.weights.items()}
            made["single", member] = SingleDrawer.of(
                fitted.columns, fitted.config, fitted.members[member], weights, adviser
            )
        found: SingleDrawer = made["single", member]
        return found

    def _new_ensemble(self, fitted: Fitted, device: torch.device, members: Sequence[int] | None) -> Ensemble:
        chosen = list(range(len(fitted.members)) if members is None else members)
        parameters = Parameters(fitted.shape, len(chosen), device)
        for name, window in parameters.windows(parameters.flat).items():
            window.copy_(torch.from_numpy(fitted.weights[name][chosen]))
        return Ensemble.of(parameters, [fitted.members[e] for e in chosen], fitted.columns, fitted.config)


def as_array(drawn: torch.Tensor) -> Floats:
    """Draws of any shape as an array, wherever they are."""
    return drawn.cpu().numpy()


def _numpy_weights(trained: Trained) -> dict[str, npt.NDArray[np.float32]]:
    windows = trained.parameters.windows(trained.parameters.flat)
    return {name: window.cpu().numpy().copy() for name, window in windows.items()}
