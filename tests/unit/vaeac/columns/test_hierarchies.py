"""Where one column determines another, draws keep to it."""

import numpy as np
import pandas as pd
import pytest
import torch

import condshap as cs
from condshap.seeding import row_keys
from condshap.vaeac.columns.hierarchies import Hierarchies

QUICK = {"epochs": 3, "width": 8, "depth": 1, "latent": 2, "patience": None, "progress": False, "device": "cpu"}
COUNTRY, CITY, SIZE, STATE = range(4)


def rows(n=300, seed=0):
    """Twelve cities in six states in three countries, and a number."""
    rng = np.random.default_rng(seed)
    city = rng.integers(0, 12, n)
    return np.column_stack([city % 3, city, rng.normal(size=n), city % 6]).astype(float)


def table(n=300, seed=0):
    X = rows(n, seed)
    names = {"country": "abc", "city": "ABCDEFGHIJKL", "state": "uvwxyz"}
    columns = {
        name: pd.Categorical.from_codes(X[:, j].astype(int), list(names[name]))
        for name, j in (("country", COUNTRY), ("city", CITY), ("state", STATE))
    }
    return pd.DataFrame(columns | {"size": X[:, SIZE], "zone": 2.0 ** X[:, COUNTRY]})


def model(X):
    return X["country"].cat.codes * 1.0 + X["city"].cat.codes * 0.1 * X["size"] + X["zone"]


def fitted(X, f=model, **options):
    order = options.pop("causal_ordering", None)
    causal = {} if order is None else {"causal_ordering": order, "confounding": False}
    approach = cs.approaches.VAEAC(**QUICK, **options)
    return cs.Explainer(f, approach=approach, check_draws=False, progress=False, **causal).fit(X)


def agree(drawn):
    return (drawn[..., CITY] % 6 == drawn[..., STATE]).all() and (drawn[..., STATE] % 3 == drawn[..., COUNTRY]).all()


def noise(shape, seed=0):
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, 3, shape), rng.integers(0, 12, shape), rng.normal(size=shape), rng.integers(0, 6, shape)]
    return np.stack(columns, axis=-1).astype(float)


def test_what_determines_others_is_found_whatever_gaps_there_are():
    X = rows()
    X[::7, CITY], X[::5, COUNTRY] = np.nan, np.nan
    found = Hierarchies.find(X)
    assert sorted(zip(found.lower, found.upper, strict=True)) == [(CITY, COUNTRY), (CITY, STATE), (STATE, COUNTRY)]
    assert found.lower.tolist() == [CITY, CITY, STATE]
    assert Hierarchies.find(X, apart=[CITY]).lower.tolist() == [STATE]


@pytest.mark.parametrize(
    "X",
    [
        np.column_stack([np.arange(60.0), np.arange(60) % 2]),  # a number of its own in every row
        np.repeat(np.random.default_rng(0).normal(size=(20, 2)), 10, axis=0),  # rows that are there ten times
        np.column_stack([np.arange(60) % 3, np.arange(60) == 7]).astype(float),  # but for one row
        np.column_stack([np.arange(60) % 3, np.zeros(60)]),  # nothing to determine
        np.column_stack([np.arange(60) < 2, np.arange(60) < 2]).astype(float)[:12],  # a dozen rows tell little
        np.random.default_rng(0).integers(0, 2, (40, 12)).astype(float),
    ],
)
def test_chance_and_copies_determine_nothing(X):
    assert Hierarchies.find(X) is None


def test_rare_levels_are_found_by_chance_in_less_than_one_table_of_a_thousand():
    # 1000 tables of 60 rows with a rare level in each of 8 columns: by the limit one in a million has a pair
    rng = np.random.default_rng(0)
    assert all(Hierarchies.find((rng.random((60, 8)) < 0.05).astype(float)) is None for _ in range(1000))


