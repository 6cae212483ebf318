from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from condshap.exceptions import OptionError, SchemaError
from condshap.vaeac import Networks, VAEACConfig
from condshap.vaeac.training.checkpoint import MaskQuery
from condshap.vaeac.training.learning_rate import Schedule

LEVELS = [3, 0, 0, 2, 0, 0]
CONFIG = VAEACConfig(width=8, latent=3, patience=None, kl_warmup=2, scales=("standard", "normal_scores"))


def same(a, b):
    weights = all(np.array_equal(a.fitted_.weights[name], b.fitted_.weights[name]) for name in a.fitted_.weights)
    histories = (a.history.vlb, b.history.vlb), (a.history.iwae, b.history.iwae), (a.history.kl, b.history.kl)
    return weights and all(np.array_equal(*pair) for pair in histories) and np.array_equal(a.held_out_, b.held_out_)


@pytest.mark.parametrize(
    ("a", "changes"),
    [
        (4, {}), (3, {}), (1, {}), (6, {"ema": None}), (6, {"n_restarts": 2, "restart_epochs": 2}),
        (6, {"schedule": "plateau"}), (5, {"masking": "by_size"}),
    ],
)  # fmt: skip
def test_training_in_two_parts_equals_training_at_once(a, changes, mixed_rows):
    X, config = mixed_rows(90, gaps=0.1), replace(CONFIG, **changes)
    at_once = Networks(replace(config, epochs=10)).fit(X, LEVELS, seed=3)
    parts = Networks(replace(config, epochs=a)).fit(X, LEVELS, seed=3).continue_training(X, 10 - a)
    assert same(at_once, parts)
    assert parts.fitted_.config.epochs == 10


def test_training_goes_on_after_storage_with_the_same_coalitions(mixed_rows):
    X, coalitions = mixed_rows(90), np.array([[True] * 3 + [False] * 3, [False] * 3 + [True] * 3])
    masks = MaskQuery.of(coalitions, np.array([0.3, 0.7]), [0, 0, 0, 1, 1, 1])
    at_once = Networks(replace(CONFIG, epochs=6)).fit(X, LEVELS, masks=masks)
    first = Networks(replace(CONFIG, epochs=3)).fit(X, LEVELS, masks=masks)
    arrays, about = first.to_state(keep_optimiser=True)
    assert all(isinstance(array, np.ndarray) for array in arrays.values())
    again = Networks.from_state({name: array.copy() for name, array in arrays.items()}, about)
    assert same(at_once, again.continue_training(X, 3))
    assert same(at_once, first.continue_training(X, 2).continue_training(X, 1))


def test_other_rows_are_refused(mixed_rows):
    X = mixed_rows(40)
    model = Networks(replace(CONFIG, epochs=2)).fit(X, LEVELS)
    for other in (X[::-1], X[:39], np.where(np.equal(X, X[0, 1]), 0.5, X)):
        with pytest.raises(SchemaError, match="rows it began with"):
            model.continue_training(other, 2)
    with pytest.raises(OptionError, match="at least 1"):
        model.continue_training(X, 0)


def test_a_model_without_optimiser_says_so(mixed_rows):
    X = mixed_rows(40)
    model = Networks(replace(CONFIG, epochs=2)).fit(X, LEVELS)
    small, large = model.to_state()[0], model.to_state(keep_optimiser=True)[0]
    assert sum(a.nbytes for a in small.values()) < 0.3 * sum(a.nbytes for a in large.values())
    with pytest.raises(OptionError, match="keep_optimiser"):
        Networks.from_state(*model.to_state()).continue_training(X, 2)
    refitted = Networks(replace(CONFIG, epochs=2, refit=True)).fit(X, LEVELS)
    with pytest.raises(OptionError, match="refit"):
        refitted.continue_training(X, 2)


def test_patience_counts_from_where_training_goes_on():
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = Networks(VAEACConfig(epochs=400, patience=10, width=8)).fit(X, [0, 0])
    stopped = len(model.history.vlb)
    model.continue_training(X, 60)
    assert stopped < 400
    assert len(model.history.vlb) >= stopped + 10


@pytest.mark.parametrize("schedule", ["constant", "cosine", "plateau"])
def test_every_schedule_trains(schedule, mixed_rows):
    model = Networks(replace(CONFIG, schedule=schedule, epochs=12)).fit(mixed_rows(60), LEVELS)
    assert np.isfinite(model.history.iwae).all()


def test_the_rate_falls_to_0_along_a_cosine():
    schedule = Schedule.start("cosine", 2.0, 1, first=10, last=110)
    rates = [schedule.rate_of(epoch) for epoch in range(11, 112)]
    assert rates[0] == 2
    assert rates[50] == pytest.approx(1)
    assert rates[-1] == pytest.approx(0, abs=1e-12)
    assert (np.diff(rates) < 0).all()


def test_a_plateau_halves_the_rate_of_the_model_that_stalls_only():
    schedule = Schedule.start("plateau", 1.0, 2, first=0, last=100)
    epochs, iwae = [], []
    for n in range(1, 31):
        epochs.append(2 * n)
        iwae.append(torch.tensor([float(n), -1.0 / n if n < 5 else -1.0]))
        schedule.look(epochs, iwae)
    assert schedule.factors.tolist() == [1.0, 0.25]  # stalled after epochs 30 and 50
    assert schedule.rate_of(7) == 1.0


def test_a_halved_rate_reaches_the_weights(mixed_rows, monkeypatch):
    """From the first epoch on: with all factors 0 nothing moves."""
    from condshap.vaeac.training.steps import Run

    X, start = mixed_rows(40), Run.__init__

    def frozen(self, *arguments):
        start(self, *arguments)
        self.damping.fill_(1e-30)

    monkeypatch.setattr(Run, "__init__", frozen)
    config = replace(CONFIG, schedule="plateau")
    one, two = (Networks(replace(config, epochs=n)).fit(X, LEVELS).fitted_.weights for n in (2, 4))
    assert all(np.array_equal(one[name], two[name]) for name in one)


def test_active_units_count_the_latents_in_use(gaussian_model):
    history = gaussian_model.history
    assert history.kl_at_best.shape == (6, 8)
    assert ((history.active_units >= 1) & (history.active_units <= 8)).all()
    last = history.validated.tolist().index(history.best_epoch[0])
    assert np.array_equal(history.kl_at_best[0], history.kl[last, 0])
