"""Columns that repeat others exactly follow from them."""

import numpy as np
import pandas as pd
import pytest

import condshap as cs
from condshap.seeding import row_keys
from condshap.vaeac.columns.repeats import Repeats

QUICK = {"epochs": 6, "width": 8, "depth": 1, "latent": 2, "patience": None, "progress": False, "device": "cpu"}


def table(n=60, seed=0):
    rng = np.random.default_rng(seed)
    celsius, level = rng.normal(10, 5, n), rng.integers(0, 3, n)
    return pd.DataFrame(
        {
            "celsius": celsius,
            "wind": celsius / 5 + rng.normal(size=n),
            "code": pd.Categorical(np.array(["x", "y", "z"])[level]),
            "fahrenheit": 32 + 1.8 * celsius,
            "name": pd.Categorical(np.array(["zero", "one", "two"])[level]),
        }
    )


def model(X):
    code = X["code"].astype(str).map({"x": 0.0, "y": 1.0, "z": 3.0}).astype(float).fillna(7.0)
    return X["celsius"] * 0.3 + X["fahrenheit"] * 0.2 + X["wind"] ** 2 / 5 + code


def fitted(X, f=model, check_draws=False, **options):
    return cs.Explainer(
        f, approach=cs.approaches.VAEAC(**QUICK), check_draws=check_draws, progress=False, **options
    ).fit(X)


def approach_of(explainer):
    return explainer.parts_[0].approach


def test_lines_and_names_are_found():
    explainer = fitted(table())
    repeats = approach_of(explainer).repeats_
    assert repeats.kept.tolist() == [0, 1, 2]
    assert repeats.source.tolist() == [0, 1, 2, 0, 2]
    assert (repeats.offset[3], repeats.slope[3]) == pytest.approx((32, 1.8))


def test_numbers_of_32_bits_are_exact_too():
    x = np.random.default_rng(0).integers(0, 50, 60).astype(float)
    packs = (x / 20).astype(np.float32).astype(float)  # cigarettes, as a file of Stata has them
    assert np.abs(packs - x / 20).max() > 1e-8 * packs.max()
    repeats = Repeats.find(np.column_stack([x, packs]), [0, 0])
    assert repeats is not None
    assert repeats.slope[1] == pytest.approx(1 / 20)


@pytest.mark.parametrize(
    "other",
    [
        lambda x: x + 1e-6 * np.random.default_rng(1).normal(size=len(x)),  # nearly
        lambda x: np.exp(x),  # no line
        lambda x: np.where(np.arange(len(x)) == 7, x + 1, x),  # but for one row
        lambda x: np.full(len(x), 3.0),
    ],
)
def test_what_is_not_exact_is_learned(other):
    x = np.random.default_rng(0).normal(size=60)
    assert Repeats.find(np.column_stack([x, other(x)]), [0, 0]) is None


def test_chance_is_no_repeat():
    rare = np.zeros(60)
    rare[[3, 30, 40]] = 1, 2, 5
    two = (np.arange(60) % 2).astype(float)
    few = np.random.default_rng(0).normal(size=12)
    assert Repeats.find(np.column_stack([rare, 2 * rare]), [0, 0]) is None  # three rows tell it
    assert Repeats.find(np.column_stack([two, 3 * two]), [0, 0]) is None  # two points are on any line
    assert Repeats.find(np.column_stack([few, 3 * few]), [0, 0]) is None
    codes = np.random.default_rng(1).integers(0, 3, 60).astype(float)
    merged = np.minimum(codes, 1)
    assert Repeats.find(np.column_stack([codes, merged]), [3, 2]) is None  # not one by one


def test_draws_repeat_as_rows_do_and_known_columns_stay():
    X = table()
    explainer = fitted(X)
    rows, masks = (
        explainer.schema_.encode(X[:5]),
        np.array([[0, 0, 0, 0, 0], [0, 1, 0, 1, 0], [1, 0, 0, 0, 1]], dtype=bool),
    )
    drawn = approach_of(explainer).sample(rows, masks, 16, keys=row_keys(rows), seed=0).rows
    np.testing.assert_allclose(drawn[..., 3], 32 + 1.8 * drawn[..., 0], rtol=1e-12)
    pairs = set(map(tuple, drawn[..., [2, 4]].reshape(-1, 2)))
    assert pairs <= set(map(tuple, explainer.schema_.encode(X)[:, [2, 4]]))
    for c, mask in enumerate(masks):
        np.testing.assert_array_equal(drawn[c][:, :, mask], np.broadcast_to(rows[:, None, mask], (5, 16, mask.sum())))
    assert np.ptp(drawn[0, 0, :, 0]) > 1  # and vary where nothing is known