@pytest.mark.parametrize("known", [[], [COUNTRY], [CITY], [STATE], [COUNTRY, STATE], [SIZE], [CITY, SIZE]])
def test_draws_agree_and_what_is_known_stays(known):
    hierarchies, drawn = Hierarchies.find(rows()), noise((2, 5, 64))
    mask = np.isin(np.arange(4), known)
    drawn[..., mask] = rows(5, seed=3)[:, None, mask]
    before = drawn.copy()
    found = hierarchies.keep_to(drawn, np.broadcast_to(mask, (2, 5, 4)))
    assert agree(found)
    np.testing.assert_array_equal(found[..., mask], before[..., mask])
    np.testing.assert_array_equal(found[..., SIZE], before[..., SIZE])


def test_what_is_lower_gives_way_where_nothing_is_known():
    hierarchies, drawn = Hierarchies.find(rows()), noise((1, 3, 256))
    before = drawn.copy()
    hierarchies.keep_to(drawn, np.zeros((1, 3, 4), dtype=bool))
    np.testing.assert_array_equal(drawn[..., COUNTRY], before[..., COUNTRY])
    assert (drawn[..., CITY] != before[..., CITY]).mean() > 0.5
    assert set(np.unique(drawn[..., CITY])) == set(range(12))


def test_a_single_draw_has_nothing_to_choose_from():
    hierarchies, drawn = Hierarchies.find(rows()), noise((1, 200, 1))
    before = drawn.copy()
    hierarchies.keep_to(drawn, np.zeros((1, 200, 4), dtype=bool))
    assert agree(drawn)
    np.testing.assert_array_equal(drawn[..., CITY], before[..., CITY])  # so the country follows
    known = np.broadcast_to(np.arange(4) == COUNTRY, (1, 200, 4))
    hierarchies.keep_to(before, known)
    assert agree(before)


