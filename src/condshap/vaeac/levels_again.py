"""Draws of hidden features -> hidden levels of many drawn once more, given everything else that was drawn.

Networks draw hidden features side by side, given latents. Few latents cannot say which of 48 states a row is from, so the
state would hardly go with the numbers that are drawn beside it. But networks also know what the state is given all other
features: to draw those first and then the state is as right as to draw all of them together.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from condshap.seeding import derive_seed, stream_words
from condshap.types import Floats, Masks
from condshap.vaeac.ensemble import Networks
from condshap.vaeac.sampling.tiles import Asked

_MANY_LEVELS = 12
_STAGE = "levels again"


def many_levels(networks: Networks) -> list[int]:
    """Positions of features of many levels; none for networks without advice, such as the paper's."""
    fitted = networks.fitted_
    return np.flatnonzero(fitted.columns.atoms.n_levels > _MANY_LEVELS).tolist() if fitted.config.advice else []


def draw_levels_again(networks: Networks, drawn: Floats, asked: Asked) -> Floats:
    """Put levels that were drawn again into draws (C, R, K, M) of the networks, in place."""
    (_, R, K, M), asked_keys = drawn.shape, asked.keys
    assert asked_keys is not None
    for j in _to_draw_again(networks, asked.masks):
        some = np.flatnonzero(_has_company(asked.masks, j))
        keys, start = stream_words(asked.seed, _STAGE, asked.masks[some], asked_keys).ravel(), 0
        for e, own in enumerate(networks.shares(K).tolist()):
            share = slice(start, start + own)
            rows = drawn[some, :, share].reshape(-1, M)
            if len(rows):
                points = np.tile(np.arange(K)[share], len(some) * R)
                _fill(networks, replace(asked, X=rows, keys=np.repeat(keys, own), points=points, n_points=K), e, j)
                drawn[some, :, share] = rows.reshape(len(some), R, own, M)
            start += own
    return drawn


def fill_levels_again(networks: Networks, asked: Asked, member: int) -> None:
    """The same for rows (R, M) that take single points, drawn for one coalition by one of the networks."""
    assert asked.keys is not None
    for j in _to_draw_again(networks, asked.masks):
        keys = stream_words(asked.seed, _STAGE, asked.masks, asked.keys)[0]
        _fill(networks, replace(asked, keys=keys), member, j)


def _to_draw_again(networks: Networks, masks: Masks) -> list[int]:
    """Features of many levels that are hidden, with others, in one of the coalitions (C, M) at least.

    Where a level is all that is hidden, it was drawn given all else already.
    """
    return [j for j in many_levels(networks) if _has_company(masks, j).any()]


def _has_company(masks: Masks, feature: int) -> Masks:
    return np.asarray(~masks[:, feature] & ((~masks).sum(axis=1) > 1))


def _fill(networks: Networks, asked: Asked, member: int, feature: int) -> None:
    known = np.arange(asked.X.shape[1]) != feature
    networks.fill_each(
        replace(asked, masks=known[None], n_samples=1, seed=derive_seed(asked.seed, _STAGE), blind=False), member
    )
