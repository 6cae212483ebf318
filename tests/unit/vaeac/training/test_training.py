from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from condshap.exceptions import CondShapWarning, OptionError, SchemaError
from condshap.vaeac import Networks, VAEACConfig
from condshap.vaeac.validation import DivergenceError

LEVELS = [3, 0, 0, 2, 0, 0]
QUICK = VAEACConfig(epochs=4, width=16, latent=4)


def conditional_mean_error(model, n_rows=60):
    """RMSE of the sampled mean of feature 0 given the other three, and given one, on fresh rows; truth sd is 1."""
    covariance = 0.3 * np.eye(4) + 0.7
    X = np.random.default_rng(2).multivariate_normal(np.zeros(4), covariance, size=n_rows)
    masks = np.array([[False, True, True, True], [False, True, False, False]])
    draws = model.sample(X, masks, 192)[..., 0]
    three = X[:, 1:].sum(1) * 0.7 / (1 + 2 * 0.7)
    errors = [draws[0].mean(-1) - three, draws[1].mean(-1) - 0.7 * X[:, 1]]
    spread = np.sqrt([1 - 3 * 0.49 / 2.4, 1 - 0.49])
    return [np.sqrt(np.mean(e**2)) for e in errors], draws.std(-1).mean(-1) / spread


def test_network_learns_conditional_means_of_correlated_normals(gaussian_model):
    errors, ratio = conditional_mean_error(gaussian_model)
    assert max(errors) < 0.15  # sd of the conditional is 0.62 and 0.71; independence has errors of 0.78 and 0.70
    assert np.abs(ratio - 1).max() < 0.15


def test_the_papers_settings_learn_too():
    covariance = 0.3 * np.eye(4) + 0.7
    X = np.random.default_rng(1).multivariate_normal(np.zeros(4), covariance, size=600)
    model = Networks.paper(epochs=60, n_restarts=3).fit(X, [0] * 4)
    assert model.fitted_.shape.n_parameters == 17032
    assert model.history.vlb.shape == (60, 1)
    assert model.history.iwae.shape == (55, 1)  # epochs of the restarts are not validated
    errors, _ = conditional_mean_error(model)
    assert max(errors) < 0.3  # one network, few epochs


def test_training_raises_the_iwae_and_reports_the_kl(gaussian_model):
    history = gaussian_model.history
    assert (history.iwae[-1] > history.iwae[0] + 0.3).all()
    assert history.kl.shape == (len(history.validated), 6, 8)
    assert history.kl.min() >= 0
    assert (history.best_epoch > 10).all()


def test_the_same_seed_gives_the_same_weights_and_another_one_others(mixed_rows):
    X = mixed_rows(80)
    a, b, c = (Networks(QUICK).fit(X, LEVELS, seed=seed).fitted_.weights for seed in (1, 1, 2))
    assert all(np.array_equal(a[name], b[name]) for name in a)
    assert not np.array_equal(a["output.bias"], c["output.bias"])


def test_rows_with_gaps_train_and_get_flags(mixed_with_gaps, mixed, mixed_rows):
    assert mixed_with_gaps.fitted_.shape.has_flags
    assert not mixed.fitted_.shape.has_flags
    assert np.isfinite(mixed_with_gaps.history.iwae).all()
    paper = Networks.paper(epochs=7, n_restarts=2).fit(mixed_rows(gaps=0.2), LEVELS)
    assert not paper.fitted_.shape.has_flags


