r"""Continuous data: the multivariate Burr distribution and a non-linear response (Section 4.2, Appendix E.1 of the paper).

x_m = (E_m / (G r_m))^(1/b_m) with independent E_m ~ Exp(1) and one G ~ Gamma(kappa, 1). Given x_S the factor is again a
gamma variable, with shape kappa + |S| and rate 1 + sum_{m in S} r_m x_m^{b_m}, and the rest follows from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from scipy.interpolate import CubicSpline
from scipy.special import gammainccinv, gammaincinv, gammaln, log_ndtr, ndtr

from condshap.exceptions import OptionError
from condshap.numerics.sobol import normal_nets, power_of_two_at_least
from condshap.schema import FeatureSchema
from condshap.seeding import derive_seed, generator, row_keys, stream_words
from condshap.studies.designs import base
from condshap.studies.designs.base import check_masks, encode_rows, make_schema, net_choice
from condshap.studies.designs.linear import LinearModel
from condshap.types import Floats, Indices, Masks, RowKeys, Rows, Table

_STAGE = "burr design"


@dataclass(frozen=True, slots=True, eq=False)
class Burr:
    """Burr(kappa, r, b) features and the paper's response, eq. (12).

    Attributes
    ----------
    kappa : positive; Kendall's tau between any two features is 1 / (2 kappa + 1)
    r, b : (M,) scales and powers
    c : (3 M / 5,) coefficients of the response
    noise_features : (M / 5,) positions of the features whose ranks scale the noise
    """

    kappa: float
    r: Floats
    b: Floats
    c: Floats
    noise_features: Indices

    @property
    def schema(self) -> FeatureSchema:
        """Columns x1, ..., xM, all of them numbers."""
        return make_schema([f"x{j + 1}" for j in range(len(self.r))], [None] * len(self.r))

    @property
    def n_categorical(self) -> int:
        """There are no factors."""
        return 0

    @property
    def n_levels(self) -> int:
        """There are no factors."""
        return 0

    def draw(self, n: int, seed: int) -> pd.DataFrame:
        """Draw n rows; with the same seed, fewer rows are the head of more rows."""
        uniforms = generator(seed, _STAGE + " rows").random((n, len(self.r) + 1))
        common = gammaincinv(self.kappa, 1.0 - uniforms[:, :1])
        logs = np.log(-np.log1p(-uniforms[:, 1:])) - np.log(common * self.r)
        frame: pd.DataFrame = self.schema.decode(np.exp(logs / self.b))
        return frame

    def cdf(self, X: Table) -> Floats:
        """Marginal distribution functions u_j = F_j(x_j), shape (n, M)."""
        rows = encode_rows(self, X)
        return np.asarray(-np.expm1(-self.kappa * np.log1p(self.r * rows**self.b)))

    def expected_response(self, X: Table) -> Floats:
        """Response (n,) without its noise: one term per block of five features and three coefficients."""
        u = self.cdf(X).reshape(-1, len(self.r) // 5, 5)
        c = self.c.reshape(-1, 3)
        waves = np.sin(np.pi * c[:, 0] * u[..., 0] * u[..., 1])
        return np.asarray((waves + c[:, 1] * u[..., 2] * np.exp(c[:, 2] * u[..., 3] * u[..., 4])).sum(axis=1))

    def respond(self, X: Table, seed: int) -> Floats:
        """Draw the response (n,); the noise is normal with the mean rank of the noise features as its deviation."""
        deviation = self.cdf(X)[:, self.noise_features].mean(axis=1)
        noise = generator(seed, _STAGE + " noise").standard_normal(len(deviation))
        return np.asarray(self.expected_response(X) + deviation * noise)

    def rates(self, rows: Rows, masks: Masks) -> Floats:
        """Rate 1 + sum_{m in S} r_m x_m^{b_m} of the gamma factor given x_S, shape (C, R)."""
        return np.asarray(1.0 + masks.astype(np.float64) @ (self.r * rows**self.b).T)

    def conditional_cdf(self, rows: Rows, mask: Masks, feature: int, x: Floats) -> Floats:
        """P(x_feature <= x | x_S) for every row (R, M) and x of shape (R, ...), with one coalition `mask` (M,)."""
        rate = self.rates(rows, mask[None])[0].reshape(-1, *[1] * (x.ndim - 1))
        shape = self.kappa + mask.sum()
        return np.asarray(-np.expm1(-shape * np.log1p(self.r[feature] * x ** self.b[feature] / rate)))

    def sample_conditional(
        self, X: Table, masks: Masks, n_samples: int, *, seed: int, keys: RowKeys | None = None
    ) -> Floats:
        """Draw x_unknown | x_known by quasi-Monte Carlo: the gamma factor given x_S, then independent exponentials."""
        rows, masks = encode_rows(self, X), check_masks(self, masks)
        n_points, n_features = power_of_two_at_least(n_samples), rows.shape[1]
        normals, log_exponentials = _nets(n_points, n_features, derive_seed(seed, _STAGE))
        words = stream_words(seed, _STAGE, masks, row_keys(rows) if keys is None else keys)
        nets = net_choice(words, len(normals))
        log_rates = np.log(self.rates(rows, masks))
        out = np.empty((len(masks), len(rows), n_samples, n_features))
        out[:] = rows[:, None, :]
        for c, mask in enumerate(masks):
            unknown = np.flatnonzero(~mask)
            log_gamma = log_gamma_quantile(self.kappa + float(mask.sum()))(normals[:, :n_samples][nets[c]])  # (R, K)
            logs = log_exponentials[:, :n_samples, : len(unknown)][nets[c]]
            logs += (log_rates[c][:, None] - log_gamma)[..., None] - np.log(self.r[unknown])
            logs /= self.b[unknown]
            out[c][..., unknown] = np.exp(logs, out=logs)
        return out

    def linear_values(self, model: LinearModel, rows: Rows, masks: Masks) -> Floats:
        """Exact E[f(X) | x_S], shape (C, R), of a linear f, from the closed form of Burr means.

        E[x_j | x_S] = (rate / r_j)^(1/b_j) Gamma(1 + 1/b_j) Gamma(k - 1/b_j) / Gamma(k) with k = kappa + |S|.
        """
        shape = self.kappa + masks.sum(axis=1)[:, None]
        if (shape <= 1.0 / self.b).any():
            raise OptionError(f"Burr means need kappa b > 1, got kappa {self.kappa} and b {self.b.min()}.")
        logs = gammaln(1.0 + 1.0 / self.b) + gammaln(shape - 1.0 / self.b) - gammaln(shape) - np.log(self.r) / self.b
        factors = np.where(masks, 0.0, np.exp(logs) * model.slopes)  # (C, M)
        log_rates = np.log(self.rates(rows, masks))
        v = model.intercept + masks.astype(np.float64) @ model.contributions(rows).T
        for j, power in enumerate(self.b):
            v += factors[:, [j]] * np.exp(log_rates / power)
        return np.asarray(v)

    true_values = base.true_values  # for any design, here as a method


@lru_cache(maxsize=2)
def _nets(n_points: int, n_features: int, seed: int) -> tuple[Floats, Floats]:
    """Pools of nets: normals (n, K) for the factor, and logs of exponentials (n, K, M) for the features; read only."""
    pool = normal_nets(n_points, n_features + 1, seed)
    normals, logs = pool[..., 0].copy(), np.log(-log_ndtr(-pool[..., 1:]))
    normals.flags.writeable = logs.flags.writeable = False
    return normals, logs


@lru_cache(maxsize=1024)
def log_gamma_quantile(shape: float) -> Any:
    """Function that turns standard normals into logs of Gamma(shape, 1) variables, by a spline right to 1e-9.

    >>> bool(abs(log_gamma_quantile(1.0)(0.0) - np.log(np.log(2.0))) < 1e-9)
    True
    """
    normals = np.linspace(-8.5, 8.5, 2049)
    lower, upper = gammaincinv(shape, ndtr(normals)), gammainccinv(shape, ndtr(-normals))
    return CubicSpline(normals, np.log(np.where(normals < 0, lower, upper)))


def burr_design(n_features: int, seed: int, *, kappa: float = 2.0) -> Burr:
    """Burr design with M features, parameters drawn as in Appendix E.1 of the paper.

    Uniformly and with replacement: r from {1, 1.25, ..., 5}, b from {2, 2.25, ..., 6}, c from {0.1, 0.2, ..., 2}, and
    M / 5 features that scale the noise. They are drawn once per design, so training and test rows share them.

    >>> burr_design(10, seed=1).c.shape
    (6,)
    """
    if n_features < 5 or n_features % 5:
        raise OptionError(
            f"a Burr design needs a multiple of 5 features, got {n_features}. Its response has blocks of 5."
        )
    if not kappa > 0:
        raise OptionError(f"kappa must be positive, got {kappa}.")
    rng = generator(seed, _STAGE + " parameters")
    n_blocks = n_features // 5
    return Burr(
        kappa=float(kappa),
        r=1.0 + rng.integers(0, 17, size=n_features) / 4,
        b=2.0 + rng.integers(0, 17, size=n_features) / 4,
        c=rng.integers(1, 21, size=3 * n_blocks) / 10,
        noise_features=rng.integers(0, n_features, size=n_blocks),
    )
