"""Results, errors and warnings -> lines and tables for people, JSON for programs."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from condshap.exceptions import CondShapError
from condshap.numerics.readable import estimate, interval, number, typed

if TYPE_CHECKING:
    import pandas as pd

    from condshap.explanation import Explanation
    from condshap.games.loss_explanation import LossExplanation


INTERRUPTED = 130
"""Exit code of a command that Ctrl-C has stopped, as shells have it."""


class Stopped(SystemExit):
    """Ends a command that Ctrl-C has stopped and that can say what is left; `condshap.cli.main` says it."""

    def __init__(self, left: str) -> None:
        super().__init__(INTERRUPTED)
        self.left = left


@contextmanager
def clear_messages() -> Iterator[None]:
    """Turn errors into one line on stderr and exit code 1, and each warning into one line."""
    with warnings.catch_warnings():
        warnings.showwarning = _say_warning
        try:
            yield
        except CondShapError as error:
            say(f"Error: {error}")
            raise typer.Exit(1) from None
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except OSError as error:
            say(f"Error: {error.filename or 'a file'} must be readable and writable, but {error.strerror or error}.")
            raise typer.Exit(1) from None


def _say_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    say(f"Warning: {message}")


def say(text: str) -> None:
    """Write to stderr, with the first word in bold if the terminal supports it."""
    first, colon, rest = text.partition(":")
    console = Console(stderr=True, highlight=False)
    console.print(
        f"[bold]{escape(first)}{colon}[/bold]{escape(rest)}", soft_wrap=not console.is_terminal
    )  # logs: 1 line


def print_json(found: Any) -> None:
    """Print data as JSON, which has no NaN: NaN and infinite numbers become null."""
    typer.echo(json.dumps(_plain(found), indent=2, allow_nan=False, ensure_ascii=False))


def _plain(found: Any) -> Any:
    """The same data in plain Python types."""
    if isinstance(found, dict):
        return {str(key): _plain(value) for key, value in found.items()}
    if isinstance(found, (list, tuple)):
        return [_plain(value) for value in found]
    if isinstance(found, Path):
        return str(found)
    if hasattr(found, "tolist"):  # of NumPy
        return _plain(found.tolist())
    return None if isinstance(found, float) and not math.isfinite(found) else found


def print_written(paths: list[Path], *, as_json: bool) -> None:
    """List the files that were written."""
    if as_json:
        print_json({"written": paths})
    else:
        for path in paths:
            typer.echo(f"Written: {path}")


def summary_of(explanation: Explanation, seconds: float) -> dict[str, Any]:
    """What was explained and how well, with the mean absolute Shapley value of every player (and output)."""
    about = explanation.provenance
    return {
        **_facts_of(explanation, seconds),
        "values": about.question,
        "outputs": explanation.output_names,
        "link": about.link,
        **_msev_of(explanation),
        "mean_abs": abs(explanation.values).mean(axis=0),
        "draw_check": None if about.draw_check is None else about.draw_check.score,
    }


def _facts_of(explanation: Explanation | LossExplanation, seconds: float) -> dict[str, Any]:
    """How it was explained, and what it cost."""
    about = explanation.provenance
    return {
        "approach": about.approach,
        "n_rows": len(explanation),
        "players": explanation.player_names,
        "n_coalitions": about.n_coalitions,
        "is_exact": about.is_exact,
        "tolerance": about.tolerance,
        "reached": about.reached,
        "seconds": seconds,
        "model_rows": None if explanation.value_table is None else explanation.value_table.n_evaluations,
        "warnings": about.warnings,
    }


def _msev_of(explanation: Explanation) -> dict[str, float | None]:
    """MSEv with its error and interval; None where it does not judge such values."""
    if explanation.provenance.no_msev:
        return dict.fromkeys(("msev", "msev_se", "low", "high"))
    msev = explanation.msev
    low, high = msev.interval()
    return {"msev": float(msev), "msev_se": msev.total_std_error(), "low": low, "high": high}


def loss_summary_of(loss: LossExplanation, seconds: float) -> dict[str, Any]:
    """What was explained, with the importance of every player."""
    return {
        **_facts_of(loss, seconds),
        "loss": loss.loss,
        "base_loss": loss.base_losses.mean(),
        "mean_loss": loss.losses.mean(),
        "importance": loss.importance,
        "importance_std_errors": loss.importance_std_errors,
    }


def print_loss_summary(loss: LossExplanation, out: Path, seconds: float) -> None:
    """Say which features the model needs, how sure that is, and where the file is."""
    about = loss.provenance
    console = Console(highlight=False)
    console.soft_wrap = not console.is_terminal
    kind = "all" if about.is_exact else "a sample of the"
    console.print(
        f"Explained the {loss.loss.replace('_', ' ')} of {len(loss)} rows, {len(loss.player_names)} features, with approach "
        f"'{about.approach}' and {kind} coalitions ({about.n_coalitions}), in {seconds:.1f} s."
    )
    console.print(f"Mean loss {_number(loss.losses.mean())}, without any feature {_number(loss.base_losses.mean())}.")
    shown = Table(box=box.ROUNDED)
    shown.add_column("feature", no_wrap=True)
    for heading in ("lowers the loss by", "standard error"):
        shown.add_column(heading, justify="right", no_wrap=True)
    for name, line in loss.importance_frame().iterrows():
        shown.add_row(escape(str(name)), *_with_error(line["importance"], line["std_error"]))
    console.print(shown)
    console.print(f"Written: {escape(str(out))}")


def _number(value: float) -> str:
    return typed(number(value))


def _with_error(value: float, std_error: float) -> tuple[str, str]:
    """A number and its standard error, both to the second digit of the error."""
    return typed(estimate(value, std_error)), typed(estimate(std_error, std_error))


def _interval(low: float, high: float, std_error: float) -> str:
    return typed(interval(low, high, std_error))


def print_summary(explanation: Explanation, out: Path, seconds: float) -> None:
    """Say what was explained, how well, and where the file is."""
    about = explanation.provenance
    console = Console(highlight=False)
    console.soft_wrap = not console.is_terminal
    kind = "all" if about.is_exact else "a sample of the"
    means = f"{kind} coalitions ({about.n_coalitions})"
    if about.amortised is not None:
        means = f"a network that learned its values (relative error {_number(about.amortised['error'])})"
    outputs = f", {len(explanation.output_names)} outputs" if explanation.values.ndim == 3 else ""
    console.print(
        f"Explained {len(explanation)} rows, {len(explanation.player_names)} features{outputs}, with approach "
        f"'{about.approach}' and {means}, in {seconds:.1f} s."
    )
    if about.reached is not None:
        console.print(
            f"The largest standard error is {about.reached:.2%} of its row's spread (tolerance {about.tolerance:.2%})."
        )
    if about.causal_ordering is not None:
        console.print(f"Values are {escape(about.question)}.")
    if about.link is not None:
        console.print("Values, predictions and base values are log-odds.")
    if len(explanation) > 1 and explanation.has_msev:
        msev = explanation.msev
        low, high, error = *msev.interval(), msev.total_std_error()
        console.print(
            f"MSEv {_with_error(float(msev), error)[0]}, 95 % interval {_interval(low, high, error)} (smaller is better)."
        )
    console.print(f"Written: {escape(str(out))}")


def print_comparison(table: pd.DataFrame, level: float) -> None:
    """Show the lines of `compare`; the smallest MSEv is bold."""
    shown = Table(box=box.ROUNDED)
    shown.add_column("approach", no_wrap=True)
    for heading in ("MSEv", f"{100 * level:.4g} % interval", "seconds", "model rows"):
        shown.add_column(heading, justify="right", no_wrap=True)
    for line in table.to_dict("records"):
        style = "bold" if line["msev"] == table["msev"].min() else None
        error = line["msev_se"]
        interval = "" if math.isnan(line["low"]) else _interval(line["low"], line["high"], error)
        numbers = (_with_error(line["msev"], error)[0], interval, f"{line['seconds']:.1f}", f"{line['model_rows']:,}")
        shown.add_row(escape(line["approach"]), *numbers, style=style)
    console = Console(highlight=False)
    console.soft_wrap = not console.is_terminal
    console.print("MSEv, mean squared distance of v(S) from the prediction (smaller is better)")
    console.print(shown)
