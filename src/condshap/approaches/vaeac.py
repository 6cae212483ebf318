"""One variational autoencoder with arbitrary conditioning for all coalitions: schema -> vaeac/, draws -> encoded rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from condshap.approaches.base import ALL_KINDS, Capabilities, DrawnRows, Outcomes, State
from condshap.coalitions import CoalitionPlan
from condshap.numerics.additive import AdditiveFunction
from condshap.options import check_choice, check_device
from condshap.schema import FeatureSchema, Kind
from condshap.storage.plain_values import restore_values, restored_options, store_values, stored_options
from condshap.types import Floats, Masks, Outputs, RowKeys, Rows
from condshap.vaeac.config import in_new_words
from condshap.vaeac.options import VAEACOptions

if TYPE_CHECKING:
    from condshap.numerics.device_draws import DeviceDraws
    from condshap.vaeac.mixture import Mixture

_PAPER_SAMPLES = 250
_MOST_ROWS = 2**18  # encoded on every scale, these are some hundred MiB


@dataclass(kw_only=True, repr=False, eq=False)  # writes the constructor, see `condshap.vaeac.config.VAEACFields`
class VAEAC(VAEACOptions):
    """An ensemble of small networks that learns all conditional distributions at once; features of any kind.

    Rows may have missing values, both in training and when explained. Unknown features are always drawn. Known features that
    are missing stay missing if the model accepts gaps, and are drawn if it does not. Of more than 262,144 training rows, a
    random part of that size is used.

    Parameters
    ----------
    depth, width, latent, ..., refit : see `condshap.vaeac.config.VAEACConfig`; None means "from the data"
    device : "cpu", "cuda" or "auto", which uses the accelerator if there is one
    shrink : shrink the contribution function towards independence, v = v_I + trust (v_networks - v_I), by a factor that is
        learned on held-out rows, see `condshap.vaeac.votes`
    exact_repeats : learn only one of several columns that repeat each other exactly, numbers up to a line (Celsius and
        Fahrenheit) and levels up to their names; the others follow from it. Where one column determines another (the city
        its country), draws keep to it. Not for columns named in `support`
    support : column -> (least, largest) value that draws may take, e.g. ``{"income": (0, inf)}``; the training range for
        columns that are not named. With "support" in `scales` it also decides on logarithms and logits
    fill_missing : draw known features that are missing, True or False; "auto" finds out in `fit` if the model accepts gaps
    progress : show epochs, the best one so far and the time left, True or False; "auto" in a terminal or notebook

    Attributes
    ----------
    networks_ : the trained networks
    votes_ : (2 + L,) how much the networks, L linear members and blind draws count, see `condshap.vaeac.votes`
    repeats_ : how columns follow from those that are learned, see `condshap.vaeac.columns.repeats`; None where none does
    hierarchies_ : which columns determine others, see `condshap.vaeac.columns.hierarchies`; None where none does
    fills_missing_ : bool
        Whether known features that are missing are drawn.

    Notes
    -----
    Section 3 of the paper; `VAEAC.paper` has its settings. Where not all subsets of features are asked for, the training
    masks follow the coalitions of the plan (VAEAC_C, Section 3.4), each as the complement of S.
    """

    name: ClassVar[str] = "vaeac"
    supports: ClassVar[frozenset[Kind]] = ALL_KINDS
    handles_missing: ClassVar[bool] = True
    needs_model: ClassVar[bool] = True  # to find out whether it accepts gaps

    shrink: bool = True
    exact_repeats: bool = True
    support: Mapping[str, tuple[float, float]] | None = None
    fill_missing: bool | str = "auto"
    progress: bool | str = "auto"

    @classmethod
    def paper(cls, **overrides: Any) -> Self:
        """Return the paper's method: one network, plain draws, 250 samples, no shrinkage; single options may be changed."""
        return super().paper(**{"shrink": False, "exact_repeats": False, **overrides})

    @property
    def trust_(self) -> float:
        """Share of the distribution that depends on what is known; the rest is the networks' marginal one."""
        return float(1.0 - self.votes_[-1])

    @property
    def capabilities(self) -> Capabilities:
        """250 samples as in the paper where draws are plain; by coalition size where they are quasi-Monte Carlo."""
        return Capabilities(
            default_samples=_PAPER_SAMPLES if self.draws == "plain" else None,
            draws_on_device=True,
            knows_error=self._error_factor is not None,
            expects=True,
            draws_each=True,
            starts_chains=True,
            is_storable=True,
            checks_options=True,
            fills_missing=vars(self).get("fills_missing_", False),
            most_rows=_MOST_ROWS,
            leaves_open=("device", "progress"),
            packages=("torch",),
        )

    def check_options(self, X: Rows, schema: FeatureSchema, *, plan: CoalitionPlan) -> None:
        """Refuse options outside their range, and a support that does not hold rows (N, M)."""
        from condshap.vaeac.columns.by_name import as_support
        from condshap.vaeac.training.masks import make_scheme

        config = self.config
        check_device(self.device)
        check_choice("fill_missing", self.fill_missing, ("auto", True, False))
        check_choice("progress", self.progress, ("auto", True, False))
        check_choice("exact_repeats", self.exact_repeats, (True, False))
        is_level = np.array([feature.levels is not None for feature in schema.features])
        as_support(self.support or {}, schema.names, is_level, X)
        if config.masking == "by_size":
            make_scheme("by_size", len(schema), size_probabilities=config.size_probabilities)

    def fit(
        self,
        X: Rows,
        schema: FeatureSchema,
        *,
        plan: CoalitionPlan,
        seed: int,
        predict: Callable[[Rows], Outputs] | None = None,
    ) -> VAEAC:
        """Train the networks on rows (N, M); `predict` is only asked whether it accepts missing values."""
        from condshap.vaeac.columns.by_name import as_support
        from condshap.vaeac.columns.hierarchies import Hierarchies
        from condshap.vaeac.columns.repeats import Repeats
        from condshap.vaeac.companions import Companions
        from condshap.vaeac.ensemble import Networks
        from condshap.vaeac.training.checkpoint import MaskQuery
        from condshap.vaeac.training.progress import training_line
        from condshap.vaeac.votes import learn_votes, only_networks

        fill = check_choice("fill_missing", self.fill_missing, ("auto", True, False))
        networks = Networks(self.config, device=self.device)
        n_levels = [len(feature.levels or ()) for feature in schema.features]
        support = as_support(self.support or {}, schema.names, np.array(n_levels) > 0, X)
        coalitions, probabilities = plan.mask_distribution()
        declared = {schema.names.index(name) for name in self.support or {}}
        self.repeats_ = Repeats.find(X, n_levels, apart=declared) if self.exact_repeats else None
        learned = X
        if self.repeats_ is not None:
            kept = self.repeats_.kept
            learned, support, n_levels = self.repeats_.reduce_rows(X), support[:, kept], [n_levels[j] for j in kept]
            coalitions, probabilities = _hiding(self.repeats_.reduce_masks(coalitions), probabilities)
            declared = {place for place, j in enumerate(kept) if j in declared}
        self.hierarchies_ = Hierarchies.find(learned, apart=declared) if self.exact_repeats else None
        asks_for_all = len(plan.masks) == 2 ** len(schema)
        with training_line(check_choice("progress", self.progress, ("auto", True, False))) as report:
            self.networks_ = networks.fit(
                learned,
                n_levels,
                masks=None if asks_for_all else MaskQuery.of(coalitions, probabilities),
                support=support,
                seed=seed,
                progress=report,
            )
        self.companions_ = Companions.learn(self.networks_, learned, seed=seed)
        self.votes_ = only_networks(self.companions_)
        if self.shrink:
            self.votes_ = learn_votes(self.networks_, self.companions_, learned, coalitions, probabilities, seed=seed)
        self.fills_missing_ = predict is not None and not _accepts_gaps(predict, X) if fill == "auto" else bool(fill)
        return self

    @property
    def _mixture(self) -> Mixture:
        from condshap.vaeac.mixture import Mixture

        return Mixture(self.networks_, self.companions_, self.votes_, self.repeats_, self.hierarchies_)

    @property
    def _error_factor(self) -> float | None:
        return 1.0 if self.draws == "plain" else None

    def sample(self, X: Rows, masks: Masks, n_samples: int, *, keys: RowKeys, seed: int) -> DrawnRows:
        """Draw x_unknown | x_known, shape (C, R, K, M); members of the ensemble share the samples out.

        The distribution is the mixture of the networks, linear members and blind draws by `votes_`.
        """
        fill = self.fills_missing_
        rows = self._mixture.sample(X, masks, n_samples, keys=keys, seed=seed, fill_missing=fill)
        return self._as_samples(rows, masks)

    def sample_start(self, X: Rows, mask: Masks, n_samples: int, *, keys: RowKeys, seed: int) -> DrawnRows:
        """Draw as `sample` does, up to rounding, the way of `sample_each`: where levels are known alone it costs less."""
        fill = self.fills_missing_
        rows = self._mixture.sample_start(X, mask, n_samples, keys=keys, seed=seed, fill_missing=fill)
        return self._as_samples(rows, mask[None])

    def _as_samples(self, rows: Floats, masks: Masks) -> DrawnRows:
        """Draws (C, R, K, M) with what is known about them."""
        mixture, K = self._mixture, rows.shape[2]
        every = _for_all_pairs(mixture.weights(K), rows.shape[:3])
        return DrawnRows(rows, every, self._error_factor, mixture.may_repeat(masks, K), mixture.members(K))

    def sample_each(self, X: Rows, mask: Masks, *, keys: RowKeys, seed: int) -> Rows:
        """Draw once for each of the rows (R, K, M), the k-th of a pair by the member that draws the k-th sample."""
        return self._mixture.sample_each(X, mask, keys=keys, seed=seed, fill_missing=self.fills_missing_)

    def sample_on(self, X: Rows, masks: Masks, n_samples: int, *, keys: RowKeys, seed: int, device: str) -> DeviceDraws:
        """Draw the same and leave it on the device."""
        import torch

        from condshap.numerics.device_draws import DeviceDraws

        mixture, fill = self._mixture, self.fills_missing_
        rows = mixture.sample(X, masks, n_samples, keys=keys, seed=seed, fill_missing=fill, device=device)
        weights = mixture.weights(n_samples)
        every = None if weights is None else torch.as_tensor(weights, device=device)
        return DeviceDraws(rows, every, self._error_factor, mixture.members(n_samples))

    def expect(
        self, X: Rows, masks: Masks, n_samples: int, *, function: AdditiveFunction, keys: RowKeys, seed: int
    ) -> Outcomes:
        """Means and probabilities of the decoder in place of its draws, shape (C, R, K, O); only latents are random.

        Where columns follow from others, draws themselves.
        """
        mixture, fill = self._mixture, self.fills_missing_
        values = mixture.expect(function, X, masks, n_samples, keys=keys, seed=seed, fill_missing=fill)
        every = _for_all_pairs(mixture.weights(n_samples), values.shape[:3])
        return Outcomes(values, every, self._error_factor, mixture.members(n_samples))

    def to_state(self) -> State:
        """Store the networks, and whatever else was learned."""
        arrays, about = self.networks_.to_state()
        networks = State(arrays, {"about": about}).named("networks")
        apart = ("networks_", "companions_", "repeats_", "hierarchies_")
        others = {name: value for name, value in vars(self).items() if name.endswith("_") and name not in apart}
        if self.companions_.neighbours is not None:
            others["lenders"] = self.companions_.neighbours.rows
        others["repeats"] = None if self.repeats_ is None else asdict(self.repeats_)
        if self.hierarchies_ is not None:
            others["hierarchies"] = asdict(self.hierarchies_)
        learned = store_values(others, f"approach '{self.name}'").named("learned")
        return stored_options(self).joined(networks).joined(learned)

    @classmethod
    def from_state(cls, state: State, *, predict: Callable[[Rows], Outputs] | None = None) -> Self:  # noqa: ARG003
        """Inverse of `to_state`."""
        from condshap.vaeac.columns.hierarchies import Hierarchies
        from condshap.vaeac.columns.repeats import Repeats
        from condshap.vaeac.companions import Companions
        from condshap.vaeac.ensemble import Networks

        approach, stored = cls(**in_new_words(restored_options(state))), state.part("networks")
        approach.networks_ = Networks.from_state(stored.arrays, stored.facts["about"], device=approach.device)
        learned = restore_values(state.part("learned"))
        approach.companions_ = Companions.of(approach.networks_, learned.pop("lenders", None))
        repeats = learned.pop("repeats")
        approach.repeats_ = None if repeats is None else Repeats(**repeats)
        hierarchies = learned.pop("hierarchies", None)
        approach.hierarchies_ = None if hierarchies is None else Hierarchies(**hierarchies)
        for name, value in learned.items():
            setattr(approach, name, value)
        return approach


def _hiding(masks: Masks, probabilities: Floats) -> tuple[Masks, Floats]:
    """Those of the coalitions (C, m) that hide something, and how often each of them is asked for, (C,)."""
    some = ~masks.all(axis=1)
    return masks[some], probabilities[some] / probabilities[some].sum()


def _for_all_pairs(weights: Floats | None, shape: tuple[int, ...]) -> Floats | None:
    """Weights (K,) of samples as (C, R, K), None where all are equal."""
    return None if weights is None else np.broadcast_to(weights, shape)


def _accepts_gaps(predict: Callable[[Rows], Outputs], X: Rows) -> bool:
    """Try the model on one row per feature with that feature missing.

    Where training rows (N, M) have gaps, only the features that have some there are tried: gaps elsewhere are not expected.
    """
    gaps = np.isnan(X)
    tried = np.flatnonzero(gaps.any(axis=0)) if gaps.any() else np.arange(X.shape[1])
    rows = np.repeat(X[[int(gaps.sum(axis=1).argmin())]], len(tried), axis=0)
    rows[np.arange(len(tried)), tried] = np.nan
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return bool(np.isfinite(predict(rows)).all())
    except Exception:  # whatever a model does with what it cannot read
        return False


APPROACH = VAEAC
