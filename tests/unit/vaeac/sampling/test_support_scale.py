from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import norm

import condshap as cs
from condshap.exceptions import OptionError
from condshap.vaeac import Networks, VAEACConfig
from condshap.vaeac.columns.atoms import Atoms
from condshap.vaeac.columns.encoding import SupportScale
from condshap.vaeac.columns.learned import Columns
from condshap.vaeac.columns.supports import find_poles
from condshap.vaeac.sampling.heads import FromSupport, Heads, make_margins

inf, nan = np.inf, np.nan
CPU = torch.device("cpu")
SUPPORT = VAEACConfig(epochs=4, width=16, latent=4, scales=("support",))


def bounded_rows(n=300, seed=0):
    """Columns: positive, fraction, with zeros, counts, score of 0 to 10, negative, real, and huge, tiny and near 1."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 10)) / 2 + rng.normal(size=(n, 1)) / 2
    return np.column_stack(
        [
            np.exp(z[:, 0]), 1 / (1 + np.exp(-z[:, 1])), np.maximum(z[:, 2], 0), np.rint(np.exp(z[:, 3])),
            np.rint(5 + 4 * z[:, 4]).clip(0, 10), -np.exp(z[:, 5]), z[:, 6], 1e308 * np.exp(-300 * np.abs(z[:, 7])),
            np.exp(-744 + 20 * np.abs(z[:, 8])), 1 - np.exp(-36 + 5 * z[:, 9]).clip(2**-53),
        ]
    )  # fmt: skip


# Least and largest values that draws may take, declared for all but the column of negative numbers.
DECLARED = np.array(
    [[0, 0, 0, 0, 0, nan, -inf, 0, 0, 0], [inf, 1, inf, inf, 10, nan, inf, np.finfo(float).max, inf, 1]]
)


def learn(X, support=None):
    return Columns.learn(X, Atoms.none(np.zeros(X.shape[1], dtype=np.intp)), SUPPORT, support)


# --- where the poles are ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "declared", "poles"),
    [
        ([1.5, 2.0, 9.0], (nan, nan), (0, inf)),
        ([0.1, 0.2, 0.9], (nan, nan), (0, 1)),
        ([-1.5, -2.0, -0.1], (nan, nan), (-inf, 0)),
        ([-1.5, 2.0], (nan, nan), (-inf, inf)),
        ([1.5, 2.0], (1.0, 4.0), (1, 4)),
        ([1.5, 2.0], (-inf, inf), (-inf, inf)),
        ([-1.5, 2.0], (-2.0, inf), (-2, inf)),
        ([0.0, 3.0, 1.0], (nan, nan), (-0.5, inf)),  # counts: half a step for rounding
        ([2.0, 3.0], (0.0, 10.0), (-0.5, 10.5)),
        ([0.0, 0.4, 0.4, 0.4, 3.5], (nan, nan), (-0.4 * 0.4 / 1.175, inf)),  # quartiles 0.4 and 1.175 of what is not 0
        ([0.5, 1.0], (0.0, 1.0), (0, 1.5)),  # touches 1
        ([7.5, 7.5], (0.0, inf), (-inf, inf)),  # constant
        ([1e6 + 0.1, 1e6 + 0.9], (nan, nan), (-inf, inf)),  # too far from 0 for a logarithm to bend
        ([0.5, -1.5], (-1e308, 1e308), (-inf, inf)),
    ],
)
def test_poles_are_at_the_ends_or_just_outside(column, declared, poles):
    X, ends = np.array(column)[:, None], np.array(declared)[:, None]
    found = find_poles(np.vstack([X, [[nan]]]), ends, (np.rint(X) == X).all(0))
    assert found[:, 0] == pytest.approx(poles)
    assert found[0] < X.min()
    assert found[1] > X.max()


@pytest.mark.parametrize(
    ("column", "is_whole"),
    [([1e20, 3e20], True), ([0.0, 5e-324, 5e-324, 1.0, 1.0], False), ([-3.0, 1.0 - 3.0, np.nextafter(-3, 0)], False)],
)
def test_a_pole_is_outside_even_where_its_offset_is_lost_in_rounding(column, is_whole):
    poles = find_poles(np.array(column)[:, None], np.array([[min(column)], [inf]]), np.array([is_whole]))
    assert -inf < poles[0] < min(column)


# --- there and back ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("support", [None, DECLARED])
def test_decoding_undoes_encoding(support):
    X = bounded_rows()
    scale = learn(X, support).scales["support"]
    encoded = scale.encode(X)
    assert np.abs(encoded.mean(0)).max() < 1e-6
    assert encoded.std(0, ddof=1) == pytest.approx(np.ones(10))
    back = torch.empty((10, 1, len(X)), dtype=torch.float64)
    FromSupport.of(scale, CPU)(torch.from_numpy(encoded.T[:, None]), back)
    far = np.maximum(np.abs(X), np.where(np.isfinite(scale.poles), np.abs(scale.poles), 0).max(0))  # digits near a pole
    assert (np.abs(back[:, 0].numpy().T - X) <= 1e-11 * far + 1e-323).all()


def test_gaps_stay_and_values_beyond_a_pole_are_cut_off():
    X = bounded_rows()[:, :2]
    scale = learn(X).scales["support"]
    encoded = scale.encode(np.array([[-5.0, 1.0], [0.0, 2.0], [nan, nan], [1e300, 0.0], [1e-300, -1.0]]))
    assert np.isnan(encoded[2]).all()
    assert (encoded[[0, 1, 4], 0] == scale.limits[0, 0]).all()
    assert encoded[3].tolist() == [scale.limits[1, 0], scale.limits[0, 1]]
    assert encoded[[0, 1, 4], 1].tolist() == [scale.limits[1, 1]] * 2 + [scale.limits[0, 1]]


def test_log_slopes_are_derivatives():
    X = bounded_rows()[:, :7]
    scale = learn(X).scales["support"]
    inside = X[(X.min(0) < X).all(1) & (X.max(0) > X).all(1)]
    step = 1e-6 * np.abs(inside)
    numeric = (scale.encode(inside + step) - scale.encode(inside - step)) / (2 * step)
    assert np.exp(scale.log_slopes(inside)) == pytest.approx(numeric, rel=1e-4)


def test_whole_numbers_get_heads_as_wide_as_the_steps_where_most_rows_are():
    counts = np.r_[np.repeat([0.0, 1.0, 2.0], 100), np.arange(3.0, 60.0)][:, None]
    columns = learn(counts)
    step = np.log(2.5 / 1.5) / columns.scales["support"].sd
    assert columns.floors["support"] > 0.7 * step / np.sqrt(12)
    narrow = np.diff(np.unique(columns.scales["support"].encode(counts)))
    assert columns.floors["support"] > 5 * np.median(narrow) / np.sqrt(12)


# --- no value outside the support -------------------------------------------------------------------------------------


def check_inside(drawn, low, high):
    assert np.isfinite(drawn).all()
    assert (drawn.min(0) >= low).all()
    assert (drawn.max(0) <= high).all()
    assert np.array_equal(drawn[:, 3:5], np.rint(drawn[:, 3:5]))


@pytest.mark.parametrize("support", [None, DECLARED])
def test_ten_million_draws_of_trained_networks_stay_inside(support):
    X = bounded_rows()
    seen = np.stack([X.min(0), X.max(0)])
    low, high = seen if support is None else np.where(np.isnan(support), seen, support)
    model = Networks(SUPPORT).fit(X, [0] * 10, support=support)
    rows = bounded_rows(64, seed=9)
    rows[0, :3] = [-1e30, 7.0, 1e300]  # known features far outside
    masks = np.array([[False] * 10, [True, True, True] + [False] * 7])
    n_drawn = 0
    for seed in range(5):
        drawn = model.sample(rows, masks, 2048, seed=seed)
        some = drawn[0]
        check_inside(some.reshape(-1, 10), low, high)
        drawn[1, ..., :3] = low[:3]  # known
        check_inside(drawn[1].reshape(-1, 10), low, high)
        assert (some[..., [0, 7, 8]] > 0).all()  # no training row holds these ends
        assert ((some[..., 1] > 0) & (some[..., 1] < 1) & (some[..., 9] < 1)).all()
        assert (some[..., 5] < 0).all()
        n_drawn += some.size + drawn[1, ..., 3:].size
    assert n_drawn > 1e7


@pytest.mark.parametrize("support", [None, DECLARED])
def test_ten_million_draws_of_wild_heads_stay_inside(support):
    """Means and scales from 1e-3 to 1e30, which no training would give."""
    X, rng = bounded_rows(), np.random.default_rng(0)
    columns = learn(X, support)
    seen = np.stack([X.min(0), X.max(0)])
    low, high = seen if support is None else np.where(np.isnan(support), seen, support)
    margins = make_margins(columns, "support", truncate=True, device=CPU)
    heads = Heads(columns.layout, columns.support, columns.whole, CPU)
    for _ in range(11):
        size = 10.0 ** rng.uniform(-3, 30, size=(20, 10, 10_000))
        outputs = torch.from_numpy(size * rng.choice([-1, 1], size.shape)).float()
        noise = torch.from_numpy(rng.normal(size=(10, 10, 10_000))).float()
        out = torch.empty(noise.shape, dtype=torch.float64)
        heads.draw(outputs, noise, margins, out)
        drawn = out.flatten(1).numpy().T
        check_inside(drawn, low, high)
        assert (drawn[:, [0, 7, 8]] > 0).all()
        assert ((drawn[:, 1] > 0) & (drawn[:, 1] < 1) & (drawn[:, 9] < 1)).all()


def test_draws_of_a_declared_column_go_beyond_the_training_range_but_not_far():
    X = bounded_rows()
    columns = learn(X, DECLARED)
    placed = columns.scales["support"].place(columns.truncation())
    assert np.isfinite(placed[:, :6]).all()
    assert np.isinf(placed[:, 6]).all()
    drawn = Networks(SUPPORT).fit(X, [0] * 10, support=DECLARED).sample(X[:20], np.zeros((1, 10), bool), 2048)[0]
    assert drawn[..., 0].max() > X[:, 0].max()
    assert drawn[..., 0].min() < X[:, 0].min()


# --- densities --------------------------------------------------------------------------------------------------------


def test_log_likelihood_of_log_normals_is_near_the_truth_and_nearer_than_with_the_standard_scale():
    """Log-normal columns, rho = 0.7 of their logarithms. Seeds are fixed; gaps have standard errors of 0.005 and 0.02."""
    covariance = 0.3 * np.eye(3) + 0.7
    z = np.random.default_rng(2).multivariate_normal(np.zeros(3), covariance, size=1400)
    X, masks = np.exp(z), np.array([[False, True, True], [True, False, True]])
    gain, variance = 0.7 / 1.7, 1 - 2 * 0.7**2 / 1.7
    truth = []
    for mask in masks:
        unknown = z[1000:, ~mask][:, 0]
        truth.append(norm(z[1000:, mask].sum(1) * gain, np.sqrt(variance)).logpdf(unknown) - unknown)
    gaps = {}
    for name in ("standard", "support"):
        model = Networks(VAEACConfig(epochs=60, scales=(name,) * 2)).fit(X[:1000], [0] * 3, seed=1)
        gaps[name] = (np.stack(truth) - model.log_likelihood(X[1000:], masks)).mean(1)
    assert (np.abs(gaps["support"]) < 0.05).all()
    assert (gaps["standard"] > 0.1).all()


def test_log_likelihood_is_in_units_of_the_rows_and_finite_for_rows_outside():
    X = bounded_rows(200)[:, :2]
    masks = np.zeros((1, 2), bool)
    ends = np.array([[0.0, 0.0], [inf, 1.0]])
    a = Networks(SUPPORT).fit(X, [0, 0], support=ends)
    b = Networks(SUPPORT).fit(8 * X, [0, 0], support=8 * ends)
    keys = np.arange(200)
    difference = a.log_likelihood(X, masks, keys=keys) - b.log_likelihood(8 * X, masks, keys=keys)
    assert difference == pytest.approx(2 * np.log(8), abs=1e-3)
    outside = a.log_likelihood(np.array([[-1.0, 0.5], [0.0, 0.5], [1e-300, 0.5], [1.0, 1.0]]), masks)[0]
    assert np.isfinite(outside).all()
    assert (outside < a.log_likelihood(X, masks).mean()).all()


# --- the options around it --------------------------------------------------------------------------------------------


def test_saved_networks_draw_the_same_and_can_go_on(tmp_path):
    X = bounded_rows(120)[:, :6]
    options = {"epochs": 4, "width": 8, "latent": 2, "patience": None, "scales": ["support", "normal_scores"]}
    options["kl_warmup"] = 2
    network = cs.VAEACNetworks(**options, device="cpu").fit(X, support={"x1": (0, inf)}, seed=3)
    network.save(tmp_path / "network.safetensors", keep_optimiser=True)
    again = cs.VAEACNetworks.load(tmp_path / "network.safetensors", device="cpu")
    masks = np.array([[False] * 6, [True] * 3 + [False] * 3])
    assert isinstance(again.networks_.fitted_.columns.scales["support"], SupportScale)
    assert np.array_equal(again.sample(X[:9], masks, 16), network.sample(X[:9], masks, 16))
    assert np.array_equal(again.log_likelihood(X[:9], masks), network.log_likelihood(X[:9], masks))
    at_once = cs.VAEACNetworks(**{**options, "epochs": 7}, device="cpu").fit(X, support={"x1": (0, inf)}, seed=3)
    again.continue_training(X, 3)
    assert np.array_equal(again.sample(X[:9], masks, 16), at_once.sample(X[:9], masks, 16))


def test_a_support_scale_needs_a_support_to_respect():
    with pytest.raises(OptionError, match="'support' needs respect_support=True"):
        replace(SUPPORT, respect_support=False)
    with pytest.raises(OptionError, match="'support' needs respect_support=True"):
        cs.VAEACNetworks.paper(scales=["support"]).fit(bounded_rows(20))
    assert VAEACConfig.paper().scales == ("standard",)


def test_ends_that_are_not_declared_are_those_of_the_training_rows():
    X = bounded_rows()[:, :3]
    partly = learn(X, np.array([[nan, 0.0, nan], [nan, 1.0, 9.0]])).support
    assert np.array_equal(partly[:, 0], [X[:, 0].min(), X[:, 0].max()])
    assert 0 < partly[0, 1] < X[:, 1].min()
    assert partly[0, 2] == 0 < X[:, 2].max() < partly[1, 2] < 9


def test_a_support_as_wide_as_floats_go_overflows_nowhere():
    X = np.array([[-1e308], [0.5], [1e308], [3e307]])
    columns = learn(X, np.array([[-1.7e308], [1.7e308]]))
    assert -1.7e308 < columns.support[0] < -1.6999e308
    assert 1.6999e308 < columns.support[1] < 1.7e308
    encoded = columns.scales["support"].encode(X)
    assert encoded.mean() == pytest.approx(0, abs=1e-6)
    back = torch.empty((1, 1, 4), dtype=torch.float64)
    FromSupport.of(columns.scales["support"], CPU)(torch.from_numpy(encoded.T[:, None]), back)
    assert back.flatten().numpy() == pytest.approx(X[:, 0], rel=1e-6, abs=1e300)
    assert np.isfinite(columns.log_slopes(X)).all()
    assert learn(np.array([[1e308], [1.5e308]]), np.array([[-1.7e308], [inf]])).support.tolist() == [[-1.7e308], [inf]]
