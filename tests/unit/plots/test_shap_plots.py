"""The plots of shap accept what `to_shap` gives."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

shap = pytest.importorskip("shap")


@pytest.fixture
def handed_over(explain):
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"size": rng.normal(size=30), "kind": rng.choice(["a", "b"], 30), "n": rng.integers(0, 9, 30)})
    return explain(rng.normal(size=(30, 3)), data=data, names=list(data)).to_shap()


def shown_names(ax):
    return " ".join(label.get_text() for label in ax.get_yticklabels())


def test_waterfall(handed_over):
    ax = shap.plots.waterfall(handed_over[2], show=False)
    assert all(name in shown_names(ax) for name in ("size", "kind", "n"))


def test_beeswarm(handed_over):
    ax = shap.plots.beeswarm(handed_over, show=False)
    assert {"size", "kind", "n"} <= set(shown_names(ax).split())
    assert sum(len(np.asarray(c.get_offsets())) for c in ax.collections) >= 90


def test_bar(handed_over):
    ax = shap.plots.bar(handed_over, show=False)
    widths = sorted(abs(patch.get_width()) for patch in ax.patches)[-3:]
    np.testing.assert_allclose(widths, np.sort(np.abs(handed_over.values).mean(axis=0)))


def test_scatter(handed_over):
    shap.plots.scatter(handed_over[:, "size"], color=handed_over[:, "n"], show=False)
    ax = plt.gcf().axes[0]
    found = np.concatenate(
        [np.asarray(c.get_offsets()) for c in ax.collections if len(np.asarray(c.get_offsets())) == 30]
    )
    np.testing.assert_allclose(np.sort(found[:30, 1]), np.sort(handed_over.values[:, 0]))
