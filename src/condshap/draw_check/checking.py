"""Fitted parts, training rows -> draw check: rows beside draws, for coalitions of no, one, half and all but one player.

For a coalition, the unknown columns of some training rows are drawn given their known ones. If draws are right, this table
has the distribution of the rows themselves: no truth need be known, and no model is asked. Donors never lend to
themselves; other approaches have seen the rows, so that what they have learned by heart looks right.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtrit

from condshap.approaches.base import ConditionalSampler, Donors, DrawnRows, capabilities_of
from condshap.coalitions import CoalitionPlan
from condshap.draw_check.result import Departure, DrawCheck, judge
from condshap.exceptions import CondShapWarning, listing
from condshap.numerics.even_choice import choose_evenly
from condshap.numerics.level_effects import OTHER, learn_effects
from condshap.numerics.likeness import FREQUENCY, Difference, Tables, count_differences, find_differences
from condshap.numerics.score_columns import Score, learn_scores, score_rows
from condshap.runtime.threads import single_threaded_blas
from condshap.schema import FeatureSchema
from condshap.seeding import generator, hash_words, stage_word
from condshap.types import Floats, Indices, Masks, RowKeys, Rows
from condshap.values.assignments import Part
from condshap.values.host import draw

_STAGE = "draw check"
_MOST, _FEWEST = 1000, 20  # rows
_LEARNED = 20_000  # rows that effects of levels are learned from, at most
_SAMPLES = 8
_DONORS = 250  # of an approach that does not say how many it wants
_PAIRS, _FEW = 2**20, 50  # of a row and a training row, for approaches that compare them all; and rows that it takes
_FALSE_ALARMS = 0.01


@dataclass(frozen=True, slots=True)
class _Compared:
    """Training rows (N, M), those among them that are compared, at `positions` (n,), and how."""

    training: Rows
    positions: Indices
    halves: Indices
    """0 or 1 for each of them (n,): effects of levels are learned outside the row's half."""
    keys: RowKeys
    columns: list[Score]
    scores: Floats
    """Of the compared rows, (n, D)."""

    @classmethod
    def choose(cls, X: Rows, schema: FeatureSchema, seed: int) -> _Compared:
        """Choose rows at random, in random order."""
        n_levels = [len(feature.levels or ()) for feature in schema.features]
        columns = learn_scores(X, n_levels)
        order = generator(seed, _STAGE).permutation(len(X))[:_LEARNED]
        groups = np.where(np.arange(len(order)) < _MOST, np.arange(len(order)) % 2, OTHER)
        columns += learn_effects(X, order, groups, n_levels, columns)
        positions, halves = order[:_MOST], groups[:_MOST]
        keys = hash_words(
            stage_word(_STAGE), positions
        )  # not by content: rows of levels repeat, and would share their draws
        return cls(X, positions, halves, keys, columns, score_rows(columns, X[positions], halves=halves))

    def at(self, kept: slice | Masks) -> _Compared:
        """Keep some of the rows only; each stays in its half."""
        own = {name: getattr(self, name)[kept] for name in ("positions", "halves", "keys", "scores")}
        return replace(self, **own)

    @property
    def features(self) -> Indices:
        """Whose scores the columns (D,) are."""
        return np.array([column.feature for column in self.columns], dtype=np.intp)


def check_draws(
    parts: Sequence[Part], X: Rows, schema: FeatureSchema, plan: CoalitionPlan, masks: Masks, *, seed: int
) -> DrawCheck | None:
    """Compare training rows (N, M) with their draws; None where nothing is drawn, or there are too few rows to tell.

    Parameters
    ----------
    parts : fitted approaches, by positions in `plan`
    plan : coalitions that are asked for
    masks : (C, M) their known features
    """
    chosen = list(_coalitions(parts, plan, masks, seed))
    if len(X) < _FEWEST or not chosen:
        return None
    compared, found, n_rows = _Compared.choose(X, schema, seed), [], 0
    if not compared.columns:
        return None
    chosen = [(part, known) for part, known in chosen if not known[compared.features].all()]  # constants have no scores
    n_differences = sum(count_differences(known[compared.features]) for _, known in chosen)
    lends: dict[int, bool] = {}
    for part, known in chosen:
        if id(part) not in lends:
            lends[id(part)] = _lends(part.approach, compared, known, seed)
        tables = _draw_tables(part.approach, compared, known, seed, lends=lends[id(part)])
        if tables is not None:
            critical = _critical(len(tables.rows), n_differences)
            with single_threaded_blas():
                differences = find_differences(tables, compared.features)
            found += [_departure(one, part, known, compared.columns, schema, critical) for one in differences]
            n_rows = max(n_rows, len(tables.rows))
    if n_rows == 0:
        return None
    critical = _critical(n_rows, n_differences)
    return judge(found, n_rows=n_rows, n_coalitions=len(chosen), n_differences=n_differences, critical=critical)


def announce_departures(check: DrawCheck | None, parts: Sequence[Part]) -> None:
    """Warn, by the names of the columns, where draws do not look like rows, unless an approach says that they will not."""
    said = {part.approach.name for part in parts if part.can.ignores_dependence}
    if check is None or all(one.approach in said for one in check.large):
        return
    names = listing(sorted({one.approach for one in check.large} - said))
    warnings.warn(
        f"draws should look like the training rows, but those of approach {names} do not in columns "
        f"{listing(check.columns, 8)}: {check.example}. Shapley values of these columns may be off. Use compare() to see "
        "whether another approach, such as 'ctree', or 'gaussian' or 'copula' for numbers, has a lower MSEv, and look at "
        "its draw check; or put columns that duplicate each other into one group (groups=). explainer.draw_check_ has all "
        "findings; check_draws=False skips the check.",
        CondShapWarning,
        stacklevel=3,
    )


