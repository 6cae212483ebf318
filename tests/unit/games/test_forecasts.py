"""Explained forecasts: a closed form, no look ahead, any approach and model, and what is refused."""

from __future__ import annotations

from itertools import permutations

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.multioutput import MultiOutputRegressor

import condshap as cs
from condshap.exceptions import ModelError, OptionError, SchemaError

mpl.use("Agg")

T = 160
DAYS = pd.date_range("2024-01-01", periods=T)


def _made():
    """An AR(2) process driven by temperature and weekends."""
    rng = np.random.default_rng(11)
    temp = rng.normal(size=T).cumsum() * 0.3
    y = np.zeros(T)
    for t in range(2, T):
        y[t] = 0.6 * y[t - 1] - 0.3 * y[t - 2] + 0.5 * temp[t - 1] + (DAYS[t].weekday() > 4) + 0.3 * rng.normal()
    weekend = pd.Categorical(np.where(DAYS.day_of_week > 4, "yes", "no"))
    return pd.Series(y, DAYS, name="sales"), pd.DataFrame({"temp": temp, "weekend": weekend}, DAYS)


SALES, OTHER = _made()
LAYOUT = {"lags": 3, "horizon": 2, "exogenous": OTHER[["temp"]], "exogenous_lags": 2}
TRAINED = {**LAYOUT, "exogenous": OTHER[["temp"]][:120]}


@pytest.fixture(scope="module")
def linear():
    return LinearRegression().fit(*cs.lagged_table(SALES[:120], **TRAINED))


def _closed_form(rows, x, model, players):
    """Shapley values (P, O) of a linear model under a normal distribution with the moments of `rows`."""
    mean, cov = rows.mean(0), np.cov(rows.T)

    def v(known):
        known = sorted(known)
        free = [j for j in range(len(mean)) if j not in known]
        filled = x.copy()
        slopes = np.linalg.lstsq(cov[np.ix_(known, known)], cov[np.ix_(known, free)], rcond=None)[0] if known else 0.0
        filled[free] = mean[free] + ((x[known] - mean[known]) @ slopes if known else 0.0)
        return model.coef_ @ filled + model.intercept_

    values = np.zeros((len(players), len(model.coef_)))
    orders = list(permutations(range(len(players))))
    for order in orders:
        known: list[int] = []
        for p in order:
            values[p] += v(known + players[p]) - v(known)
            known = known + players[p]
    return values / len(orders)


@pytest.mark.parametrize(
    ("group_by", "players"), [("variable", [[0, 1, 2], [3, 4]]), ("lag", [[0], [1], [2], [3], [4]])]
)
def test_a_linear_model_with_the_gaussian_approach_has_a_closed_form(linear, group_by, players):
    found = cs.explain_forecast(linear, SALES, **LAYOUT, at=DAYS[140], approach="gaussian", group_by=group_by)
    lags = [SALES.shift(k) for k in range(3)] + [OTHER["temp"].shift(k) for k in range(2)]
    windows = np.column_stack(lags)
    expected = _closed_form(windows[2:140], windows[140], linear, players)
    np.testing.assert_allclose(found.values[0], expected, atol=1e-8)
    np.testing.assert_allclose(found.base_values[0], linear.coef_ @ windows[2:140].mean(0) + linear.intercept_)
    np.testing.assert_allclose(found.predictions[0], linear.coef_ @ windows[140] + linear.intercept_)
    assert found.output_names == ("t+1", "t+2")
    assert found.data.index.tolist() == [DAYS[140]]


def test_players_are_variables_or_single_columns(linear):
    one = cs.explain_forecast(linear, SALES, **LAYOUT, at=140, approach="gaussian")
    assert one.player_names == ("sales", "temp")
    assert one.membership == ((0, 1, 2), (3, 4))
    for group_by in ("lag", None):
        each = cs.explain_forecast(linear, SALES, **LAYOUT, at=140, approach="gaussian", group_by=group_by)
        assert each.player_names == ("sales lag 1", "sales lag 2", "sales lag 3", "temp lag 1", "temp lag 2")
    groups = {"now": ["sales lag 1", "temp lag 1"], "before": ["sales lag 2", "sales lag 3", "temp lag 2"]}
    own = cs.explain_forecast(linear, SALES, **LAYOUT, at=140, approach="gaussian", group_by=None, groups=groups)
    assert own.player_names == ("now", "before")


