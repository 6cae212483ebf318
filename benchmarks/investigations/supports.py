"""When do networks that see columns on the scale of their support pay?

Answer: for log-densities of columns with ends always, for Shapley values clearly with fractions only; on the paper's Burr
data they cost. The default does without; docs/vaeac.md has the table.

Columns with ends and a Gaussian copula, and the paper's Burr data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import beta, gamma, lognorm, multivariate_normal, norm

from benchmarks.lib.measure import measure
from benchmarks.lib.report import parser, publish, table
from condshap.coalitions.exact import enumerate_masks
from condshap.numerics.shapley import exact_shapley
from condshap.studies.designs.burr import burr_design
from condshap.vaeac import Networks, VAEACConfig

M, RHO, N_TRAIN, N_TEST, SAMPLES, REPETITIONS = 4, 0.6, 1000, 200, 192, 4
COVARIANCE = (1 - RHO) * np.eye(M) + RHO
MARGINS = {
    "log-normal": [lognorm(s) for s in (0.5, 0.75, 1.0, 1.25)],
    "gamma": [gamma(a) for a in (0.5, 1.0, 2.0, 4.0)],
    "beta": [beta(a, b) for a, b in ((0.5, 0.5), (2.0, 2.0), (1.0, 4.0), (5.0, 1.0))],
}
STANDARD, SCORES, SUPPORT = "standard", "normal_scores", "support"
RECIPES = {
    "default: 3 standard, 3 normal scores": (STANDARD, SCORES) * 3,
    "2 of each": (STANDARD, SCORES, SUPPORT) * 2,
    "3 standard, 3 support": (STANDARD, SUPPORT) * 3,
    "3 normal scores, 3 support": (SCORES, SUPPORT) * 3,
    "6 support": (SUPPORT,) * 6,
}
BURR_RECIPES = {name: scales for name, scales in RECIPES.items() if SCORES in scales}


def quantile(margin: Any, z: np.ndarray) -> np.ndarray:
    """Value at normal scores, precise in both tails."""
    return np.where(z < 0, margin.ppf(norm.cdf(z)), margin.isf(norm.sf(z)))


def true_log_density(margins: list[Any], z: np.ndarray, masks: np.ndarray) -> np.ndarray:
    """Log p(unknown | known) at normal scores z (n, M), (C, n): the joint density over that of the known columns."""
    jacobian = np.column_stack([m.logpdf(quantile(m, z[:, j])) - norm.logpdf(z[:, j]) for j, m in enumerate(margins)])

    def log_density(some: np.ndarray) -> np.ndarray:
        if not some.any():
            return np.zeros(len(z))
        joint = multivariate_normal(cov=COVARIANCE[np.ix_(some, some)]).logpdf(z[:, some].squeeze())
        return joint + jacobian[:, some].sum(1)

    return np.stack([log_density(np.ones(M, bool)) - log_density(mask) for mask in masks])


def true_values(margins: list[Any], z: np.ndarray, masks: np.ndarray, sd: np.ndarray) -> np.ndarray:
    """v(S) of the model sum_j x_j / sd_j, (C, n), by Gauss-Hermite quadrature of one column at a time."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    values = np.zeros((len(masks), len(z)))
    for c, known in enumerate(masks):
        gain = np.linalg.solve(COVARIANCE[np.ix_(known, known)], COVARIANCE[known]) if known.any() else np.zeros((0, M))
        means, left = z[:, known] @ gain, np.sqrt(np.maximum(1 - (COVARIANCE[known] * gain).sum(0), 0))
        for j, margin in enumerate(margins):
            at = quantile(margin, means[:, [j]] + left[j] * nodes)
            values[c] += at @ weights / weights.sum() / sd[j]
    return values


def one_run(margins: list[Any], scales: tuple[str, ...], repetition: int) -> tuple[float, float, float]:
    """Nats below the true log-density, EC1 (mean absolute error of Shapley values) and CPU seconds of `fit`."""
    z = np.random.default_rng([repetition, M]).multivariate_normal(np.zeros(M), COVARIANCE, size=N_TRAIN + N_TEST)
    X = np.column_stack([quantile(m, z[:, j]) for j, m in enumerate(margins)])
    sd, masks, test = np.array([m.std() for m in margins]), enumerate_masks(M), X[N_TRAIN:]
    fitted = measure(lambda: Networks(VAEACConfig(scales=scales)).fit(X[:N_TRAIN], [0] * M, seed=repetition))
    network = fitted.result
    gap = true_log_density(margins, z[N_TRAIN:], masks[:-1]) - network.log_likelihood(test, masks[:-1], n_draws=256)
    values = (network.sample(test, masks, SAMPLES) / sd).sum(-1).mean(-1)
    error = exact_shapley(values - true_values(margins, z[N_TRAIN:], masks, sd), masks)
    return float(gap.mean()), float(np.abs(error).mean()), fitted.cpu


def burr_run(scales: tuple[str, ...], repetition: int) -> tuple[float, float, float]:
    """The same for five Burr features and the response's expectation as model; no log-densities here (NaN)."""
    design, masks = burr_design(5, seed=100 + repetition), enumerate_masks(5)
    X = design.draw(1060, seed=repetition).to_numpy()

    def model(rows: np.ndarray) -> np.ndarray:
        return design.expected_response(rows.reshape(-1, 5)).reshape(rows.shape[:-1])

    truth = [model(design.sample_conditional(X[1000:], mask[None], 4096, seed=5)).mean(-1) for mask in masks]
    fitted = measure(lambda: Networks(VAEACConfig(scales=scales)).fit(X[:1000], [0] * 5, seed=repetition))
    values = model(fitted.result.sample(X[1000:], masks, SAMPLES)).mean(-1)
    return np.nan, float(np.abs(exact_shapley(values - np.concatenate(truth), masks)).mean()), fitted.cpu


def lines_of(
    name: str, recipes: dict[str, tuple[str, ...]], run: Callable[..., tuple[float, float, float]]
) -> Iterator[dict[str, str]]:
    """Means over the repetitions, which are the same data for every recipe."""
    first = None
    for recipe, scales in recipes.items():
        runs = np.array([run(scales, repetition) for repetition in range(REPETITIONS)])
        gap, ec1, cpu = runs.mean(0)
        first = runs[:, 1] if first is None else first
        ratio = ec1 / first.mean()
        error = (runs[:, 1] - ratio * first).std(ddof=1) / np.sqrt(len(runs)) / first.mean()
        yield {
            "columns": name, "networks": recipe, "nats below the truth": "" if np.isnan(gap) else f"{gap:.3f}",
            "EC1": f"{ec1:.4f}", "ratio to default": f"{ratio:.3f} ± {error:.3f}", "CPU s of fit": f"{cpu:.1f}",
        }  # fmt: skip


def main() -> None:
    """Print the table."""
    options = parser("supports", __doc__).parse_args()
    lines = [line for name, margins in MARGINS.items() for line in lines_of(name, RECIPES, partial(one_run, margins))]
    lines += lines_of("Burr", BURR_RECIPES, burr_run)
    publish("supports", lines, table(lines), write=options.write)


if __name__ == "__main__":
    main()
