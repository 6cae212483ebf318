"""Explanation -> how it was made and how far it can be trusted, as texts for the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from condshap.assembly import BLUR, blurred
from condshap.explanation import Explanation, Provenance
from condshap.numerics.likeness import FREQUENCY
from condshap.numerics.readable import estimate, fixed, interval, number
from condshap.numerics.row_means import half_width, not_below_zero
from condshap.precision.convergence import MISSED
from condshap.reporting.outside_training import Outside
from condshap.types import Floats

_SURE = 1.959963984540054  # standard errors on each side that hold 95 % of a normal distribution
_LINES = 8  # in the table of differences between rows and draws
_GAP = 1e-6  # relative to the predictions: a larger gap is not rounding


@dataclass(frozen=True, slots=True)
class Line:
    """Quality of one output: MSEv with its 95 % interval, standard errors, share of certain signs, largest gap of sums."""

    output: str
    msev: float
    low: float
    high: float
    msev_error: float
    median_error: float
    largest_error: float
    share_of_spread: float
    sure: float
    gap: float
    is_gap_large: bool
    behind: str = ""
    """How far MSEv is above that of the best explanation, with a 95 % interval over the same rows."""


Judged: TypeAlias = tuple[Line, ...]
"""Quality of an explanation, output by output."""


@dataclass(frozen=True, slots=True)
class Note:
    """Something that a reader should know: kind is "warning", "note" or "good"."""

    kind: str
    text: str


def judge(explanation: Explanation, compared: Explanation | None = None) -> Judged:
    """Figures that tell how good an explanation is.

    MSEv is that of `compared`: the same explanation, restricted to the coalitions that all compared explanations share.
    """
    shape = (*explanation.values.shape[:2], -1)
    values, errors = explanation.values.reshape(shape), explanation.errors.reshape(shape)
    flat = (shape[0], -1)
    predictions, base = explanation.predictions.reshape(flat), explanation.base_values.reshape(flat)
    gaps = np.abs(base + values.sum(axis=1) - predictions)
    criteria = _msev(compared or explanation)
    return tuple(
        Line(
            name,
            *criteria[o],
            median_error=float(np.median(errors[..., o])),
            largest_error=float(errors[..., o].max()),
            share_of_spread=_share(values[..., o], errors[..., o], predictions[:, o]),
            sure=_sure(values[..., o], errors[..., o]),
            gap=float(gaps[:, o].max()),
            is_gap_large=bool(gaps[:, o].max() > _GAP * max(1e-12, float(np.abs(predictions[:, o]).max()))),
        )
        for o, name in enumerate(explanation.output_names)
    )


def _msev(explanation: Explanation) -> list[tuple[float, float, float, float]]:
    """MSEv of every output with its 95 % interval over rows and its standard error; NaN where there is none."""
    n, none = len(explanation), [(np.nan,) * 4] * len(explanation.output_names)
    if not explanation.has_msev:
        return none
    msev = explanation.msev
    if len(msev.per_coalition) == 0:  # a single player, or no coalition that all rows have in common
        return none
    values, errors = np.atleast_1d(msev.value), np.atleast_1d(msev.std_error)
    ends = [not_below_zero(v - half_width(e, n), v + half_width(e, n)) for v, e in zip(values, errors, strict=True)]
    return [(float(v), *both, float(e)) for v, both, e in zip(values, ends, errors, strict=True)]


def against_the_best(given: Sequence[Explanation], judged: Sequence[Judged]) -> list[Judged]:
    """Add the difference between each explanation and the best one, paired by row because the rows are the same."""
    if len(given) == 1 or any(np.isnan(line.msev) for lines in judged for line in lines):
        return list(judged)
    n = len(given[0])
    per_row = np.stack([one.msev.per_row.reshape(n, -1) for one in given])  # (explanations, R, O)
    best = per_row.mean(axis=1).argmin(axis=0)
    differences = per_row - per_row[best, :, np.arange(per_row.shape[2])].T
    return [
        tuple(
            replace(line, behind="best" if best[o] == i else _paired(differences[i, :, o]))
            for o, line in enumerate(lines)
        )
        for i, lines in enumerate(judged)
    ]


def _paired(differences: Floats) -> str:
    n, mean = len(differences), float(differences.mean())
    if n < 2:
        return f"+{number(mean, 3)}"
    error = float(differences.std(ddof=1)) / np.sqrt(n)
    half = half_width(error, n)
    return f"+{estimate(mean, error, 3)} ({interval(mean - half, mean + half, error, 3)})"


def best_of(judged: Sequence[Judged]) -> int:
    """Position of the explanation with the smallest MSEv, added up over outputs; the first one where MSEv does not judge."""
    totals = np.array([sum(line.msev for line in lines) for lines in judged])
    return 0 if np.isnan(totals).any() else int(totals.argmin())


def _sure(values: Floats, errors: Floats) -> float:
    """Share of values (R, P) whose sign is certain; NaN if errors are unknown."""
    return np.nan if np.isnan(errors).any() else float(np.mean(np.abs(values) > _SURE * errors))


def _share(values: Floats, errors: Floats, predictions: Floats) -> float:
    """Largest error of a row (R, P) over its spread, for the median row; a spread is at least 1 % of that of predictions."""
    spread = np.maximum(np.ptp(values, axis=1), 0.01 * float(np.ptp(predictions)))
    largest = errors.max(axis=1)
    return float(np.median(np.where(largest == 0, 0.0, largest / np.maximum(spread, 1e-300))))


def notes(
    given: Sequence[Explanation],
    compared: Sequence[Explanation],
    labels: Sequence[str],
    judged: Sequence[Judged],
    outside: Outside | None,
) -> list[Note]:
    """What needs the reader's attention, most serious first; `compared` are restricted to the coalitions that all share."""
    found: list[Note] = []
    if any(one is not other for one, other in zip(given, compared, strict=True)):
        n = len(compared[0].value_table.coalitions) - 2
        found.append(
            Note("warning", f"the explanations use different coalitions: MSEv is over the {n} that all of them share.")
        )
    for one, label, lines in zip(given, labels, judged, strict=True):
        front = f"{label}: " if len(given) > 1 else ""
        about = one.provenance
        found += [Note("warning", front + text) for text in about.warnings]
        found += _note_blur(one, front)
        if _is_missed(about):
            found.append(
                Note(
                    "warning",
                    f"{front}the tolerance was not reached: the error of the worst row is {about.reached:.2%} of its "
                    f"spread, more than the {about.tolerance:.2%} you asked for.",
                )
            )
        if np.isnan(one.std_errors).any():
            text = "standard errors are unknown, because a single sample cannot show its own error. Raise n_samples."
            found.append(Note("warning", front + text))
        if any(line.is_gap_large for line in lines):
            gap = max(line.gap for line in lines)
            found.append(
                Note(
                    "warning",
                    f"{front}base value and Shapley values together miss the prediction by up to {number(gap, 3)}.",
                )
            )
        if one.unlike_pool is not None and one.unlike_pool.any():
            n, is_said = int(one.unlike_pool.sum()), any("unlike the pool" in text for text in about.warnings)
            found += (
                []
                if is_said
                else [Note("note", f"{front}{n} of {len(one)} rows are unlike the pool; they are marked.")]
            )
        if about.n_repaired:
            found.append(
                Note(
                    "note",
                    f"{front}{about.n_repaired} coalitions were added, because fewer could not tell the players apart or "
                    "estimate the errors.",
                )
            )
    found.append(_note_outside(outside, len(given[0])))
    return sorted(found, key=lambda note: ("warning", "note", "good").index(note.kind))