def test_nothing_from_the_first_explained_time_on_is_learned(linear):
    options = {**LAYOUT, "approach": "ctree", "n_samples": 20}
    first = cs.explain_forecast(linear, SALES, **options, at=[130, 145])
    changed, other = SALES.copy(), LAYOUT["exogenous"].copy()
    changed.iloc[131:] += 100.0  # all that comes after the first explained time
    other.iloc[131:] -= 50.0
    again = cs.explain_forecast(linear, changed, **{**options, "exogenous": other}, at=[130, 145])
    for part in ("values", "std_errors", "base_values", "predictions"):
        np.testing.assert_array_equal(getattr(again, part)[0], getattr(first, part)[0])
    assert np.abs(again.predictions[1] - first.predictions[1]).min() > 1.0
    # nor is the explained time itself, whose last value changes its own row only
    changed.iloc[130] += 100.0
    np.testing.assert_array_equal(
        cs.explain_forecast(linear, changed, **options, at=130).base_values, first.base_values[:1]
    )


def test_training_rows_are_all_complete_windows_before_the_first_explained_time():
    seen = []

    def model(table):
        seen.append(len(table))
        return table.to_numpy()[:, :2]

    found = cs.explain_forecast(model, SALES, lags=3, horizon=2, at=[150, 100], approach="independence", n_samples=5)
    np.testing.assert_allclose(found.base_values[0], [SALES[2:100].mean(), SALES[1:99].mean()])
    assert 98 in seen
    assert found.data.index.tolist() == [DAYS[150], DAYS[100]]


@pytest.mark.parametrize(
    ("series", "at"),
    [
        (SALES, DAYS[140]),
        (SALES, "2024-05-20"),
        (SALES, np.datetime64("2024-05-20")),
        (SALES, 140),
        (SALES, -20),
        (SALES, [140]),
        (SALES, pd.DatetimeIndex(["2024-05-20"])),
        (SALES, slice(140, 141)),
        (SALES, slice("2024-05-20", "2024-05-20")),
        (SALES, DAYS == "2024-05-20"),
        (SALES.set_axis(np.arange(T) / 10), 14),
        (SALES.set_axis(range(1900, 1900 + T)), 2040),
        (SALES.set_axis(range(1900, 1900 + T)), slice(2040, 2040)),
        (SALES.set_axis(DAYS.to_period("D")), "2024-05-20"),
        (SALES.set_axis(DAYS.to_period("D")), pd.Period("2024-05-20")),
        (SALES.reset_index(drop=True), 140),
        (pl.Series("sales", SALES.to_numpy()), 140),
    ],
    ids=str,
)
def test_times_are_labels_or_positions(series, at):
    model = LinearRegression().fit(*cs.lagged_table(SALES[:120], lags=3, horizon=2))
    found = cs.explain_forecast(model, series, lags=3, horizon=2, at=at, approach="gaussian", group_by=None)
    assert found.data.iloc[0].tolist() == SALES.iloc[[140, 139, 138]].tolist()
    assert len(found) == 1


def test_arrays_go_to_functions_as_arrays_and_tables_as_tables():
    kinds = []

    def model(rows):
        kinds.append(type(rows))
        return np.asarray(rows)[:, :2]

    cs.explain_forecast(model, SALES.to_numpy(), lags=2, horizon=2, at=-1, approach="gaussian")
    assert set(kinds) == {np.ndarray}
    kinds.clear()
    cs.explain_forecast(model, SALES, lags=2, horizon=2, at=-1, approach="gaussian")
    assert set(kinds) == {pd.DataFrame}