def test_informative_gaps_are_learned():
    """Feature 2 is missing when feature 1 is negative: knowing of the gap must move feature 1."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 3))
    X[(X[:, 1] < 0) & (rng.random(800) < 0.9), 2] = np.nan
    model = Networks(VAEACConfig(epochs=60)).fit(X, [0, 0, 0])
    rows = np.array([[0.0, 9.0, np.nan], [0.0, 9.0, 0.0]])
    draws = model.sample(rows, np.array([[True, False, True]]), 96)[0, :, :, 1]
    assert draws[0].mean() < -0.5  # truth: -0.80
    assert draws[1].mean() > 0.35  # truth: 0.65
    assert np.isnan(model.sample(rows, np.array([[True, False, True]]), 4)[0, 0, :, 2]).all()
    assert np.isfinite(model.sample(rows, np.array([[True, False, True]]), 4, fill_missing=True)).all()


def test_a_diverging_network_is_dropped_with_a_warning(monkeypatch, mixed_rows):
    from condshap.vaeac.network.layers import Parameters

    original = Parameters.initialise

    def poisoned(self, generator):
        original(self, generator)
        self.windows(self.flat)["encoder_0.weight"][1] = np.nan

    monkeypatch.setattr(Parameters, "initialise", poisoned)
    config = VAEACConfig(epochs=3, width=8, latent=2, scales=("standard",) * 3)
    with pytest.warns(CondShapWarning, match="1 of 3 networks diverged"):
        model = Networks(config).fit(mixed_rows(60), LEVELS)
    assert len(model.fitted_.members) == 2
    assert np.isfinite(model.sample(mixed_rows(2), np.zeros((1, 6), bool), 8)).all()
    config = VAEACConfig(epochs=3, width=8, latent=2, scales=("standard",), n_restarts=3, restart_epochs=2)
    with pytest.warns(CondShapWarning, match="1 of 3 restarts diverged"):
        Networks(config).fit(mixed_rows(60), LEVELS)


def test_all_networks_diverging_is_an_error(mixed_rows):
    with pytest.raises(DivergenceError, match="smaller learning_rate"):
        Networks(replace(QUICK, learning_rate=1e30)).fit(mixed_rows(60), LEVELS)


def test_training_stops_early_when_nothing_gets_better():
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = Networks(VAEACConfig(epochs=400, patience=10, width=8)).fit(X, [0, 0])
    assert len(model.history.vlb) < 400


def test_refit_uses_the_best_number_of_epochs(mixed_rows):
    model = Networks(replace(QUICK, refit=True)).fit(mixed_rows(60), LEVELS)
    assert len(model.fitted_.members) == 6
    assert np.isfinite(model.sample(mixed_rows(2), np.zeros((1, 6), bool), 8)).all()


@pytest.mark.parametrize("n", [1, 2, 5])
def test_few_rows_train(n, mixed_rows):
    model = Networks(QUICK).fit(mixed_rows(n), LEVELS)
    assert np.isfinite(model.sample(mixed_rows(3), np.zeros((1, 6), bool), 8)).all()


def test_progress_is_reported(mixed_rows):
    seen = []
    Networks(QUICK).fit(mixed_rows(40), LEVELS, progress=lambda *what: seen.append(what))
    assert [s[0] for s in seen] == [1, 2, 3, 4]
    assert np.isnan(seen[0][3])
    assert np.isfinite(seen[1][3])


def test_rules_follow_the_data():
    small = VAEACConfig().resolve(100, 4, has_continuous=True)
    assert (small.width, small.latent, small.batch_size, small.learning_rate, small.epochs) == (32, 8, 32, 5e-4, 200)
    large = VAEACConfig().resolve(5000, 50, has_continuous=False)
    assert (large.width, large.latent, large.batch_size, large.learning_rate) == (64, 16, 128, 2e-3)
    assert large.scales == ("standard",) * 5
    epochs = [
        VAEACConfig().resolve(n, m, has_continuous=True).epochs for n, m in ((5000, 24), (20_000, 24), (5000, 25))
    ]
    assert epochs == [200, 100, 89]
    assert [VAEACConfig.paper().resolve(n, 5, has_continuous=True).epochs for n in (1000, 5000)] == [200, 100]


@pytest.mark.parametrize(
    "options", [{"depth": 0}, {"epochs": -1}, {"ema": 1.0}, {"scales": ("log",)}, {"masking": "x"}, {"scales": ()}]
)
def test_options_outside_their_range_are_refused(options):
    with pytest.raises(OptionError):
        VAEACConfig(**options)


@pytest.mark.parametrize(("column", "value"), [(0, 3.0), (0, 0.5), (0, -1.0), (1, np.inf)])
def test_rows_that_do_not_fit_are_refused(mixed, column, value, mixed_rows):
    X = mixed_rows(20)
    X[3, column] = value
    with pytest.raises(SchemaError):
        Networks(QUICK).fit(X, LEVELS)
    with pytest.raises(SchemaError):
        mixed.sample(X, np.zeros((1, 6), bool), 2)


def test_a_column_without_values_is_refused(mixed_rows):
    X = mixed_rows(20)
    X[:, 2] = np.nan
    with pytest.raises(SchemaError, match="all are missing"):
        Networks(QUICK).fit(X, LEVELS)
