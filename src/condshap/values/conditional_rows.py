"""Game, rows, known features -> rows as the approach draws them: what v(S) averages over, to look at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from condshap.approaches.base import Donors, DrawnRows
from condshap.exceptions import ApproachError, OptionError, listing
from condshap.game import Game
from condshap.numerics.even_choice import choose_evenly
from condshap.seeding import generator, row_keys
from condshap.types import Floats, Masks, Rows
from condshap.values.assignments import Part
from condshap.values.host import draw
from condshap.values.interventions import intervene

_STAGE = "conditional rows"


def draw_rows(game: Game, rows: Rows, known: Masks, n: int) -> Floats:
    """Draw the unknown features of encoded rows (R, M) given the `known` ones (M,), n times each: (R, n, M)."""
    if known.all():
        return np.repeat(rows[:, None, :], n, axis=1)
    part = intervene([_answering(game, known)], game.chain)[0]
    keys = row_keys(rows, game.predictor.units)
    samples = draw(part.approach, rows, known[None], n, keys, game.seed)[0]
    if isinstance(samples, Donors):
        drawn = np.where(known, rows[:, None, :], samples.table[samples.indices[0]])
    else:
        assert isinstance(samples, DrawnRows)  # no model was read here that could give outcomes
        drawn = samples.rows[0]
    if samples.weights is None and drawn.shape[1] == n:
        return np.asarray(drawn)
    weights = np.ones(drawn.shape[:2]) if samples.weights is None else np.asarray(samples.weights[0], dtype=np.float64)
    starts = generator(game.seed, _STAGE).random()  # the same for all rows: no row's draws depend on another
    chosen = choose_evenly(weights, n, np.full(len(rows), starts))
    return np.take_along_axis(drawn, chosen[:, :, None], axis=1)


def find_known(game: Game, known: Any) -> Masks:
    """Mask (M,) of features that are named, or of all features of groups that are named."""
    players, names = game.players, game.schema.names
    if isinstance(known, str) or not isinstance(known, Sequence):
        raise OptionError(f"known must be a list of features or groups, got {known!r}. Write e.g. [{names[0]!r}].")
    masks = dict(zip(names, np.eye(len(names), dtype=bool), strict=True))
    masks |= dict(zip(players.names, players.membership, strict=True))
    unknown = [name for name in known if not isinstance(name, str) or name not in masks]
    if unknown:
        raise OptionError(
            f"known must name features or groups, got {listing(unknown)}. The choices are {listing(masks)}."
        )
    return np.asarray(np.any([np.zeros(len(names), dtype=bool), *(masks[name] for name in known)], axis=0))


def _answering(game: Game, known: Masks) -> Part:
    """The part that answers for as many known players; groups that are known in part do not count."""
    size = sum(known[members].all() for members in game.players.membership)
    sizes = game.plan.sizes
    nearest = min(game.parts, key=lambda part: np.abs(sizes[part.positions] - size).min(initial=len(game.players)))
    if not nearest.can.samples:
        raise ApproachError(
            f"rows can only be drawn by an approach that samples, got '{nearest.approach.name}', which estimates v(S) "
            "without samples. Fit with another approach, such as 'vaeac'."
        )
    return nearest