def _is_missed(about: Provenance) -> bool:
    """Whether the tolerance was missed and no warning says so."""
    is_said = any(MISSED in text for text in about.warnings)
    return about.tolerance is not None and about.reached is not None and about.reached > about.tolerance and not is_said


def _note_blur(explanation: Explanation, front: str) -> list[Note]:
    """Warn that noise is as large as the values, unless the explanation already does; a subset of rows may be worse."""
    if any(BLUR in text for text in explanation.provenance.warnings):
        return []
    shape = (*explanation.values.shape[:2], -1)
    values, errors = explanation.values.reshape(shape), explanation.std_errors.reshape(shape)
    text = blurred(values, errors, explanation.output_names)
    return [] if text is None else [Note("warning", f"{front}{text}")]


def _note_outside(outside: Outside | None, n_rows: int) -> Note:
    if outside is None:
        return Note(
            "note",
            "Rows outside the training data are not marked, because the report was made without training rows.",
        )
    n = len(outside.by_row)
    if n == 0:
        return Note("good", f"All values of all rows lie within the training data ({outside.n_train} rows).")
    which = ", ".join(f"{name} ({count})" for name, count in list(outside.by_feature.items())[:5])
    rest = f" and {len(outside.by_feature) - 5} more features" if len(outside.by_feature) > 5 else ""
    return Note(
        "warning",
        f"{n} of {n_rows} rows have values outside the training data ({outside.n_train} rows), in {which}{rest}. "
        "Approach and model extrapolate there; the table marks these rows.",
    )


@dataclass(frozen=True, slots=True)
class Drawn:
    """Whether the draws of an explanation look like rows: a text, and the worst differences as lines of a table."""

    label: str
    text: str
    lines: tuple[tuple[str, ...], ...]


