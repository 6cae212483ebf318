"""Explanations -> one HTML file with template, style, scripts and data; nothing is loaded from elsewhere.

Names and levels of the user's data are untrusted. They reach the page as JSON in a block that no browser executes, and the
scripts write them as text only. The template escapes everything it writes. A Content-Security-Policy allows only the
scripts of this folder, by their hash, and forbids loading anything.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup

from condshap.exceptions import OptionError, listing
from condshap.explanation import Explanation
from condshap.games.interactions import Interactions
from condshap.games.loss_explanation import LossExplanation
from condshap.numerics.readable import estimate, interval, number
from condshap.options import as_path
from condshap.ranking import comparable, kept_explanations
from condshap.reporting.outside_training import Outside, find_outside
from condshap.reporting.payload import pack, words_of
from condshap.reporting.quality import against_the_best, best_of, describe, judge, look_of_draws, notes, shared_first
from condshap.storage.writing import write_whole
from condshap.types import Table

_SCRIPTS = (
    "numbers.js",
    "core.js",
    "charts.js",
    "swarm.js",
    "shape.js",
    "table.js",
    "rows.js",
    "together.js",
    "app.js",
)
_ESCAPED = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def report(
    explanations: Explanation
    | LossExplanation
    | Sequence[Explanation]
    | Sequence[LossExplanation]
    | Mapping[str, Explanation]
    | Mapping[str, LossExplanation],
    path: str | Path,
    *,
    names: Sequence[str] | None = None,
    title: str | None = None,
    model: object = None,
    train: Table | None = None,
    interactions: Interactions | None = None,
) -> Path:
    """Write explanations to one HTML file that opens in any browser, without a network connection.

    The report says what was explained, how, and how well. It shows which players matter overall and, for any row, why the
    model predicts what it does. Rows can be sorted, searched, filtered and compared, and so can several explanations of the
    same rows.

    Parameters
    ----------
    explanations : one, or several with the same rows, players, outputs, model and base value, for example by different
        approaches, as a list, by name, or as the table of `compare`. If their coalitions differ, MSEv is over those that
        all of them share, with a warning. Or loss explanations of the same loss
    path : file to write; an existing file is replaced
    names : one name per explanation; by default their approaches
    title : title of the page
    model : the explained model, or its name, shown in the report; an explanation does not keep it
    train : training rows; rows with values outside their range, or with levels they lack, are counted and marked
    interactions : of one of the explanations, `Explanation.interactions`; they get a part of their own

    Returns
    -------
    The path.

    Examples
    --------
    >>> import numpy as np, tempfile, condshap as cs
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> explanation = cs.explain(lambda x: x[:, 0], X, X[:5], approach="gaussian")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cs.report(explanation, f"{folder}/report.html", train=X).name
    'report.html'
    """
    explanations = kept_explanations(explanations)
    if isinstance(explanations, Mapping) and names is None:
        names = list(explanations)
    given = _listed(list(explanations.values()) if isinstance(explanations, Mapping) else explanations)
    labels = _labels(given, names)
    compared = list(comparable(dict(zip(labels, given, strict=True))).values())
    outside = None if train is None else find_outside(given[0], train)
    _check_interactions(interactions, given[0])
    html = _render(given, compared, labels, title or _title(given[0]), model, outside, interactions)
    target = as_path(path)
    write_whole(target, html, "a report")
    return target


def _listed(explanations: Any) -> list[Explanation]:
    given: list[Any] = (
        [explanations] if isinstance(explanations, (Explanation, LossExplanation)) else list(explanations)
    )
    given = [one.as_explanation() if isinstance(one, LossExplanation) else one for one in given]
    wrong = [type(one).__name__ for one in given if not isinstance(one, Explanation)]
    if wrong or not given:
        raise OptionError(
            f"explanations must be an Explanation or a list of them, got {listing(wrong) if wrong else 'an empty list'}. "
            "Pass what explain() returns, or load_explanation(path)."
        )
    questions = {(one.provenance.loss, one.provenance.link) for one in given}
    if len(questions) > 1:
        raise OptionError(
            "a report must have explanations of one kind, of predictions, log-odds or one loss, got several. Write a report "
            "for each."
        )
    if len(given[0]) == 0:
        raise OptionError("a report needs rows, got an explanation of none. Explain at least one row.")
    return given


def _title(first: Explanation) -> str:
    return "Shapley values, row by row" if first.provenance.loss is None else "Which features the model needs"


def _questions(given: list[Explanation]) -> list[str]:
    """What kinds of values there are, unless all are the usual ones."""
    found = list(dict.fromkeys(one.provenance.question for one in given))
    return [] if found == ["conditional"] else found


def _check_interactions(interactions: Any, first: Explanation) -> None:
    """Interactions of other rows, players or outputs would be shown under wrong names."""
    if interactions is None:
        return
    if not isinstance(interactions, Interactions):
        raise OptionError(
            f"interactions must be what explanation.interactions() returns, got {type(interactions).__name__}."
        )
    same = interactions.predictions.shape == first.predictions.shape and np.allclose(
        interactions.predictions, first.predictions, rtol=1e-6, atol=1e-9, equal_nan=True
    )
    if not same or interactions.player_names != first.player_names:
        raise OptionError(
            f"interactions must be of the rows, players and outputs of the report, got {interactions!r} with {first!r}. "
            "Pass explanation.interactions() of one of the explanations."
        )


def _labels(given: list[Explanation], names: Sequence[str] | None) -> list[str]:
    """Names of the explanations; approaches that occur twice are numbered."""
    if names is not None:
        labels = [names] if isinstance(names, str) else [str(name) for name in names]
        if len(labels) != len(given) or len(set(labels)) < len(labels):
            raise OptionError(
                f"names must be {len(given)} different names, one per explanation, got {listing(labels)}. "
                "Leave them out to use the names of the approaches."
            )
        return labels
    approaches = [one.provenance.approach for one in given]
    counted = [f"{name} ({approaches[: i + 1].count(name)})" for i, name in enumerate(approaches)]
    return [new if approaches.count(old) > 1 else old for new, old in zip(counted, approaches, strict=True)]


def _render(
    given: list[Explanation],
    compared: list[Explanation],
    labels: list[str],
    title: str,
    model: object,
    outside: Outside | None,
    interactions: Interactions | None,
) -> str:
    style, script = _asset("page.css"), "\n".join(_asset(name) for name in _SCRIPTS)
    judged = against_the_best(compared, [judge(*pair) for pair in zip(given, compared, strict=True)])
    page = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    return page.from_string(_asset("page.html")).render(
        title=title,
        questions=_questions(given),
        labels=labels,
        first=given[0],
        words=words_of(given[0].provenance),
        no_msev=given[0].provenance.no_msev,
        is_grouped=any(len(members) > 1 for members in given[0].membership),
        about=shared_first([describe(one, model) for one in given]),
        judged=judged,
        best=best_of(judged),
        number=number,
        estimate=estimate,
        interval=interval,
        notes=notes(given, compared, labels, judged, outside),
        drawn=look_of_draws(given, labels),
        outside=outside,
        interactions=interactions,
        policy=_policy(style, script),
        style=Markup(style),  # noqa: S704 - a file of this folder
        script=Markup(script),  # noqa: S704
        data=Markup(to_json(pack(given, labels, judged, outside, interactions))),  # noqa: S704 - escaped there
    )


def to_json(data: Any) -> str:
    """JSON that is safe in a script element: ASCII only, and nothing that could end the element or open another."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character, escaped in _ESCAPED.items():
        text = text.replace(character, escaped)
    return text


def _asset(name: str) -> str:
    return (files("condshap.reporting") / "assets" / name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """Content-Security-Policy: one style and one script, identified by their hashes, and nothing else."""
    rules = {
        "default-src": "'none'",
        "style-src": _hash(style),
        "script-src": _hash(script),
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
