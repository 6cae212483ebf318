"""Mixed data: equicorrelated normals, the first of them cut into levels (Section 4.3 and Appendix E.2 of the paper)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pandas as pd
from scipy.special import ndtr

from condshap.exceptions import OptionError, listing
from condshap.numerics.sobol import normal_nets, power_of_two_at_least
from condshap.schema import FeatureSchema
from condshap.seeding import derive_seed, generator, row_keys, stream_words
from condshap.studies.designs import base
from condshap.studies.designs.base import check_masks, encode_rows, make_schema, net_choice
from condshap.studies.designs.linear import LinearModel, fit_linear
from condshap.studies.designs.one_factor import OneFactor, conditional_means, draw_factor
from condshap.types import Floats, Indices, Masks, RowKeys, Rows, Table

_STAGE = "mixed design"


@dataclass(frozen=True, slots=True, eq=False)
class MixedGaussian:
    """Factors and numbers driven by normals with equal correlations, and a linear response.

    A factor has level l where its normal lies in (v_l, v_{l+1}]. Factors come first, as in the paper.

    Attributes
    ----------
    law : distribution of the features
    linear : the response without its noise; alpha, beta and gamma of eq. (13)
    noise : standard deviation of the response's noise, 1 in the mixed studies, 0.1 in the categorical one
    """

    law: OneFactor
    linear: LinearModel
    noise: float = 1.0

    @property
    def schema(self) -> FeatureSchema:
        """Columns x1, ..., xM, factors with levels L1, L2, ... first."""
        levels = tuple(f"L{i + 1}" for i in range(self.n_levels))
        n_categorical, n_continuous = self.law.n_categorical, self.law.n_continuous
        names = [f"x{j + 1}" for j in range(n_categorical + n_continuous)]
        return make_schema(names, [levels] * n_categorical + [None] * n_continuous)

    @property
    def n_categorical(self) -> int:
        """Number of factors, M_cat."""
        return self.law.n_categorical

    @property
    def n_levels(self) -> int:
        """Levels of each factor, L; 0 if there is no factor."""
        return len(self.law.cutoffs) + 1 if self.law.n_categorical else 0

    def draw(self, n: int, seed: int) -> pd.DataFrame:
        """Draw n rows; with the same seed, fewer rows are the head of more rows."""
        n_features = self.law.n_categorical + self.law.n_continuous
        normals = generator(seed, _STAGE + " rows").standard_normal((n, n_features + 1))
        rows = self._cut(_mix(self.law.rho, normals[:, :1], normals[:, 1:]), np.arange(n_features))
        frame: pd.DataFrame = self.schema.decode(rows)
        return frame

    def respond(self, X: Table, seed: int) -> Floats:
        """Draw the response (n,) of rows: the linear model and independent normal noise."""
        rows = encode_rows(self, X)
        noise = generator(seed, _STAGE + " noise").standard_normal(len(rows))
        return np.asarray(self.linear.predict(rows) + self.noise * noise)

    def fit_linear(self, X: Table, y: Floats) -> LinearModel:
        """Fit the model that the paper explains: least squares with an effect per level and a slope per number."""
        return fit_linear(encode_rows(self, X), y, self.n_categorical, self.n_levels)

    def sample_conditional(
        self, X: Table, masks: Masks, n_samples: int, *, seed: int, keys: RowKeys | None = None
    ) -> Floats:
        """Draw x_unknown | x_known by quasi-Monte Carlo: the factor Z given x_S, then all features given Z."""
        rows, masks = encode_rows(self, X), check_masks(self, masks)
        n_features = rows.shape[1]
        pool = normal_nets(power_of_two_at_least(n_samples), n_features + 1, derive_seed(seed, _STAGE))
        words = stream_words(seed, _STAGE, masks, row_keys(rows) if keys is None else keys)
        nets = net_choice(words, len(pool))
        factor = draw_factor(self.law, rows, masks, ndtr(pool[:, :n_samples, 0])[nets])
        out = np.empty((len(masks), len(rows), n_samples, n_features))
        out[:] = rows[:, None, :]
        for c, mask in enumerate(masks):
            unknown = np.flatnonzero(~mask)
            normals = pool[:, :n_samples, 1 : 1 + len(unknown)][nets[c]]
            out[c][..., unknown] = self._cut(_mix(self.law.rho, factor[c][..., None], normals), unknown)
        return out

    def _cut(self, normals: Floats, features: Indices) -> Floats:
        """Turn the normals (..., n) of these features (n,) into encoded values, in place."""
        for i in np.flatnonzero(features < self.law.n_categorical):
            normals[..., i] = np.searchsorted(np.asarray(self.law.cutoffs), normals[..., i], side="left")
        return normals

    def linear_values(self, model: LinearModel, rows: Rows, masks: Masks) -> Floats:
        """Exact E[f(X) | x_S], shape (C, R), of a linear f, by quadrature over the common factor."""
        needed = ((self.n_categorical, self.n_levels), (self.law.n_continuous,))
        given = (model.level_effects.shape, model.slopes.shape)
        if given != needed:
            raise OptionError(
                f"a linear model of this design needs level effects and slopes of shapes {needed}, got {given}. "
                "Fit it to the design's own rows."
            )
        return conditional_means(self.law, model, rows, masks)

    true_values = base.true_values  # for any design, here as a method


def _mix(rho: float, common: Floats, own: Floats) -> Floats:
    return np.asarray(np.sqrt(rho) * common + np.sqrt(1.0 - rho) * own)


def check_law(law: OneFactor) -> OneFactor:
    """Refuse counts, cut-offs or correlations that make no distribution."""
    n_features = law.n_categorical + law.n_continuous
    if min(law.n_categorical, law.n_continuous) < 0 or n_features == 0:
        raise OptionError(
            f"a design needs at least one feature and no negative counts, got {law.n_categorical} factors and "
            f"{law.n_continuous} numbers."
        )
    if not 0.0 <= law.rho < 1.0:
        raise OptionError(f"rho must be at least 0 and below 1, got {law.rho}. One common factor needs that.")
    steps = np.diff(law.cutoffs)
    if (law.n_categorical and not law.cutoffs) or not np.isfinite(law.cutoffs).all() or (steps <= 0).any():
        raise OptionError(
            f"cutoffs must be finite and increasing, at least one for a factor, got {law.cutoffs}. Leave out the "
            "infinite ones."
        )
    return law


@dataclass(frozen=True, slots=True)
class MixedSetup:
    """One line of the paper's Table 3 or 5: counts and inner cut-offs."""

    n_continuous: int
    n_categorical: int
    cutoffs: tuple[float, ...]