def look_of_draws(given: Sequence[Explanation], labels: Sequence[str]) -> list[Drawn]:
    """What the draw check found, for every explanation."""
    found = []
    for one, label in zip(given, labels, strict=True):
        check = one.provenance.draw_check
        if check is None:
            found.append(Drawn(label, "The draws were not checked, or the approach draws nothing.", ()))
            continue
        lines = tuple(
            (
                " and ".join(line.what),
                "yes" if line.is_large else "no",
                _of_kind(line.kind, line.rows),
                _of_kind(line.kind, line.draws),
                fixed(line.z, 1),
                line.kind,
                line.given,
            )
            for line in check.worst[:_LINES]
        )
        found.append(Drawn(label, check.text[0].upper() + check.text[1:], lines))
    return found


def _of_kind(kind: str, value: float) -> str:
    return f"{fixed(100 * value, 1)}%" if kind == FREQUENCY else fixed(value, 2)


def describe(explanation: Explanation, model: object) -> list[tuple[str, str]]:
    """How an explanation was made, as pairs of a label and a text."""
    about, table = explanation.provenance, explanation.value_table
    n_players = len(explanation.player_names)
    is_grouped = any(len(members) != 1 for members in explanation.membership)
    kind = f"all of 2^{n_players}" if about.is_exact else f"sampled from 2^{n_players}"
    if about.asymmetric:
        kind = f"{'all' if about.is_exact else 'some'} of those that respect the order"
    lines = {
        "Model": "" if model is None else _short(model if isinstance(model, str) else repr(model)),
        "Values": about.question,
        "What": _what(about),
        "Approach": about.approach,
        "Options": ", ".join(f"{key}={value!r}" for key, value in about.options.items()) or "none",
        "Rows": f"{len(explanation):,}",
        "Players": f"{n_players} groups of {len(explanation.feature_names)} features"
        if is_grouped
        else f"{n_players} features",
        "Outputs": ", ".join(explanation.output_names),
        "Coalitions": f"{about.n_coalitions:,} ({kind})",
        "Samples per coalition": _samples(about.n_samples),
        "Rows predicted by the model": "" if table is None else f"{table.n_evaluations:,}",
        "Amortised": _amortised(about),
        "Base value": about.base_value_from,
        "Precision": ""
        if about.tolerance is None
        else f"tolerance {about.tolerance:.2%} of a row's spread; worst row {_percent(about.reached)}, after "
        f"{about.n_iterations} steps",
        "Errors": _errors(about.model_errors_from)
        if about.amortised is None
        else "from the network's errors on held-out rows",
        "Seed": str(about.seed),
        "Time": ", ".join(f"{key} {_seconds(value)}" for key, value in about.seconds.items()),
        "Versions": ", ".join(f"{name} {version}" for name, version in about.versions.items()),
    }
    return [(key, text) for key, text in lines.items() if text]


def _amortised(about: Provenance) -> str:
    """How the network was made that gave the values, if one did."""
    if about.amortised is None:
        return ""
    made, (low, high) = about.amortised, about.amortised["error_interval"]
    exactly = "; rows unlike the pool were explained exactly" if made["fallback"] == "exact" else ""
    return (
        f"by a network that learned from {made['labels']} labels of {made['rows']} rows; relative error {made['error']:.3f} "
        f"({low:.3f} to {high:.3f}) on {made['judging_rows']} held-out rows{exactly}"
    )


def _what(about: Provenance) -> str:
    """What is shared out, where it is not the prediction."""
    if about.loss is not None:
        return f"{about.loss.replace('_', ' ')}: by how much knowing a player lowers it"
    return "" if about.link is None else "log-odds of the model's probabilities"


def shared_first(about: Sequence[list[tuple[str, str]]]) -> list[list[tuple[str, str]]]:
    """Lines that all explanations share, then the remaining lines of each."""
    shared = [line for line in about[0] if all(line in lines for lines in about)]
    return [shared, *([line for line in lines if line not in shared] for lines in about)]


def _errors(source: str | None) -> str:
    """What the errors of an explanation include."""
    sampling = "from samples and coalitions"
    if source is None:
        return f"{sampling}; not from having learned the distribution of the features"
    more = {
        "members": "from training, by how far the networks differ",
        "refits": "from learning the distribution of the features, by refits",
    }
    return f"{sampling}, and {more.get(source, 'from learning the distribution of the features, as given')}"


def _short(text: str, limit: int = 2000) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _samples(n_samples: Sequence[int]) -> str:
    if len(n_samples) == 0:
        return "none"
    return f"{n_samples[0]:,}" if len(n_samples) == 1 else f"{min(n_samples):,} to {max(n_samples):,}"


def _percent(share: float | None) -> str:
    return "unknown" if share is None else f"{share:.2%}"


def _seconds(value: float) -> str:
    return f"{value:.2g} s" if value < 10 else f"{value:.0f} s" if value < 120 else f"{value / 60:.1f} min"
