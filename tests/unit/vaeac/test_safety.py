"""Bad luck and bad input: each gives a right result or a clear error."""

from __future__ import annotations

import logging
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from unittest.mock import MagicMock

import numpy as np
import pytest
import torch

from condshap.exceptions import CondShapWarning, SchemaError
from condshap.vaeac import Networks, VAEACConfig
from condshap.vaeac.network.layers import Parameters
from condshap.vaeac.training.recorded_step import capture
from condshap.vaeac.training.steps import Run
from condshap.vaeac.validation import DivergenceError

LEVELS = [3, 0, 0, 2, 0, 0]
QUICK = VAEACConfig(epochs=4, width=16, latent=4)
NOTHING = np.zeros((1, 6), bool)


@pytest.fixture
def poison(monkeypatch):
    """Make some models start with NaN."""

    def apply(models):
        original = Parameters.initialise

        def poisoned(self, generator):
            original(self, generator)
            self.windows(self.flat)["encoder_0.weight"][models] = np.nan

        monkeypatch.setattr(Parameters, "initialise", poisoned)

    return apply


def test_a_diverged_restart_is_dropped_and_the_others_go_on(poison, mixed_rows):
    poison([0, 2])
    config = replace(QUICK, scales=("standard", "normal_scores"), n_restarts=2, restart_epochs=2)
    with pytest.warns(CondShapWarning, match=r"2 of 4 restarts diverged .* smaller learning_rate"):
        model = Networks(config).fit(mixed_rows(60), LEVELS)
    assert model.fitted_.members == ("standard", "normal_scores")
    assert np.isfinite(model.sample(mixed_rows(2), NOTHING, 8)).all()


def test_a_member_whose_restarts_all_diverge_is_dropped(poison, mixed_rows):
    poison([0, 1])
    config = replace(QUICK, scales=("standard", "normal_scores"), n_restarts=2, restart_epochs=2)
    with pytest.warns(CondShapWarning, match="2 of 4 restarts diverged"):
        model = Networks(config).fit(mixed_rows(60), LEVELS)
    assert model.fitted_.members == ("normal_scores",)
    assert model.continue_training(mixed_rows(60), 2).fitted_.members == ("normal_scores",)


@pytest.mark.parametrize("n_restarts", [1, 3])
def test_an_error_is_raised_when_all_diverge(n_restarts, poison, mixed_rows):
    poison(slice(None))
    config = replace(QUICK, n_restarts=n_restarts, restart_epochs=2)
    with pytest.raises(DivergenceError, match="all diverged"):
        Networks(config).fit(mixed_rows(60), LEVELS)


def test_epochs_may_be_fewer_than_those_of_the_restarts(mixed_rows):
    model = Networks(replace(QUICK, epochs=1, n_restarts=2, restart_epochs=3)).fit(mixed_rows(40), LEVELS)
    assert len(model.history.vlb) == 4


