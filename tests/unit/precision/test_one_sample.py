"""A single sample tells nothing about its own error: NaN, or a refusal where an error is needed."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import condshap as cs
from condshap.approaches.base import ALL_KINDS, Capabilities, DrawnRows
from condshap.approaches.vaeac import VAEAC
from condshap.exceptions import OptionError
from condshap.storage.explanations import load_explanation

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4))
ROWS = RNG.normal(size=(3, 4))


def f(x):
    return np.sin(x[:, 0]) * x[:, 1] + np.abs(x[:, 2] - x[:, 3])


APPROACHES = {
    "gaussian": "gaussian",
    "copula": "copula",
    "independence": "independence",
    "ctree": "ctree",
    "vaeac": VAEAC(epochs=2),
    "vaeac, plain": VAEAC.paper(epochs=2, n_restarts=1),
}


class OneRow:
    """The training mean, drawn with what is called an error, by an approach that wants one sample."""

    name, supports, handles_missing, needs_model = "one row", ALL_KINDS, False, False
    capabilities = Capabilities(default_samples=1)

    def fit(self, X, schema, *, plan, seed):
        self.mean = X.mean(axis=0)
        return self

    def sample(self, X, masks, n_samples, *, keys, seed):
        rows = np.where(masks[:, None], X, self.mean)[:, :, None].repeat(n_samples, axis=2)
        return DrawnRows(rows)


@pytest.mark.parametrize("approach", APPROACHES)
def test_standard_errors_and_msev_of_one_sample_are_nan(approach):
    found = cs.explain(f, X, ROWS, approach=APPROACHES[approach], n_samples=1, check_draws=False)
    assert np.isnan(found.std_errors).all()
    assert np.isnan(found.value_table.std_errors[1:-1]).all()
    assert (found.value_table.std_errors[[0, -1]] == 0).all()
    assert np.isnan(float(found.msev))
    np.testing.assert_allclose(found.base_values + found.values.sum(axis=1), found.predictions, atol=1e-9)


def test_two_samples_have_errors():
    found = cs.explain(f, X, ROWS, approach="gaussian", n_samples=2, check_draws=False)
    assert (found.std_errors > 0).all()
    assert np.isfinite(float(found.msev))


def test_one_sample_with_some_coalitions_gives_values_without_errors():
    wide, rows = RNG.normal(size=(120, 8)), RNG.normal(size=(2, 8))
    found = cs.explain(f, wide, rows, approach="gaussian", n_samples=1, n_coalitions=60, check_draws=False)
    assert np.isfinite(found.values).all()
    assert np.isnan(found.std_errors).all()


def test_one_sample_is_enough_where_nothing_is_random():
    line = LinearRegression().fit(X, f(X))
    assert (cs.explain(line, X, ROWS, approach="gaussian", n_samples=1, check_draws=False).std_errors == 0).all()
    everyone = cs.explain(f, X, ROWS, approach="independence", n_samples=len(X), check_draws=False)
    assert (everyone.std_errors == 0).all()


def test_what_goes_by_errors_refuses_one_sample():
    with pytest.raises(OptionError, match=r"n_samples must be at least 2 with n_coalitions='auto'.*got 1"):
        cs.Explainer(f, approach="gaussian", n_samples=1, n_coalitions="auto").fit(X)
    with pytest.raises(OptionError, match=r"n_coalitions='auto' needs the standard errors.*single sample"):
        cs.explain(f, X, ROWS, approach=OneRow(), n_coalitions="auto", check_draws=False)
    with pytest.raises(OptionError, match=r"target_error=0.1 needs at least 2 samples"):
        cs.Explainer(f, approach=OneRow(), target_error=0.1, check_draws=False).fit(X)


def test_errors_that_are_not_known_are_stored_drawn_and_reported_as_such(tmp_path):
    found = cs.explain(f, X, ROWS, approach="gaussian", n_samples=1, check_draws=False)
    found.save(tmp_path / "e.parquet")
    again = load_explanation(tmp_path / "e.parquet")
    assert np.isnan(again.std_errors).all()
    html = cs.report(again, tmp_path / "r.html").read_text()
    assert "standard errors are unknown" in html
    assert "unknown" in html.split('id="quality"')[1]
    assert ">nan" not in html
    for plot in (cs.plots.bar, cs.plots.waterfall, cs.plots.beeswarm):
        plot(found[:1]).figure.canvas.draw()