MIXED_SETUPS: Mapping[str, MixedSetup] = MappingProxyType(
    {
        "M4": MixedSetup(2, 2, (-0.5, 0.0, 1.0)),
        "M6": MixedSetup(4, 2, (0.0, 1.0)),
        "M10": MixedSetup(5, 5, (0.0, 0.5)),
        "M25": MixedSetup(15, 10, (-1.0, 0.0, 0.5, 1.0)),
        "M50-L2": MixedSetup(25, 25, (0.5,)),
        "M50-L4": MixedSetup(25, 25, (-1.0, 0.0, 0.5)),
        "M100-L2": MixedSetup(50, 50, (0.0,)),
        "M100-L3": MixedSetup(75, 25, (-1.0, 1.0)),
    }
)
"""The paper's mixed setups: M4 and M6 are the low-dimensional ones."""

_FIXED: Mapping[str, LinearModel] = MappingProxyType(
    {
        "M4": LinearModel.of(1.0, [[1.0, 0.0, -1.0, 0.5], [2.0, 3.0, -1.0, -0.5]], [1.0, -1.0]),
        "M6": LinearModel.of(1.0, [[1.0, 0.0, -1.0], [2.0, 3.0, -0.5]], [1.0, -1.0, 2.0, -0.25]),
    }
)


def mixed_design(name: str, rho: float, seed: int = 0) -> MixedGaussian:
    """One of the paper's mixed designs by name; `seed` draws the coefficients of the high-dimensional ones.

    >>> mixed_design("M4", rho=0.5).schema.names
    ('x1', 'x2', 'x3', 'x4')
    """
    if name not in MIXED_SETUPS:
        raise OptionError(f"a mixed design must be one of {listing(MIXED_SETUPS, limit=8)}, got {name!r}.")
    setup = MIXED_SETUPS[name]
    if name in _FIXED:
        law = OneFactor(setup.n_categorical, setup.n_continuous, setup.cutoffs, rho)
        return MixedGaussian(check_law(law), _FIXED[name])
    return draw_mixed(setup.n_continuous, setup.n_categorical, setup.cutoffs, rho, seed)


def draw_mixed(
    n_continuous: int, n_categorical: int, cutoffs: tuple[float, ...], rho: float, seed: int
) -> MixedGaussian:
    """Mixed design of any size with coefficients drawn as in Section 4.3.2 of the paper.

    The intercept is 1, level effects come uniformly from {-1, -0.9, ..., 3} and slopes from {-1, -0.9, ..., 1}.
    """
    law = check_law(OneFactor(n_categorical, n_continuous, tuple(cutoffs), rho))
    rng = generator(seed, _STAGE + " coefficients")
    effects = rng.integers(-10, 31, size=(n_categorical, len(cutoffs) + 1)) / 10
    slopes = rng.integers(-10, 11, size=n_continuous) / 10
    return MixedGaussian(law, LinearModel.of(1.0, effects, slopes))
