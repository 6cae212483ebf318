"""Draw every plot for real explanations, and for 3, 12 and 60 features with long names: ``make plots``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

import condshap as cs
from condshap.datasets import Dataset, load_abalone, load_penguins

OUT = Path(__file__).parent / "_build" / "plots"


def forest(data: Dataset, kind: type, target: Any) -> Any:
    """Fit a forest on the training rows, with levels as columns of 0 and 1."""
    levels = make_column_selector(dtype_include=["category", "object", "string"])
    steps = make_column_transformer((OneHotEncoder(), levels), remainder="passthrough")
    return make_pipeline(steps, kind(n_estimators=50, min_samples_leaf=5, random_state=0)).fit(data.X_train, target)


def real_plots() -> Iterator[tuple[str, Any]]:
    """Every plot of Abalone: a forest explained by three approaches, one of them a network."""
    data = load_abalone()
    model, X = forest(data, RandomForestRegressor, data.y_train), data.X_test[:50]
    explainers = {
        name: cs.Explainer(model, approach=approach, n_samples=50).fit(data.X_train)
        for name, approach in (("independence",) * 2, ("ctree",) * 2, ("vaeac", cs.approaches.VAEAC(epochs=40)))
    }
    found = {name: explainer.explain(X) for name, explainer in explainers.items()}
    one = found["ctree"]
    yield "bar", cs.plots.bar(one)
    yield "bar_row", cs.plots.bar(one, 3)
    yield "waterfall", cs.plots.waterfall(one, 3)
    yield "beeswarm", cs.plots.beeswarm(one)
    yield "force", cs.plots.force(one, 3)
    yield "heatmap", cs.plots.heatmap(one)
    yield "heatmap_few", cs.plots.heatmap(one[:6])
    yield "scatter", cs.plots.scatter(one, "ShellWeight", color="ShuckedWeight")
    yield "scatter_levels", cs.plots.scatter(one, "Sex")
    yield "scatter_by_level", cs.plots.scatter(one, "ShellWeight", color="Sex")
    yield "compare", cs.plots.compare(found, 3)
    for by in ("overall", "row", "size"):
        yield f"msev_{by}", cs.plots.msev(found, by=by)
    network = cs.VAEACNetworks().fit(data.X_train, progress=False)
    yield "training_curves", cs.plots.training_curves(network)
    row = data.X_test[3:4]
    drawn = network.sample_table(row, [["ShellWeight"]], 200)
    by_chance = data.X_train.sample(200, random_state=0).assign(ShellWeight=row["ShellWeight"].iloc[0])
    samples = {"independence": by_chance, "vaeac": drawn}
    yield (
        "conditional_samples",
        cs.plots.conditional_samples(data.X_train, samples, "Diameter", "ShellWeight", point=row),
    )
    yield "conditional_levels", cs.plots.conditional_samples(data.X_train, samples, "Sex", "Diameter", point=row)
    generated = network.sample_table(data.X_train[:1], [[]], 2000)
    columns = ["Sex", "Diameter", "ShellWeight", "ShuckedWeight"]
    yield "pairs", cs.plots.pairs(data.X_train, generated, features=columns)
    classes = pd.cut(data.y_train, [0, 8, 11, 99], labels=["young", "middle", "old"])
    ages = cs.explain(forest(data, RandomForestClassifier, classes), data.X_train, X, approach="ctree", n_samples=20)
    yield "facet_waterfall", cs.plots.facet(cs.plots.waterfall, ages, row=3, columns=3)
    yield "facet_beeswarm", cs.plots.facet(cs.plots.beeswarm, ages, columns=3)
    yield from gappy_plots()
    yield from forecast_plots()
    shells = {"size": ["Length", "Diameter", "Height"], "Sex": ["Sex"]}
    shells["weight"] = ["WholeWeight", "ShuckedWeight", "VisceraWeight", "ShellWeight"]
    groups = cs.explain(model, data.X_train, X, approach="ctree", n_samples=20, groups=shells)
    pairs = one.interactions()
    yield "interactions", cs.plots.interactions(pairs, 3)
    yield "interactions_mean", cs.plots.interactions(pairs, None)
    yield "interaction_bar", cs.plots.interaction_bar(pairs)
    yield "interaction_bar_row", cs.plots.interaction_bar(one.interactions("STII", 3), 3)
    yield "interaction_network", cs.plots.interaction_network(pairs, 3)
    unions = {"shell": {"size": shells["size"], "weight": shells["weight"]}, "Sex": ["Sex"]}
    for name, unfold in (("unions", None), ("one_union", "shell"), ("all_unions", True)):
        yield f"{name}_waterfall", cs.plots.waterfall(one.owen(unions), 3, unfold=unfold)
    yield "groups_waterfall", cs.plots.waterfall(groups, 3)
    yield "groups_beeswarm", cs.plots.beeswarm(groups)


def forecast_plots() -> Iterator[tuple[str, Any]]:
    """Forecasts over seven steps, of variables and of single lags, and cohorts side by side."""
    rng, days = np.random.default_rng(0), pd.date_range("2023-01-01", periods=400)
    weekend = np.where(days.day_of_week > 4, 6.0, 0.0)
    other = pd.DataFrame({"temperature": 10 + rng.normal(size=400).cumsum() / 4, "weekend": weekend}, index=days)
    demand = pd.Series(50.0, index=days, name="demand")
    for t in range(1, 400):
        demand.iloc[t] = 25 + 0.5 * demand.iloc[t - 1] - 0.5 * other.iloc[t, 0] + weekend[t] + rng.normal()
    layout = {"lags": 3, "horizon": 7, "exogenous": other}
    model = RandomForestRegressor(50, random_state=0).fit(*cs.lagged_table(demand, **layout))
    found = cs.explain_forecast(model, demand, **layout, at=range(340, 380), approach="ctree", check_draws=False)
    yield "horizons", cs.plots.horizons(found, 3)
    yield "cohorts", cs.plots.bar(found.cohorts(found.data["weekend t+1"] > 0), output="t+1")
    lags = cs.explain_forecast(model, demand, **layout, at=350, approach="ctree", group_by="lag", n_coalitions=100)
    yield "horizons_of_lags", cs.plots.horizons(lags)
    yield "selected_waterfall", cs.plots.waterfall(found[:, ["demand"]], 3, output="t+1")


def gappy_plots() -> Iterator[tuple[str, Any]]:
    """Penguins, some of whose values are missing, and a model of three classes that accepts gaps."""
    data = load_penguins()
    levels = make_column_transformer(
        (
            OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
            make_column_selector(dtype_exclude="number"),
        ),
        remainder="passthrough",
    )
    model = make_pipeline(levels, HistGradientBoostingClassifier(random_state=0)).fit(data.X_train, data.y_train)
    approach = cs.approaches.VAEAC(epochs=40)
    X = pd.concat([data.X_test, data.X_train[data.X_train.isna().any(axis=1)]])
    species = cs.explain(model, data.X_train, X, approach=approach, n_samples=20, categorical=[])
    yield "missing_beeswarm", cs.plots.beeswarm(species, output="Gentoo")
    yield "missing_scatter", cs.plots.scatter(species, "flipper_length_mm", color="sex", output="Gentoo")
    yield "missing_levels", cs.plots.scatter(species, "sex", color="bill_depth_mm", output="Gentoo")
    yield "missing_waterfalls", cs.plots.facet(cs.plots.waterfall, species, row=-1, columns=3)


def made_up_plots(n_features: int) -> Iterator[tuple[str, Any]]:
    """Plots of lists for many features whose names have 40 characters, some values missing."""
    rng = np.random.default_rng(n_features)
    names = [f"{'A name as long as people write them':_<37} {j:02d}" for j in range(n_features)]
    X = pd.DataFrame(rng.normal(size=(300, n_features)), columns=names)
    model = LinearRegression().fit(X, X @ 0.9 ** np.arange(n_features))
    n_coalitions = 200 if n_features > 7 else None
    one = cs.explain(model, X, X[:60], approach="gaussian", n_coalitions=n_coalitions)
    for most in sorted({12, n_features}) if n_features >= 12 else (12,):
        end = f"{n_features}_of_{most}" if most < n_features else f"{n_features}"
        yield f"bar_{end}", cs.plots.bar(one, max_features=most)
        yield f"waterfall_{end}", cs.plots.waterfall(one, 1, max_features=most)
        yield f"beeswarm_{end}", cs.plots.beeswarm(one, max_features=most)
        yield f"force_{end}", cs.plots.force(one, 1, max_features=most)
        yield f"heatmap_{end}", cs.plots.heatmap(one, max_features=most)
        if n_features < 60:
            pairs = one.interactions("FSII")
            yield f"interactions_{end}", cs.plots.interactions(pairs, 1, max_features=most)
            yield f"interaction_bar_{end}", cs.plots.interaction_bar(pairs, max_features=most)
            yield f"interaction_network_{end}", cs.plots.interaction_network(pairs, 1, max_features=most)
        yield f"compare_{end}", cs.plots.compare([one, one], 1, names=["ctree", "vaeac"], max_features=most)


def main() -> None:
    """Write all pictures and say where they are."""
    OUT.mkdir(parents=True, exist_ok=True)
    plots = [real_plots(), *(made_up_plots(n) for n in (3, 12, 60))]
    for some in plots:
        for name, _ in some:
            plt.gcf().savefig(OUT / f"{name}.png", dpi=110)
            plt.close("all")
    print(f"{len(list(OUT.glob('*.png')))} pictures in {OUT}")


if __name__ == "__main__":
    main()
