"""Figures of `network_precision` -> Markdown tables: every arithmetic beside the default, paired by seed."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.investigations.networks.arithmetic import SAMPLING, TRAINING
from benchmarks.lib.report import table

Lines = dict[str, dict[str, Any]]
NOTHING = "-"
OTHER = ("other", "float32, other random numbers")


def training_table(lines: Lines, baseline: str) -> str:
    """Lines by name, each with its first call and a fit for every seed -> table; changes are against `baseline`."""
    return table([_training_line(name, lines, baseline) for name in TRAINING])


def _training_line(name: str, lines: Lines, baseline: str) -> dict[str, str]:
    line = lines.get(name, {})
    fits, default = line.get("fits", []), lines.get(baseline, {}).get("fits", [])
    pace, usual = (
        1000 * min((fit["seconds"] / fit["epochs"] for fit in some), default=np.nan) for some in (fits, default)
    )
    return {
        "training": TRAINING[name].title + (" (compared with)" if name == baseline else ""),
        "first call, s": f"{line['first']:.2f}" if fits else NOTHING,
        "s a fit": _mean(fits, "seconds", ".2f"),
        "epochs": _mean(fits, "epochs", ".0f"),
        "ms an epoch": f"{pace:.2f}" if fits else NOTHING,
        "speed": f"{usual / pace:.2f}" if fits and default else NOTHING,
        "held-out IWAE": _mean(fits, "iwae", ".3f"),
        "log-density of new rows": _mean(fits, "density", ".3f"),
        "change of it": paired(fits, default, "density", ".4f") if name != baseline else NOTHING,
        "EC1": _mean(fits, "ec1", ".4f"),
        "change of EC1": paired(fits, default, "ec1", ".4f") if name != baseline else NOTHING,
        "note": _note(line),
    }


def _note(line: dict[str, Any]) -> str:
    """What stands in the way, if anything; a bar would end the cell."""
    return str(line.get("note", "") if line else "not begun").replace("|", "/")


def _mean(fits: list[dict[str, Any]], figure: str, form: str) -> str:
    return NOTHING if not fits or figure not in fits[0] else f"{np.mean([fit[figure] for fit in fits]):{form}}"


def paired(fits: list[dict[str, Any]], default: list[dict[str, Any]], figure: str, form: str) -> str:
    """Mean difference over the seeds that both have, with its standard error where there are two."""
    usual = {fit["seed"]: fit.get(figure) for fit in default}
    apart = [fit[figure] - usual[fit["seed"]] for fit in fits if figure in fit and usual.get(fit["seed"]) is not None]
    if not apart:
        return NOTHING
    mean = f"{np.mean(apart):+{form}}"
    return mean if len(apart) == 1 else f"{mean} ± {np.std(apart, ddof=1) / np.sqrt(len(apart)):{form}}"


def sampling_table(lines: Lines) -> str:
    """Seconds of sampling, and how far v(S) moves, beside what other random numbers do."""
    titles = {name: arithmetic.title for name, arithmetic in SAMPLING.items()}
    return table([_sampling_line(title, lines.get(name, {})) for name, title in (*titles.items(), OTHER)])


def _sampling_line(title: str, line: dict[str, Any]) -> dict[str, str]:
    def number(figure: str, form: str, by: float = 1.0) -> str:
        return f"{line[figure] / by:{form}}" if figure in line else NOTHING

    return {
        "sampling": title,
        "first call, s": number("first", ".3f"),
        "s": number("seconds", ".3f"),
        "largest change of v(S)": number("largest", ".1e"),
        "RMS change": number("rms", ".1e"),
        "RMS change / SD of v(S)": number("rms", ".1e", line.get("spread", 1.0)),
        "note": _note(line),
    }
