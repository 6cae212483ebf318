"""What do draws gain that keep to hierarchies, such as cities in countries?

Answer: no row that cannot occur, and a few per cent less error where rows and cities are few.

A city has a country and a normal number, of which a second number is a noisy copy. The model answers a city in another
country with something else. The truth comes from the posterior of cities. Both lines are of one fit.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from benchmarks.lib.report import parser, publish, table
from condshap import Explainer
from condshap.coalitions.exact import enumerate_masks
from condshap.numerics.shapley import exact_shapley
from condshap.types import Floats, Masks, Rows

COUNTRIES, N_ROWS, N_TRUTH, N_REPETITIONS = 3, 60, 20_000, 5
CITY, COUNTRY, FIRST, SECOND = range(4)
SPREAD, SLOPE, NOISE = 0.7, 0.8, 0.6
"""Of the first number within a city; of the second one over the first, and around that."""


@dataclass(frozen=True)
class World:
    """Cities: how frequent (L,), where their first number lies (L,), and what the model makes of them, (countries, L)."""

    frequent: Floats
    centre: Floats
    effects: Floats

    @classmethod
    def draw(cls, n_cities: int, rng: np.random.Generator) -> World:
        """A world of its own for each repetition."""
        centre = np.array([-1.0, 0.0, 1.2])[np.arange(n_cities) % COUNTRIES] + rng.normal(0, 0.5, n_cities)
        return cls(rng.dirichlet(np.full(n_cities, 3.0)), centre, 1.5 * rng.normal(size=(COUNTRIES, n_cities)))

    def rows(self, city: Any, rng: np.random.Generator) -> Rows:
        """Rows (n, 4) with these cities."""
        first = self.centre[city] + SPREAD * rng.normal(size=len(city))
        second = SLOPE * first + NOISE * rng.normal(size=len(city))
        return np.column_stack([city, city % COUNTRIES, first, second]).astype(float)

    def predict(self, X: Rows) -> Floats:
        """The model, of rows (n, 4)."""
        country, city = X[:, COUNTRY].astype(int), X[:, CITY].astype(int)
        return self.effects[country, city] + X[:, FIRST] * ((country == 1) + np.maximum(X[:, SECOND], 0))

    def true_value(self, row: Floats, mask: Masks, rng: np.random.Generator) -> float:
        """v(S): cities by their posterior, numbers by their normal distributions."""
        cities = np.arange(len(self.frequent))
        weight = self.frequent * (~mask[CITY] | (cities == row[CITY]))
        weight = weight * (~mask[COUNTRY] | (cities % COUNTRIES == row[COUNTRY]))
        if mask[FIRST]:
            weight = weight * norm.pdf(row[FIRST], self.centre, SPREAD)
        elif mask[SECOND]:
            weight = weight * norm.pdf(row[SECOND], SLOPE * self.centre, np.hypot(SLOPE * SPREAD, NOISE))
        X = self.rows(rng.choice(cities, N_TRUTH, p=weight / weight.sum()), rng)
        if mask[SECOND] and not mask[FIRST]:
            precision = 1 / SPREAD**2 + (SLOPE / NOISE) ** 2
            centre = self.centre[X[:, CITY].astype(int)] / SPREAD**2 + SLOPE * row[SECOND] / NOISE**2
            X[:, FIRST] = centre / precision + rng.normal(size=N_TRUTH) / np.sqrt(precision)
        if mask[FIRST]:
            X[:, SECOND] += SLOPE * (row[FIRST] - X[:, FIRST])
            X[:, FIRST] = row[FIRST]
        X[:, SECOND] = row[SECOND] if mask[SECOND] else X[:, SECOND]
        return float(self.predict(X).mean())


def frame(X: Rows, n_cities: int) -> pd.DataFrame:
    """A table as a user has it."""
    city = pd.Categorical.from_codes(X[:, CITY].astype(int), [f"city {i}" for i in range(n_cities)])
    country = pd.Categorical.from_codes(X[:, COUNTRY].astype(int), list("abc"))
    return pd.DataFrame({"city": city, "country": country, "first": X[:, FIRST], "second": X[:, SECOND]})


def errors_of(n_cities: int, n_train: int, repetition: int) -> dict[str, float]:
    """Errors over the mean size of the true values, and the share of samples with a city in another country."""
    rng = np.random.default_rng([n_cities, n_train, repetition])
    world = World.draw(n_cities, rng)
    train = world.rows(rng.choice(n_cities, n_train, p=world.frequent), rng)
    X = world.rows(rng.choice(np.unique(train[:, CITY]).astype(int), N_ROWS), rng)
    masks = enumerate_masks(4)
    v = np.array([[world.true_value(row, mask, rng) for row in X] for mask in masks[:-1]] + [world.predict(X)])
    phi = exact_shapley(v, masks).T

    def predict(Z: pd.DataFrame) -> Floats:
        columns = Z["city"].str.slice(5).astype(int), Z["country"].map({"a": 0, "b": 1, "c": 2}).astype(int)
        return world.predict(np.column_stack([*columns, Z["first"], Z["second"]]).astype(float))

    found: dict[str, float] = {}
    for name in ("vaeac", "ctree"):
        options: dict[str, Any] = {"approach": name, "seed": repetition, "progress": False, "check_draws": False}
        explainer = Explainer(predict, **options).fit(frame(train, n_cities))
        found[name] = _error(explainer, frame(X, n_cities), phi)
        if name == "vaeac":
            explainer.parts_[0].approach.hierarchies_ = None
            found["vaeac without"] = _error(explainer, frame(X, n_cities), phi)
            drawn = explainer.sample(frame(X[:20], n_cities), known=["first"], n=250)
            away = drawn["city"].str.slice(5).astype(int) % COUNTRIES != drawn["country"].map({"a": 0, "b": 1, "c": 2})
            found["impossible without"] = float(away.mean())
    return found


def _error(explainer: Explainer, X: pd.DataFrame, phi: Floats) -> float:
    return float(np.abs(explainer.explain(X).values - phi).mean() / np.abs(phi).mean())


def lines_of(results: list[dict[str, Any]]) -> list[dict[str, str]]:
    """A line for each setting: means over repetitions, and the paired ratio with its standard error."""
    lines = []
    for setting in dict.fromkeys((one["cities"], one["rows"]) for one in results):
        some = [one for one in results if (one["cities"], one["rows"]) == setting]
        means = {name: np.mean([one[name] for one in some]) for name in ("vaeac", "vaeac without", "ctree")}
        ratios = np.array([one["vaeac"] / one["vaeac without"] for one in some])
        lines.append(
            {
                "cities": str(setting[0]),
                "training rows": str(setting[1]),
                "impossible without": f"{np.mean([one['impossible without'] for one in some]):.1%}",
                "error without": f"{means['vaeac without']:.3f}",
                "error": f"{means['vaeac']:.3f}",
                "ratio": f"{ratios.mean():.2f} ± {ratios.std(ddof=1) / np.sqrt(len(ratios)):.2f}",
                "`ctree`": f"{means['ctree']:.3f}",
            }
        )
    return lines


def main() -> None:
    options = parser("hierarchies", __doc__).parse_args()
    results: list[dict[str, Any]] = []
    for n_cities, n_train in ((12, 200), (12, 1000), (40, 1000), (40, 5000), (60, 1000), (120, 2000)):
        for repetition in range(N_REPETITIONS):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = errors_of(n_cities, n_train, repetition)
            results.append({"cities": n_cities, "rows": n_train, "repetition": repetition, **found})
            print(results[-1], flush=True)
    publish("hierarchies", results, table(lines_of(results)), write=options.write)


if __name__ == "__main__":
    main()