def test_estimators_trained_on_arrays_take_tables_and_arrays():
    X, y = cs.lagged_table(SALES[:120], lags=2, horizon=2)
    options = {"lags": 2, "horizon": 2, "at": 150, "approach": "gaussian", "group_by": "lag"}
    by_name, by_place = LinearRegression().fit(X, y), LinearRegression().fit(X.to_numpy(), y.to_numpy())
    expected = cs.explain_forecast(by_name, SALES, **options).values
    for series in (SALES, SALES.to_numpy()):
        np.testing.assert_allclose(cs.explain_forecast(by_place, series, **options).values, expected)


APPROACHES = ["independence", "ctree", "vaeac", "regression_separate", "regression_surrogate"]


@pytest.mark.parametrize("approach", APPROACHES)
def test_levels_known_ahead_work_with_approaches_that_take_levels(approach):
    layout = {"lags": 2, "horizon": 2, "exogenous": OTHER, "known_ahead": True, "exogenous_lags": 1}

    def model(table):
        ahead = [(table[f"weekend t+{k}"] == "yes").to_numpy(float) for k in (1, 2)]
        return np.column_stack([table["sales lag 1"] + ahead[0], 0.5 * table["temp t+2"] + ahead[1]])

    chosen = cs.approaches.VAEAC(epochs=2) if approach == "vaeac" else approach
    samples = {} if approach.startswith("regression") else {"n_samples": 20}
    found = cs.explain_forecast(model, SALES, **layout, at=[140, 150], approach=chosen, check_draws=False, **samples)
    assert found.player_names == ("sales", "temp", "weekend")
    np.testing.assert_allclose(found.base_values + found.values.sum(1), found.predictions, atol=1e-9)


def test_numbers_may_be_levels():
    other = pd.DataFrame({"weekday": DAYS.day_of_week.astype(float)}, index=DAYS)
    found = cs.explain_forecast(
        lambda table: (table["weekday t+1"] > 4).to_numpy(float) + table["sales lag 1"].to_numpy(),
        SALES, lags=1, horizon=1, exogenous=other, at=140, approach="ctree", n_samples=20, categorical=["weekday"],
    )  # fmt: skip
    assert found.values.shape == (1, 2)
    assert found.output_names == ("t+1",)


@pytest.mark.parametrize("kind", ["forest", "xgboost"])
def test_models_with_several_outputs(kind):
    X, y = cs.lagged_table(SALES[:120], **TRAINED)
    if kind == "xgboost":
        xgboost = pytest.importorskip("xgboost")
        model = xgboost.XGBRegressor(n_estimators=20, max_depth=3, random_state=0).fit(X, y)
    else:
        model = RandomForestRegressor(50, random_state=0).fit(X, y)
    found = cs.explain_forecast(model, SALES, **LAYOUT, at=[130, 150], approach="copula", n_samples=50)
    np.testing.assert_allclose(found.predictions, model.predict(found.data), rtol=1e-6)
    np.testing.assert_allclose(found.base_values + found.values.sum(1), found.predictions, atol=1e-9)
    single = cs.explain_forecast(
        MultiOutputRegressor(RandomForestRegressor(10, random_state=0)).fit(X, y), SALES, **LAYOUT, at=130, output="t+2",
        approach="copula", n_samples=20,
    )  # fmt: skip
    assert single.output_names == ("t+2",)
    assert single.values.shape == (1, 2)


def test_an_explanation_of_forecasts_is_one_like_others(linear, tmp_path):
    found = cs.explain_forecast(linear, SALES, **LAYOUT, at=[130, 150], approach="gaussian")
    found.save(tmp_path / "f.parquet")
    again = cs.load_explanation(tmp_path / "f.parquet")
    assert again.output_names == ("t+1", "t+2")
    assert again.data.index.equals(found.data.index)
    np.testing.assert_array_equal(found[..., "t+2"].values, found.values[..., 1])
    cs.plots.waterfall(found, 0, output="t+1")
    cs.report(found, tmp_path / "f.html")


def test_the_same_seed_gives_the_same_numbers_whatever_else_is_explained(linear):
    options = {**LAYOUT, "approach": "copula", "n_samples": 30, "seed": 5, "additive": False}
    alone = cs.explain_forecast(linear, SALES, **options, at=130)
    both = cs.explain_forecast(linear, SALES, **options, at=[150, 130])
    np.testing.assert_allclose(both.values[1], alone.values[0], rtol=1e-12)


