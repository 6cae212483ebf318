"""What `benchmarks.coalitions` compares with: games whose truth is known, and R shapr's procedure."""

from math import comb

import numpy as np
import pytest

from benchmarks.investigations import game_suite
from benchmarks.investigations.coalitions import NUMBERS, Run, over_designs, summarise, table
from benchmarks.lib.games import Boosted, Chain, ClosedForm, Unanimity, exact_values, unpack
from benchmarks.lib.shapr_iterative import Draws, iterate, without_stopping
from condshap.coalitions import all_coalitions
from condshap.numerics.shapley import exact_shapley


def test_closed_forms_are_the_conditional_expectations():
    # 200,000 draws given x_S: within five standard errors, so a false alarm once in two million
    game = ClosedForm(5, 2, seed=3, interactions=True)
    mask = np.array([[True, False, True, False, False]])
    mean, variance = game.factor.given(game.rows, mask.astype(float))
    rng = np.random.default_rng(0)
    for row in range(2):
        U = mean[0, row] + np.sqrt(variance[0, 0]) * rng.normal(size=(200_000, 1))
        draws = game.factor.loadings * U + game.factor.rest * rng.normal(size=(200_000, 5))
        draws[:, mask[0]] = game.rows[row, mask[0]]
        outputs = game.predict(draws)
        assert abs(outputs.mean() - game.values(mask)[0, row]) < 5 * outputs.std() / np.sqrt(200_000)


def test_closed_forms_of_a_chain_are_the_conditional_expectations():
    # 200,000 draws given x_S by the joint normal distribution: within five standard errors, a false alarm in a million
    game, rng = Chain(5, 2, seed=3), np.random.default_rng(0)
    mask = np.array([False, True, False, False, True])
    covariance = game.rho ** np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
    pull = np.linalg.solve(covariance[np.ix_(mask, mask)], covariance[np.ix_(mask, ~mask)])
    left = covariance[np.ix_(~mask, ~mask)] - covariance[np.ix_(~mask, mask)] @ pull
    for row in range(2):
        draws = np.tile(game.rows[row], (200_000, 1))
        draws[:, ~mask] = rng.multivariate_normal(game.rows[row, mask] @ pull, left, 200_000)
        outputs = game.predict(draws)
        assert abs(outputs.mean() - game.values(mask[None])[0, row]) < 5 * outputs.std() / np.sqrt(200_000)
    np.testing.assert_allclose(game.values(np.ones((1, 5), dtype=bool))[0], game.predict(game.rows))


def test_suite_of_games_judges_before_and_now_and_where_auto_stops(monkeypatch):
    monkeypatch.setattr(game_suite, "GAMES", {"sets": lambda *given: Unanimity(*given, largest=5)})
    monkeypatch.setattr(game_suite, "ROWS", {8: 2})
    results = list(game_suite.run_game("sets", 8, 1, 2))
    assert len(results) == 2 * 3 + 3
    assert all(0 < one["ratio"] < 1 for one in results[:6])
    text = game_suite.tables(results)
    assert "| sets | 8 | 10 P |" in text
    assert "tolerance 2%: coalitions a row" in text


def test_bound_of_the_suite_knows_the_size_of_every_interaction():
    # with all pairs and no noise it is exact; with noise it is between noise alone and the kriging that must guess
    game = game_suite.Tabulated(Unanimity(8, 3, 1, largest=5))
    masks = unpack(np.arange(256), 8)
    products = np.stack([np.where(masks[:, mask], 1.0, -1.0).prod(axis=1) for mask in masks], axis=1)
    np.testing.assert_allclose(products @ game_suite.coefficients(game.v), game.v, atol=1e-10)
    assert game_suite.bounded(game, 252, 0.0, 0)[2] < 1e-5
    runs = np.mean([game_suite.bounded(game, 82, 0.03, seed) for seed in range(6)], axis=0)
    assert runs[3] < runs[2] < runs[1] < runs[0]


@pytest.mark.parametrize(
    "make", [lambda: ClosedForm(9, 3, 1, interactions=True), lambda: Boosted(9, 3, 1, conditional=True)]
)
def test_truth_comes_from_all_coalitions_and_ends_at_the_prediction(make):
    game, plan = make(), all_coalitions(9)
    v = game.values(plan.masks)
    np.testing.assert_allclose(exact_values(game), exact_shapley(v, plan.masks), atol=1e-10)
    np.testing.assert_allclose(v[-1], game.predict(game.rows), rtol=1e-6)


def test_draws_of_shapr_are_paired_and_weighted_by_the_chance_of_having_come():
    draws = Draws(6, seed=0)
    draws.grow(30)
    assert len(draws.counts) == 30
    assert all(draws.counts[63 - code] == n for code, n in draws.counts.items())
    q = 5 / (2 * 4) / sum(5 / (s * (6 - s)) for s in range(1, 6)) / comb(6, 2)
    np.testing.assert_allclose(draws.weights(np.array([2]), 40), q / (1 - (1 - q) ** 40))
    assert unpack(np.array([5]), 4).tolist() == [[True, False, True, False]]


def test_procedure_stops_at_once_for_an_additive_game_and_goes_on_for_a_difficult_one():
    rng = np.random.default_rng(0)
    slopes, noise = rng.normal(size=(12, 3)), rng.normal(size=(2**12, 3))
    easy = iterate(lambda masks: masks @ slopes, 12, seed=0, tolerance=0.02)
    assert easy.n_coalitions == 200
    np.testing.assert_allclose(easy.phi, slopes, atol=1e-9)

    def difficult(masks):
        return masks @ slopes + 0.3 * noise[masks @ (1 << np.arange(12))]

    median, every = (iterate(difficult, 12, seed=0, tolerance=0.02, every_row=rule) for rule in (False, True))
    assert 200 < median.n_coalitions < every.n_coalitions
    spread = np.ptp(median.phi, axis=0)
    assert np.median(median.sd.max(axis=0) / spread) <= 0.0201
    again = without_stopping(difficult, 12, seed=0, numbers=[100, median.n_coalitions])[1]
    np.testing.assert_allclose(again, median.phi, atol=1e-12)


def test_table_has_a_verdict():
    truth = np.array([[0.0, 0.0], [1.0, 2.0]])
    run = Run(np.array([100, 50]), truth + 0.02, np.full((2, 2), 0.02))
    found = summarise([run], truth)
    assert found["coalitions"] == 75
    assert found["worst_row_coalitions"] == 100
    assert found["worst_row"] == pytest.approx(0.02)
    assert found["within_2_se"] == 1.0
    design = {"ours": found, "shapr": found, "shapr_every_row": found, "shapr_same_error": 200, "ratio": 0.61}
    assert _line([design]).endswith("| 200 | 0.61 | 0.61 to 0.61 | **no** |")
    lucky = {**design, "ratio": 0.59, "shapr_same_error": None, "ours": {**found, "worst_row": 0.03, "coalitions": 25}}
    both = _line([design, lucky])
    assert both.endswith(f"| over {NUMBERS[-1]} | 0.60 | 0.59 to 0.61 | yes |")
    assert both.startswith("| a | 50 | 100 | 3.0% |")  # coalitions are means, the error is the largest


def _line(designs):
    return table([{"case": "a", **over_designs(designs), "designs": designs}]).splitlines()[-1]