def test_repeats_share_their_value_evenly_whatever_the_model_reads():
    X = table()
    found = fitted(X, lambda Z: Z["celsius"] ** 2 + Z["wind"]).explain(X[:4])
    at = {name: i for i, name in enumerate(found.feature_names)}
    np.testing.assert_allclose(found.values[:, at["celsius"]], found.values[:, at["fahrenheit"]], atol=1e-9)
    np.testing.assert_allclose(found.values[:, at["code"]], found.values[:, at["name"]], atol=1e-9)


def test_rows_that_do_not_repeat_see_only_what_is_known():
    X = table()
    explainer = fitted(X)
    odd = X[:2].copy()
    odd.loc[0, "fahrenheit"] = 100.0  # at 37.8 degrees, whatever celsius says
    rows = explainer.schema_.encode(odd)
    masks = np.array([[0, 0, 0, 1, 0], [1, 0, 0, 0, 0]], dtype=bool)
    drawn = approach_of(explainer).sample(rows, masks, 8, keys=row_keys(rows), seed=0).rows
    np.testing.assert_allclose(drawn[0, 0, :, 0], (100 - 32) / 1.8)
    np.testing.assert_allclose(drawn[1, 0, :, 3], 32 + 1.8 * rows[0, 0])
    alone = approach_of(explainer).sample(rows[1:], masks, 8, keys=row_keys(rows[1:]), seed=0).rows
    np.testing.assert_array_equal(alone[:, 0], drawn[:, 1])


@pytest.mark.parametrize("fills", [True, False])
def test_gaps_of_one_are_known_by_the_other_only_where_that_is_known(fills):
    X = table(80)
    X.loc[::4, "celsius"] = np.nan
    X.loc[1::9, "name"] = np.nan

    def refuses(Z):
        if fills and Z.isna().to_numpy().any():
            raise ValueError("no gaps, please")
        return model(Z.fillna({"celsius": 0.0}))

    explainer = fitted(X, refuses)
    assert approach_of(explainer).fills_missing_ is fills
    rows = explainer.schema_.encode(X[:1])
    masks = np.array([[1, 0, 0, 0, 0], [1, 0, 0, 1, 0]], dtype=bool)
    drawn = approach_of(explainer).sample(rows, masks, 8, keys=row_keys(rows), seed=0).rows[:, 0]
    celsius = (X["fahrenheit"][0] - 32) / 1.8
    if fills:
        assert np.ptp(drawn[0, :, 0]) > 0.1
        np.testing.assert_allclose(drawn[1, :, 0], celsius)
    else:
        assert np.isnan(drawn[..., 0]).all()
        assert np.ptp(drawn[0, :, 3]) > 0.1  # fahrenheit is hidden, and a gap tells nothing of it
    assert np.isfinite(explainer.explain(X[:6]).values).all()


def test_saved_and_loaded_the_numbers_are_the_same(tmp_path):
    X = table()
    explainer = fitted(X)
    explainer.save(tmp_path / "e.condshap")
    loaded = cs.load_explainer(tmp_path / "e.condshap", model)
    np.testing.assert_array_equal(loaded.explain(X[:3]).values, explainer.explain(X[:3]).values)


def test_draws_on_a_device_are_the_same():
    X = table()
    explainer = fitted(X)
    rows, masks = explainer.schema_.encode(X[:5]), explainer.masks_[1:9]
    rows[0, 3] += 1.0  # one that does not repeat
    asked = {"keys": row_keys(rows), "seed": 0}
    there = approach_of(explainer).sample_on(rows, masks, 8, device="cpu", **asked).rows.numpy()
    np.testing.assert_allclose(there, approach_of(explainer).sample(rows, masks, 8, **asked).rows, rtol=1e-6)


def test_sampled_coalitions_and_a_single_column_that_is_learned():
    rng = np.random.default_rng(0)
    x = rng.normal(size=50)
    X = pd.DataFrame({name: x * (i + 1) for i, name in enumerate("abcd")})
    found = fitted(X, lambda Z: Z["a"] ** 2, n_coalitions=14).explain(X[:3])
    np.testing.assert_allclose(found.values, found.values[:, :1].repeat(4, axis=1), atol=1e-9)


def test_additive_models_and_the_paper():
    X = table()[["celsius", "wind", "fahrenheit"]]
    found = fitted(X, lambda Z: Z["celsius"] + 2.0 * Z["wind"], additive=True).explain(X[:3])
    np.testing.assert_allclose(found.values[:, 0], found.values[:, 2], atol=0.2)
    assert not cs.approaches.VAEAC.paper().exact_repeats
    support = cs.approaches.VAEAC(**QUICK, support={"fahrenheit": (-500, 500)})
    explainer = cs.Explainer(model, approach=support, check_draws=False, progress=False).fit(table())
    assert approach_of(explainer).repeats_.kept.tolist() == [0, 1, 2, 3]
