"""Explanation -> HTML for notebooks: a table of the first rows and a small bar chart, no scripts, every name escaped."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from condshap.numerics.readable import estimate, fixed, interval, places_of
from condshap.types import Floats
from condshap.views.palette import LOWERS, NEUTRAL, RAISES

if TYPE_CHECKING:
    from condshap.explanation import Explanation

MAX_LINES = 6
"""Lines of the table: rows, or rows and outputs."""
MAX_PLAYERS = 8
"""Players with their own column and bar; the others are added up."""
_MAX_LETTERS = 24
_WHISKER = "#888888"  # in sight in light and dark
_LABEL, _BAR, _STEP = 170, 240, 20  # pixels: width of names, of the longest bar, height of a bar with its gap
_CELL = "padding:2px 8px;text-align:right;white-space:nowrap"


def explanation_html(explanation: Explanation) -> str:
    """What a notebook shows of an explanation."""
    return (
        '<div style="font-size:90%;max-width:100%;overflow-x:auto">'
        f"<p><b>{_head(explanation)}</b></p>{_table(explanation)}{_chart(explanation)}</div>"
    )


def _head(explanation: Explanation) -> str:
    text = escape(repr(explanation))
    if explanation.provenance.causal_ordering is not None:
        text += f"<br>{escape(explanation.provenance.question.capitalize())}"
    if explanation.provenance.link is not None:
        text += "<br>Values, predictions and base values are log-odds"
    if len(explanation) < 2 or not explanation.has_msev:
        return text
    low, high, error = *explanation.msev.interval(), explanation.msev.total_std_error()
    return f"{text}<br>MSEv {estimate(float(explanation.msev), error)}, 95 % interval {interval(low, high, error)}"


def _table(explanation: Explanation) -> str:
    """First lines: base value, the most important players, prediction."""
    frame = explanation.to_frame()
    chosen, others = _most_important(explanation)
    heads = [_cell(_short("base value"), "th")]
    heads += [_cell(_short(explanation.player_names[j]), "th") for j in chosen]
    heads += [_cell(f"{len(others)} others", "th")] if len(others) else []
    heads += [_cell(f"{len(explanation.others.names)} not selected", "th")] if explanation.others is not None else []
    heads.append(_cell("prediction", "th"))
    lines, places = [], places_of(explanation.values.ravel(), explanation.errors.ravel(), 4)
    whole = places_of(frame.iloc[:, [0, -1]].to_numpy().ravel(), digits=5) if places is None else max(0, places)
    for label, numbers in zip(frame.index[:MAX_LINES], frame.to_numpy()[:MAX_LINES], strict=True):
        phi = numbers[1:-1]
        rest = [phi[others].sum()] if len(others) else []
        rest += [phi[-1]] if explanation.others is not None else []
        shown = [numbers[0], *phi[chosen], *rest, numbers[-1]]
        name = (
            ", ".join(map(str, label)) if isinstance(label, tuple) else str(label).removesuffix(" 00:00:00")
        )  # a day has no hour
        texts = [fixed(x, end) for x, end in zip(shown, [whole, *[places] * (len(shown) - 2), whole], strict=True)]
        lines.append(f"<tr>{_cell(_short(name), 'th')}{''.join(map(_cell, texts))}</tr>")
    left = len(frame) - len(lines)
    more = f"<p>and {left} more: see to_frame()</p>" if left else ""
    return f"<table><tr><th></th>{''.join(heads)}</tr>{''.join(lines)}</table>{more}"


def _chart(explanation: Explanation) -> str:
    """Bars: Shapley values of a single row and output, else their mean absolute values over rows, added over outputs."""
    one = explanation.values.shape[0] == 1 and explanation.values[0, 0].size == 1
    chosen, others = _most_important(explanation)
    by_player = explanation.values[0].ravel() if one else _importance(explanation)
    errors = explanation.errors[0].ravel() if one else _errors(explanation)
    bars = [(explanation.player_names[j], float(by_player[j]), float(errors[j])) for j in chosen]
    if len(others):
        bound = float(errors[others].sum())
        if one and explanation.others is None:  # as in plots/selection.py: all values of a row have an exact sum
            bound = min(bound, float(errors[chosen].sum()))
        bars.append((f"{len(others)} others", float(by_player[others].sum()), bound))
    several = ", summed over outputs" if explanation.values.ndim == 3 else ""
    rows = "1 row" if len(explanation) == 1 else f"{len(explanation)} rows"
    if one:
        return _svg("Shapley values", bars, (RAISES, LOWERS))
    return _svg(f"mean |Shapley value| over {rows}{several}", bars, (NEUTRAL, NEUTRAL))


def _svg(title: str, bars: list[tuple[str, float, float]], colours: tuple[str, str]) -> str:
    """Bars to the right, in the first colour where they stand for positive numbers, in the second for negative ones.

    Whiskers extend one standard error to both sides, as those of plots do.
    """
    places = places_of([value for _, value, _ in bars], [error for *_, error in bars])
    longest = max((abs(value) + np.nan_to_num(error) for _, value, error in bars), default=0.0) or 1.0
    parts = [f'<text x="0" y="14">{escape(title)}</text>']
    for i, (name, value, error) in enumerate(bars):
        top, width, reach = _STEP * (i + 1) + 4, _BAR * abs(value) / longest, _BAR * np.nan_to_num(error) / longest
        middle, left, right = top + 12, _LABEL + max(0.0, width - reach), _LABEL + width + reach
        whisker = f"M{left:.1f} {top + 7.5}H{right:.1f}M{left:.1f} {top + 4}v7M{right:.1f} {top + 4}v7"
        parts.append(
            f'<text x="{_LABEL - 6}" y="{middle}" text-anchor="end">{_short(name)}</text>'
            f'<rect x="{_LABEL}" y="{top}" width="{width:.1f}" height="{_STEP - 5}" fill="{colours[value < 0]}"/>'
            f'<text x="{right + 5:.1f}" y="{middle}">{fixed(value, places)}</text>'
        )
        if reach > 0:
            parts.append(f'<path d="{whisker}" stroke="{_WHISKER}" stroke-width="1.4" fill="none"/>')
    wide, high = _LABEL + _BAR + 100, _STEP * (len(bars) + 1) + 8
    return (
        f'<svg role="img" width="{wide}" height="{high}" viewBox="0 0 {wide} {high}" fill="currentColor" font-size="12" '
        f'font-family="sans-serif"><title>{escape(title)}</title>{"".join(parts)}</svg>'
    )


def _errors(explanation: Explanation) -> Floats:
    """Bounds of the standard errors of the mean sizes, added over outputs, (P,): errors of rows may depend on each other."""
    shape = (len(explanation), len(explanation.player_names), -1)
    return np.asarray(explanation.errors.reshape(shape).mean(axis=0).sum(axis=1))


def _importance(explanation: Explanation) -> Floats:
    """Mean absolute Shapley values over rows, added over outputs, (P,)."""
    n_players = len(explanation.player_names)
    sizes = np.abs(explanation.values).reshape(len(explanation), n_players, -1)
    return np.asarray(sizes.mean(axis=0).sum(axis=1))


def _most_important(explanation: Explanation) -> tuple[Any, Any]:
    """Positions of the players to show, the most important first, and of all others."""
    order = np.argsort(-_importance(explanation), kind="stable")
    n_shown = len(order) if len(order) <= MAX_PLAYERS + 1 else MAX_PLAYERS  # "1 others" would save nothing
    return order[:n_shown], order[n_shown:]


def _cell(text: str, kind: str = "td") -> str:
    return f'<{kind} style="{_CELL}">{text}</{kind}>'


def _short(name: str) -> str:
    """Name, escaped and shortened, so that it cannot break the page or its layout."""
    return escape(name if len(name) <= _MAX_LETTERS else name[: _MAX_LETTERS - 1] + "…")
