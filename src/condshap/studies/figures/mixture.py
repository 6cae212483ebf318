"""VAEAC as a mixture of normals: the means and spreads that K latent draws give (the paper's Appendix G)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from condshap.studies.figures.scene import GIVEN
from condshap.studies.figures.style import GREY, new_figure
from condshap.studies.problems.abalone import load_rows
from condshap.types import Floats
from condshap.vaeac.columns.encoding import StandardScale
from condshap.vaeac.estimator import VAEACNetworks
from condshap.vaeac.network.likelihoods import gaussian_scale
from condshap.vaeac.sampling.decoder import Workspace
from condshap.vaeac.sampling.tiles import Pairs, noise_pool

COUNTS = (3, 30, 300)
"""Numbers of components that the figure shows."""
ACROSS = "Diameter"
_ORANGE, _BLUE = "#E69F00", "#0072B2"
_GRID = 160
_LEVELS = (0.05, 0.2, 0.4, 0.6, 0.8)


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """Components of p(x | z^(k)), k = 1, ..., K, of continuous features: means and deviations (K, Mc)."""

    names: tuple[str, ...]
    means: Floats
    deviations: Floats

    def of(self, feature: str, n: int) -> tuple[Floats, Floats]:
        """Mean and deviation of one feature in the first n components."""
        j = self.names.index(feature)
        return self.means[:n, j], self.deviations[:n, j]


def learn_mixture(X: pd.DataFrame, n_components: int, *, seed: int = 0, epochs: int | None = None) -> Mixture:
    """Train the paper's network on rows, and draw components given nothing: x_S is empty."""
    network = VAEACNetworks.paper(device="cpu", **({} if epochs is None else {"epochs": epochs}))
    network.fit(X, seed=seed, progress=False)
    return components(network, X, n_components, seed=seed)


def components(network: VAEACNetworks, X: pd.DataFrame, n_components: int, *, seed: int = 0) -> Mixture:
    """Means and deviations, in units of the rows, of the normals that latent draws of the first member give."""
    import torch

    networks, schema = network.networks_, network.schema_
    ensemble, columns = networks.as_ensemble([0]), networks.fitted_.columns
    rows = columns.encode(schema.encode(X.head(1)), ensemble.device)
    layout, shape = rows.layout, ensemble.parameters.shape
    pool = noise_pool(n_components, shape.latent + shape.n_features, seed, "plain", ensemble.device)
    nothing = np.zeros((1, shape.n_features), dtype=bool)
    work = Workspace(ensemble, rows, 1, n_components)
    with torch.inference_mode():
        for _, row, known, net in Pairs(rows, nothing, np.zeros((1, 1), dtype=np.int64), 1).tiles():
            work.condition(row, known)
            views = work.decode(0, pool[:, :n_components], net)
        outputs = views.outputs[: 2 * layout.n_continuous, :, 0]
        mean, raw = outputs.chunk(2)
        scale = gaussian_scale(raw, ensemble.floors[0][:, None])
    standard = columns.scales["standard"]
    assert isinstance(standard, StandardScale)
    names = tuple(schema.names[j] for j in layout.order[: layout.n_continuous])
    return Mixture(names, (mean.T.numpy() * standard.sd + standard.mean), scale.T.numpy() * standard.sd)


def draw_mixture(mixture: Mixture, X: pd.DataFrame) -> Figure:
    """A panel per number of components: training rows, means, and contours of components whose modes are scaled to 1."""
    figure, axes = new_figure(11, 3.8, 1, len(COUNTS), sharex=True, sharey=True)
    across, up = (np.linspace(0, 1.08 * X[name].max(), _GRID) for name in (ACROSS, GIVEN))
    for axis, n in zip(axes[0], COUNTS, strict=True):
        axis.scatter(X[ACROSS], X[GIVEN], s=2, color=GREY)
        axis.contour(across, up, envelope(mixture, n, across, up), levels=_LEVELS, colors=_BLUE, linewidths=0.8)
        axis.scatter(mixture.of(ACROSS, n)[0], mixture.of(GIVEN, n)[0], s=8, color=_ORANGE, zorder=3)
        axis.set_title(f"K = {n}")
        axis.set_xlabel(ACROSS)
    axes[0, 0].set_ylabel(GIVEN)
    return figure


def envelope(mixture: Mixture, n: int, across: Floats, up: Floats) -> Floats:
    """Largest of n scaled normal densities at the points of a grid, shape (len(up), len(across))."""
    parts = []
    for feature, grid in ((ACROSS, across), (GIVEN, up)):
        mean, deviation = mixture.of(feature, n)
        parts.append(np.exp(-(((grid - mean[:, None]) / deviation[:, None]) ** 2) / 2))  # (n, grid)
    return np.asarray((parts[1][:, :, None] * parts[0][:, None, :]).max(axis=0))


def abalone_mixture(n_train: int | None = None, *, epochs: int | None = None) -> tuple[Mixture, pd.DataFrame]:
    """Mixture on Abalone's training rows, and the rows."""
    X = load_rows().X_train.iloc[:n_train]
    return learn_mixture(X, max(COUNTS), epochs=epochs), X