@pytest.mark.parametrize("n_samples", [1, 64])
@pytest.mark.parametrize("known", [[], [0], [1], [0, 1], [2]])
def test_draws_agree_with_all_that_is_known_where_one_column_determines_two(known, n_samples):
    rng = np.random.default_rng(0)
    product = rng.integers(0, 20, 2000)  # of a category and a brand, neither of which determines the other
    X = np.column_stack([product % 4, product // 4, product, rng.normal(size=2000)]).astype(float)
    drawn, mask = rng.permuted(np.repeat(X[None, :500, None], n_samples, axis=2), axis=1), np.isin(np.arange(4), known)
    drawn[..., mask] = X[:500, None, mask]
    drawn[..., 2] = rng.integers(0, 20, drawn.shape[:3]) if 2 not in known else drawn[..., 2]
    found = Hierarchies.find(X).keep_to(drawn, np.broadcast_to(mask, (1, 500, 4)))
    assert (found[..., 2] % 4 == found[..., 0]).all()
    assert (found[..., 2] // 4 == found[..., 1]).all()
    assert (found[..., mask] == X[:500, None, mask]).all()


@pytest.mark.parametrize("n_samples", [1, 4])
def test_draws_agree_where_two_columns_determine_one(n_samples):
    rng = np.random.default_rng(0)
    country = rng.integers(0, 3, 2000)
    city, plant = country * 4 + rng.integers(0, 4, 2000), country * 3 + rng.integers(0, 3, 2000)
    hierarchies = Hierarchies.find(np.column_stack([country, city, plant, rng.normal(size=2000)]).astype(float))
    drawn = np.stack([rng.integers(0, n, (1, 500, n_samples)) for n in (3, 12, 9, 2)], axis=-1).astype(float)
    hierarchies.keep_to(drawn, np.zeros((1, 500, 4), dtype=bool))
    assert (drawn[..., 1] // 4 == drawn[..., 0]).all()
    assert (drawn[..., 2] // 3 == drawn[..., 0]).all()


@pytest.mark.parametrize("known", [[], [1], [4], [2, 4], [7]])
def test_many_statistics_of_a_district_take_few_pairs_and_agree(known):
    rng = np.random.default_rng(0)
    district, statistics = rng.integers(0, 40, 2000), rng.normal(size=(40, 6))
    X = np.column_stack(
        [statistics[district, :4], district, statistics[district, 4:], district % 5, rng.normal(size=2000)]
    )
    hierarchies = Hierarchies.find(X)
    assert len(hierarchies.lower) == 13  # district -> six statistics and the region, each statistic -> district
    mask, drawn = np.isin(np.arange(9), known), X[rng.integers(0, 2000, (1, 50, 16, 9)), np.arange(9)]
    drawn[..., [0, 1, 2, 3, 5, 6]] += 0.01  # as networks draw numbers
    drawn[..., mask] = X[:50, None, mask]
    found = hierarchies.keep_to(drawn, np.broadcast_to(mask, (1, 50, 9)))
    at = found[..., 4].astype(int)
    np.testing.assert_array_equal(found[..., [0, 1, 2, 3, 5, 6]], statistics[at])
    np.testing.assert_array_equal(found[..., 7], at % 5)
    np.testing.assert_array_equal(found[..., mask], np.broadcast_to(X[:50, None, mask], (1, 50, 16, mask.sum())))


def test_of_numbers_that_say_the_same_the_first_speaks_for_the_others():
    rng = np.random.default_rng(0)
    district = rng.integers(0, 40, 2000)
    X = np.column_stack([rng.normal(size=(40, 3))[district], rng.normal(size=2000), district % 2])
    found = Hierarchies.find(X)
    pairs = set(zip(found.lower.tolist(), found.upper.tolist(), strict=True))
    assert pairs == {(0, 1), (0, 2), (0, 4), (1, 0), (2, 0)}


def test_single_draws_that_give_way_are_as_frequent_as_in_training_rows():
    rng = np.random.default_rng(0)
    city = rng.choice(6, 4000, p=[0.05, 0.05, 0.4, 0.3, 0.1, 0.1])  # in countries 0 and 1 by turns
    hierarchies = Hierarchies.find(np.column_stack([city % 2, city, rng.normal(size=4000)]).astype(float))
    drawn = np.column_stack([np.zeros(512), np.ones(512), np.zeros(512)])[None, :, None]  # a city of the other country
    known = np.broadcast_to([True, False, False], (1, 512, 3))
    hierarchies.keep_to(drawn, known, np.arange(512) % 64)
    counts, trained = np.bincount(drawn[0, :, 0, 1].astype(int), minlength=6), np.bincount(city, minlength=6)
    np.testing.assert_allclose(counts[::2] / 512, trained[::2] / trained[::2].sum(), atol=0.03)
    assert (counts[1::2] == 0).all()


def test_cities_along_a_chain_are_not_all_the_first_ones_of_their_countries():
    X = table()[["country", "city", "size"]]
    explainer = fitted(X, lambda Z: Z["size"])
    approach, encoded = explainer.parts_[0].approach, explainer.schema_.encode(X[:40])
    several, mask, keys = np.repeat(encoded[:, None], 32, axis=1), np.array([True, False, False]), row_keys(encoded)
    drawn = approach.sample_each(several, mask, keys=keys, seed=0)
    approach.hierarchies_ = None
    changed = drawn[..., 1] != approach.sample_each(several, mask, keys=keys, seed=0)[..., 1]
    assert (drawn[..., 1] % 3 == drawn[..., 0]).all()
    assert np.bincount(drawn[changed, 1].astype(int), minlength=12).max() < 0.2 * changed.sum()


def test_values_that_nobody_has_seen_together_stay():
    hierarchies, drawn = Hierarchies.find(rows()), noise((1, 1, 8))
    drawn[..., CITY] = 77
    found = hierarchies.keep_to(drawn.copy(), np.zeros((1, 1, 4), dtype=bool))
    np.testing.assert_array_equal(found[..., CITY], drawn[..., CITY])
    drawn[..., CITY], drawn[..., COUNTRY] = 3, np.nan  # a gap that is to stay
    known = np.broadcast_to(np.arange(4) == COUNTRY, (1, 1, 4))
    assert np.isnan(hierarchies.keep_to(drawn, known)[..., COUNTRY]).all()


def test_tensors_are_put_right_in_the_same_way():
    hierarchies, drawn, known = Hierarchies.find(rows()), noise((2, 5, 32)), np.zeros((2, 5, 4), dtype=bool)
    known[1, :, COUNTRY] = True
    there = hierarchies.keep_to(torch.as_tensor(drawn.astype(np.float32)), known).numpy()
    np.testing.assert_allclose(there, hierarchies.keep_to(drawn, known), rtol=1e-6)


@pytest.mark.parametrize("order", [None, [["size"], ["city", "country", "zone", "state"]]])
def test_explanations_see_no_city_in_another_country(order):
    X = table()
    seen = []

    def watching(Z):
        seen.append(set(zip(Z["city"], Z["country"], Z["zone"], strict=True)))
        return model(Z)

    explainer = fitted(X, watching, causal_ordering=order)
    seen.clear()  # of rows that only try the model out
    explainer.explain(X[:5])
    assert set.union(*seen) <= set(zip(X["city"], X["country"], X["zone"], strict=True))


def test_an_additive_model_is_answered_by_draws_that_agree():
    X = table()
    found = fitted(X, lambda Z: Z["country"].cat.codes * 2.0).explain(X[:6])
    at = {name: i for i, name in enumerate(found.feature_names)}
    by_zone = fitted(X, lambda Z: np.log2(Z["zone"]) * 2.0).explain(X[:6])
    np.testing.assert_allclose(found.values[:, at["country"]], by_zone.values[:, at["zone"]], atol=0.1)


def test_saved_and_loaded_and_with_one_row_alone_the_numbers_are_the_same(tmp_path):
    X = table()
    explainer = fitted(X)
    explainer.save(tmp_path / "e.condshap")
    found = explainer.explain(X[:4]).values
    np.testing.assert_array_equal(cs.load_explainer(tmp_path / "e.condshap", model).explain(X[:4]).values, found)
    np.testing.assert_array_equal(explainer.explain(X[1:2]).values, found[1:2])


@pytest.mark.parametrize("way", ["sample", "sample_start", "sample_each"])
def test_a_gap_that_is_filled_agrees_with_what_is_known(way):
    X = table().drop(columns="zone")
    X.loc[::9, "country"] = None
    explainer = fitted(X, lambda Z: Z["size"], fill_missing=True)
    approach, encoded = explainer.parts_[0].approach, explainer.schema_.encode(X.iloc[::9])
    mask, keys = np.array([True, True, False, False]), row_keys(encoded)  # country, city
    if way == "sample":
        drawn = approach.sample(encoded, mask[None], 8, keys=keys, seed=0).rows[0]
    elif way == "sample_start":
        drawn = approach.sample_start(encoded, mask, 8, keys=keys, seed=0).rows[0]
    else:
        drawn = approach.sample_each(np.repeat(encoded[:, None], 8, axis=1), mask, keys=keys, seed=0)
    np.testing.assert_array_equal(drawn[..., 0], np.repeat(encoded[:, None, 1] % 3, 8, axis=1))


def test_the_paper_knows_no_hierarchies():
    X = table()
    explainer = fitted(X, exact_repeats=False)
    approach = explainer.parts_[0].approach
    assert approach.hierarchies_ is None
    encoded = explainer.schema_.encode(X[:5])
    drawn = approach.sample(encoded, np.zeros((1, 5), dtype=bool), 64, keys=row_keys(encoded), seed=0).rows
    assert (drawn[..., 1] % 3 != drawn[..., 0]).any()
    assert not cs.approaches.VAEAC.paper().exact_repeats