def _critical(n_rows: int, n_differences: int) -> float:
    """Standard errors that one of so many differences exceeds by chance in one of a hundred fits, at most."""
    return -float(stdtrit(n_rows - 1, _FALSE_ALARMS / (2 * n_differences)))


def _coalitions(parts: Sequence[Part], plan: CoalitionPlan, masks: Masks, seed: int) -> Iterator[tuple[Part, Masks]]:
    """Coalitions (M,) of the plan to look at, with the part that answers for them, and the empty one with the first part.

    Only those of the plan: for others no tree would be grown, and no network was trained.
    """
    rng, P = generator(seed, _STAGE), plan.n_players
    samplers = [part for part in parts if len(part.positions) and _can_be_checked(part.approach)]
    for part in samplers[:1]:
        yield part, np.zeros_like(masks[0])
    for size, most in {
        P // 2: 4,
        1: 6,
        P - 1: 6,
    }.items():  # with two or three players sizes are the same, and looked at once
        for part in samplers:
            own = part.positions[plan.sizes[part.positions] == size]
            for position in np.sort(rng.choice(own, size=min(most, len(own)), replace=False)):
                yield part, masks[position]


def _can_be_checked(approach: object) -> bool:
    """Whether it draws, without calls of the model."""
    can = capabilities_of(approach)
    return can.samples and not can.asks_model_to_sample


def _lends(approach: ConditionalSampler, compared: _Compared, known: Masks, seed: int) -> bool:
    """Try on one row whether the approach answers with donors."""
    row = compared.training[compared.positions[:1]]
    return isinstance(draw(approach, row, known[None], _SAMPLES, compared.keys[:1], seed)[0], Donors)


def _draw_tables(
    approach: ConditionalSampler, compared: _Compared, known: Masks, seed: int, *, lends: bool
) -> Tables | None:
    """Rows beside their draws; None if too few of them have any.

    Of donors as many are asked for as usual, because fewer may differ, and a few are drawn from them; draws are expensive.
    """
    if capabilities_of(approach).compares_all_rows:
        compared = compared.at(slice(max(_FEW, _PAIRS // len(compared.training))))
    X = compared.training[compared.positions]
    usual = min(len(compared.training), capabilities_of(approach).default_samples or _DONORS)
    n_samples = usual if lends else _SAMPLES
    samples = draw(approach, X, known[None], n_samples, compared.keys, seed)[0]
    if isinstance(samples, Donors):
        rows, weights = _lend(samples, compared, seed)
    else:
        assert isinstance(samples, DrawnRows)
        rows = samples.rows[0]
        weights = np.ones(rows.shape[:2]) if samples.weights is None else samples.weights[0]
    there = weights.sum(axis=1) > 0
    if there.sum() < _FEWEST:
        return None
    return _beside(compared.at(there), rows[there], weights[there], known)


def _beside(compared: _Compared, rows: Floats, weights: Floats, known: Masks) -> Tables:
    """Scores of the compared rows (n, M) beside those of their draws (n, K, M), which have weights (n, K)."""
    columns = compared.columns
    is_level = np.array([column.level is not None for column in columns])
    is_square = np.array([column.is_square for column in columns])
    is_effect = np.array([column.effects is not None for column in columns])
    draws = score_rows(columns, rows, known, compared.halves)
    return Tables(compared.scores, draws, weights, known[compared.features], is_level, is_square, is_effect)


def _lend(donors: Donors, compared: _Compared, seed: int) -> tuple[Floats, Floats]:
    """Rows (n, K, M) of a few donors of each row, and weights (n, K): none where a row is the only donor of itself.

    Donors are drawn by their weights, evenly, which says as much as all of them and costs little.
    """
    indices, positions = donors.indices[0], compared.positions
    weights = np.ones(indices.shape) if donors.weights is None else donors.weights[0].astype(np.float64)
    borrows_from_training = donors.table.shape == compared.training.shape and np.array_equal(
        donors.table[positions], compared.training[positions], equal_nan=True
    )
    if borrows_from_training:
        weights = np.where(indices == positions[:, None], 0.0, weights)
    places = choose_evenly(weights, _SAMPLES, generator(seed, _STAGE + " donors").random(len(indices)))
    chosen = np.take_along_axis(indices, places, axis=1)
    return donors.table[chosen], np.repeat(weights.sum(axis=1, keepdims=True) > 0, _SAMPLES, axis=1).astype(np.float64)


def _departure(
    found: Difference, part: Part, known: Masks, columns: list[Score], schema: FeatureSchema, critical: float
) -> Departure:
    """A difference of scores in terms of the table's columns."""
    pair = [columns[at] for at in dict.fromkeys((found.a, found.b))]
    rows, draws = found.rows, found.draws
    if found.kind == FREQUENCY:
        rows, draws = pair[0].share, pair[0].share + found.draws * pair[0].spread
    return Departure(
        approach=part.approach.name,
        known=tuple(name for name, is_known in zip(schema.names, known, strict=True) if is_known),
        kind=found.kind,
        columns=tuple(schema.names[one.feature] for one in pair),
        what=tuple(_name(one, schema) for one in pair),
        rows=float(rows),
        draws=float(draws),
        size=float(found.size),
        z=float(found.z),
        is_sure=bool(found.z >= critical),
    )


def _name(score: Score, schema: FeatureSchema) -> str:
    feature = schema.features[score.feature]
    if score.target is not None:
        return f"{feature.name} (by {schema.features[score.target].name})"
    if score.level is None:
        return f"{feature.name} squared" if score.is_square else feature.name
    assert feature.levels is not None
    return f"{feature.name} = {feature.levels[score.level]}"