def test_gaps_go_to_approaches_that_handle_them(linear):
    gappy = SALES.copy()
    gappy.iloc[[50, 140]] = np.nan
    with pytest.raises(SchemaError, match=r"'gaussian' needs variables without gaps.*'sales' at .*2024-02-20.*'vaeac'"):
        cs.explain_forecast(linear, gappy, **LAYOUT, at=141, approach="gaussian")
    other = LAYOUT["exogenous"].mask(np.arange(T)[:, None] == 60)
    with pytest.raises(SchemaError, match="'temp'"):
        cs.explain_forecast(linear, SALES, **{**LAYOUT, "exogenous": other}, at=141, approach="ctree")
    found = cs.explain_forecast(linear, gappy, **LAYOUT, at=141, approach=cs.approaches.VAEAC(epochs=2), n_samples=20)
    np.testing.assert_allclose(found.base_values + found.values.sum(1), found.predictions, atol=1e-9)
    # a gap that no used row has is none
    later = SALES.copy()
    later.iloc[150] = np.nan
    cs.explain_forecast(linear, later, **LAYOUT, at=141, approach="gaussian")


AHEAD = {"lags": 1, "horizon": 2, "exogenous": OTHER[["temp"]]}


@pytest.mark.parametrize(
    ("change", "kind", "text"),
    [
        ({"lags": 0}, OptionError, "lags must be an integer of at least 1"),
        ({"horizon": 0}, OptionError, "horizon must be an integer of at least 1"),
        ({"horizon": 3}, ModelError, "must return 3 outputs, one for each step of the horizon, got 2"),
        ({"group_by": "time"}, OptionError, "group_by must be one of"),
        ({"groups": {"a": []}}, OptionError, "group_by=None"),
        ({"at": T}, OptionError, f"positions below {T}.*goes from '2024-01-01"),
        ({"at": -T - 1}, OptionError, f"positions below {T}"),
        ({"at": "2025-01-01"}, OptionError, "'2025-01-01' is not one"),
        ({"at": "2024-02"}, OptionError, "stands for 29"),
        ({"at": []}, OptionError, "at least one time"),
        ({"at": slice(5, 5)}, OptionError, "at least one time"),
        ({"at": slice("no", "day")}, OptionError, "slice of times"),
        ({"at": True}, OptionError, "is not one"),
        ({"at": None}, OptionError, "is not one"),
        ({"at": {}}, OptionError, "is not one"),
        ({"at": [True, False]}, OptionError, f"{T} entries"),
        ({"at": np.zeros(T, dtype=bool)}, OptionError, "at least one time"),
        ({"series": [[1, 2], [3]]}, SchemaError, "a list that cannot be one"),
        ({"at": 1.5}, OptionError, "is not one"),
        ({"at": 1}, OptionError, r"2 times before it for the lags, got '2024-01-02.*from position 2 on"),
        ({"at": 3}, SchemaError, r"at least 2 complete windows of 3 values before the first explained time.*got 1"),
        ({**AHEAD, "at": T - 2}, OptionError, r"reach 2 steps beyond '2024-06-07"),
        ({"output": "t+3"}, OptionError, r"output must be one of \['t\+1', 't\+2'\]"),
        ({"categorical": ["sales"]}, OptionError, "exogenous variables among"),
        ({"approach": "gausian"}, cs.CondShapError, "gaussian"),
        ({"series": SALES[::-1]}, SchemaError, "chronological order"),
    ],
    ids=lambda one: " ".join(map(str, one)) if isinstance(one, dict) else None,
)
def test_bad_input_is_refused(linear, change, kind, text):
    options = {"series": SALES, "at": 140, "approach": "gaussian", **LAYOUT} | change
    if "exogenous" in change:
        options.pop("exogenous_lags")
    with pytest.raises(kind, match=text):
        cs.explain_forecast(linear, options.pop("series"), **options)


def test_an_unknown_option_is_named(linear):
    with pytest.raises(TypeError, match="n_sample"):
        cs.explain_forecast(linear, SALES, **LAYOUT, at=140, n_sample=3)