@pytest.mark.parametrize("factor", [1e-30, 1e30, 1e150])
def test_tiny_and_huge_values_give_what_ordinary_ones_give(factor):
    """Float32 ends at 3e38, and 1e30 squared is beyond; networks only see scaled columns."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3)) + rng.normal(size=(80, 1))
    masks = np.array([[True, False, False], [False, False, False]])
    keys = np.arange(5, dtype=np.uint64)
    plain = Networks(QUICK).fit(X, [0] * 3)
    scaled = Networks(QUICK).fit(factor * X, [0] * 3)
    a, b = plain.sample(X[:5], masks, 16, keys=keys), scaled.sample(factor * X[:5], masks, 16, keys=keys) / factor
    assert np.isfinite(b).all()
    assert np.median(np.abs(a - b)) < 1e-3
    shift = -3 * np.log(factor)
    found = scaled.log_likelihood(factor * X[:5], masks[1:], keys=keys) - plain.log_likelihood(
        X[:5], masks[1:], keys=keys
    )
    assert found == pytest.approx(shift, abs=0.1)


def test_one_value_at_1e30_among_ordinary_ones_keeps_everything_finite():
    X = np.random.default_rng(0).normal(size=(80, 3))
    X[7, 1] = 1e30
    model = Networks(QUICK).fit(X, [0] * 3)
    drawn = model.sample(X, np.array([[True, False, False], [False, True, False]]), 8)
    assert np.isfinite(drawn).all()
    assert np.isfinite(model.history.iwae).all()


def test_a_constant_column_and_a_single_level_come_back_as_they_are():
    X = np.column_stack([np.random.default_rng(0).normal(size=50), np.full(50, 0.1), np.zeros(50)])
    model = Networks(QUICK).fit(X, [0, 0, 1], support=np.array([[-np.inf, 0, 0], [np.inf, 1, 0]]))
    drawn = model.sample(X[:3], np.zeros((1, 3), bool), 64)
    assert (drawn[..., 1] == 0.1).all()
    assert (drawn[..., 2] == 0).all()


def test_constant_columns_alone_train():
    model = Networks(QUICK).fit(np.full((20, 2), 3.0), [0, 0])
    assert (model.sample(np.full((2, 2), 3.0), np.zeros((1, 2), bool), 9) == 3).all()


def test_a_level_never_seen_in_training_is_refused(mixed, mixed_rows):
    X = mixed_rows(5)
    X[2, 0] = 3
    for ask in (mixed.sample, mixed.log_likelihood):
        with pytest.raises(SchemaError, match=r"codes 0, 1, .* columns \[0\]"):
            ask(X, NOTHING, **({"n_samples": 4} if ask == mixed.sample else {}))


def test_a_level_that_exists_but_was_not_in_the_training_rows_is_rarely_drawn():
    X = np.column_stack([np.random.default_rng(0).integers(0, 3, 300), np.random.default_rng(1).normal(size=300)])
    model = Networks(replace(QUICK, epochs=20)).fit(X.astype(float), [4, 0])
    drawn = model.sample(np.array([[3.0, 0.0]]), np.array([[False, True]]), 2048)
    assert (drawn[..., 0] == 3).mean() < 0.02


def test_an_all_missing_column_is_refused_in_training_only(mixed_with_gaps, mixed_rows):
    X = mixed_rows(20)
    X[:, 4] = np.nan
    with pytest.raises(SchemaError, match=r"all are missing in columns \[4\]"):
        Networks(QUICK).fit(X, LEVELS)
    assert np.isfinite(mixed_with_gaps.impute(X, 2)).all()


@pytest.mark.parametrize("n", [2, 30])
def test_fewer_rows_than_a_batch_train_and_go_on(n, mixed_rows):
    X = mixed_rows(n)
    model = Networks(replace(QUICK, batch_size=64)).fit(X, LEVELS).continue_training(X, 2)
    drawn = model.sample(X, NOTHING, 64)[0].reshape(-1, 6)
    assert np.isfinite(drawn).all()
    assert (drawn[:, [1, 4, 5]].min(0) >= X[:, [1, 4, 5]].min(0)).all()


_THOUSAND = """
import resource, numpy as np
from condshap.vaeac import Networks, VAEACConfig
rng = np.random.default_rng(0)
X = np.column_stack([rng.normal(size=(400, 2)), rng.integers(0, 1000, 400)])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
model = Networks(VAEACConfig(epochs=2)).fit(X, [0, 0, 1000])
drawn = model.sample(X[:40], np.array([[True, False, False], [False, True, True]]), 250)
assert np.isfinite(drawn).all() and drawn[0, ..., 2].max() < 1000
model.log_likelihood(X[:20], np.array([[True, False, False]]))
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is counted in other units")
def test_a_factor_of_1000_levels_works_in_bounded_memory():
    answer = subprocess.run([sys.executable, "-c", _THOUSAND], capture_output=True, text=True, check=True)
    assert float(answer.stdout) < 1024


def test_a_step_that_cannot_be_recorded_is_logged_and_nothing_else(caplog):
    from condshap.vaeac.columns.encoded_rows import Batch, Targets

    if torch.cuda.is_available():
        pytest.skip("recording works where there is an accelerator")
    one = torch.zeros(1)
    with caplog.at_level(logging.WARNING):
        assert capture(lambda *_: one, Batch(one, one, Targets(one, one, one)), one, []) is None
    assert "kernel by kernel" in caplog.text


def test_training_goes_on_kernel_by_kernel_where_steps_cannot_be_recorded(monkeypatch, caplog, mixed_rows):
    """As on an accelerator that refuses: one line in the log, and the numbers of a training without recording."""
    if torch.cuda.is_available():
        pytest.skip("recording works where there is an accelerator")
    usual = Networks(QUICK).fit(mixed_rows(), LEVELS)
    prepare, tried = Run.__init__, []

    def prepare_to_record(run, *arguments):
        prepare(run, *arguments)
        run.records = True

    def changed(run):
        tried.append(run)
        return [run.parameters.flat]

    monkeypatch.setattr(Run, "__init__", prepare_to_record)
    monkeypatch.setattr(Run, "_changed", changed)
    with caplog.at_level(logging.WARNING):
        found = Networks(QUICK).fit(mixed_rows(), LEVELS)
    assert len(tried) == 1
    assert caplog.text.count("kernel by kernel") == 1
    np.testing.assert_array_equal(found.history.iwae, usual.history.iwae)


@pytest.mark.parametrize("failing", [2, 4])
def test_weights_are_put_back_when_the_warm_up_or_the_recording_fails(monkeypatch, caplog, failing):
    from condshap.vaeac.columns.encoded_rows import Batch, Targets

    for name in ("CUDAGraph", "current_stream", "Stream"):
        monkeypatch.setattr(torch.cuda, name, MagicMock())
    for name in ("stream", "graph"):
        monkeypatch.setattr(torch.cuda, name, lambda _: nullcontext())
    weights, one, steps = torch.ones(3), torch.zeros(1), []

    def step(*_):
        weights.add_(1)
        steps.append(1)
        if len(steps) == failing:
            raise RuntimeError("out of memory")
        return one

    with caplog.at_level(logging.WARNING):
        assert capture(step, Batch(one, one, Targets(one, one, one)), one, [weights]) is None
    assert len(steps) == failing
    assert "out of memory" in caplog.text
    assert weights.tolist() == [1, 1, 1]
