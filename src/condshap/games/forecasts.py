"""Model of lags, series, times -> explanation of forecasts: one run for all steps ahead, players are variables or lags."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from condshap.exceptions import ModelError, OptionError, SchemaError, listing
from condshap.explainer import Explainer
from condshap.explaining import finish, get_ready
from condshap.explanation import Explanation
from condshap.games.lagged import Windows
from condshap.games.timeline import Timeline
from condshap.models.calling import describe_model, is_instance
from condshap.options import check_choice, find_named
from condshap.types import Indices, Model
from condshap.values.assignments import new_approach


def explain_forecast(
    model: Model,
    series: Any,
    *,
    lags: int,
    horizon: int,
    at: Any,
    exogenous: Any = None,
    exogenous_lags: int = 0,
    known_ahead: bool | Sequence[str] | None = None,
    group_by: str | None = "variable",
    **options: Any,
) -> Explanation:
    """Explain forecasts of a model that maps a row of lags to one output per step ahead.

    Parameters
    ----------
    model : any model that `Explainer` takes, with `horizon` outputs; its columns are those of `lagged_table`. A function
        gets an array where series and exogenous are arrays, else a pandas table
    series : (T,) or (T, A) numbers in the order of time: NumPy, pandas or Polars; the first column is forecast
    lags : values of each series in a row, the last known one first
    horizon : steps ahead, the outputs "t+1", "t+2", ...
    at : the times t to explain, each the last one whose value is known: a label of the series' index, a position (where the
        index does not hold numbers itself), a list of them, a slice or a mask; negative positions count from the end
    exogenous, exogenous_lags, known_ahead : other variables, see `lagged_table`
    group_by : "variable", all columns of a variable are one player; "lag" or None, every column is one
    options : of `Explainer`, such as `approach`, `n_samples` and `seed`; `categorical` names exogenous variables whose
        numbers are levels; `output` may be a step, such as "t+2"; `groups` of columns need ``group_by=None``

    Returns
    -------
    Explanation with a row per time; `data` has the rows of lags, with the times as labels

    Notes
    -----
    The features' distribution, and the base value, are learned from all complete windows that end before the first explained
    time: nothing of the series at that time or later is used. Gaps need an approach that handles missing values.
    """
    check_choice("group_by", group_by, ("variable", "lag", None))
    windows = Windows.of(Timeline.read(series, exogenous), lags, horizon, exogenous_lags, known_ahead)
    train, explained = _choose_rows(windows, at)
    categorical = _columns_of(options.pop("categorical", ()), windows)
    output = _output(windows, options.pop("output", None))
    explainer = Explainer(_as_given(model, windows), output=output, **_with_groups(windows, group_by, options))
    _check_gaps(explainer.approach, windows, train, explained)
    ready = get_ready(explainer, windows.rows(train), windows.rows(explained), categorical=categorical)
    n_outputs = ready.prepared.setup.predictor.n_outputs
    if n_outputs != windows.horizon:
        raise ModelError(
            f"model {describe_model(model)} must return {windows.horizon} outputs, one for each step of the horizon, got "
            f"{n_outputs}. Train it on the tables of cs.lagged_table, or set horizon={n_outputs}."
        )
    picked = ready.prepared.setup.predictor.picked
    return replace(finish(ready), output_names=windows.steps if picked is None else (windows.steps[picked],))


def _choose_rows(windows: Windows, at: Any) -> tuple[Indices, Indices]:
    """Positions of the times to learn from, and of those to explain."""
    timeline, first, last = windows.timeline, windows.first, windows.last
    explained = timeline.find(at)
    early = explained[explained < first]
    if len(early):
        raise OptionError(
            f"at must leave {first} times before it for the lags, got {timeline.name_of(int(early[0]))}. Explain "
            f"times from position {first} on, or use fewer lags."
        )
    late = explained[explained > last]
    if len(late):
        raise OptionError(
            f"exogenous variables that are known ahead must reach {windows.horizon} steps beyond "
            f"{timeline.name_of(int(late[0]))}, but end after {len(timeline.exogenous)} rows. Add rows, explain earlier "
            "times, or use exogenous_lags and known_ahead=False."
        )
    train = np.arange(first, explained.min())
    if len(train) < 2:
        raise SchemaError(
            f"there must be at least 2 complete windows of {first + 1} values before the first explained time, "
            f"{timeline.name_of(int(explained.min()))}, to learn from, got {len(train)}. Explain later times, or use fewer "
            "lags."
        )
    return train, explained


def _with_groups(windows: Windows, group_by: str | None, options: dict[str, Any]) -> dict[str, Any]:
    """Options of the explainer with groups of columns, where these are the players."""
    if group_by != "variable":
        return options
    if options.get("groups") is not None:
        raise OptionError("groups needs group_by=None, got group_by='variable'. Set group_by, or leave groups out.")
    return options | {"groups": windows.groups()}


def _output(windows: Windows, output: str | int | None) -> str | None:
    """Output of the model, which knows no names of steps, for a step that is given by name or position."""
    if output is None:
        return None
    found = find_named("output", output, windows.steps)
    if found is None:
        raise OptionError(f"output must be one of {listing(windows.steps)} or a position, got {output!r}.")
    return f"position:{found}"


def _columns_of(categorical: Iterable[str], windows: Windows) -> list[str]:
    """Columns of variables whose numbers are levels."""
    groups, wanted = windows.groups(), [categorical] if isinstance(categorical, str) else list(categorical)
    unknown = [name for name in wanted if name not in windows.timeline.exogenous.columns]
    if unknown:
        names = list(windows.timeline.exogenous.columns)
        raise OptionError(f"categorical must be exogenous variables among {listing(names)}, got {listing(unknown)}.")
    return [column for name in wanted for column in groups[name]]


def _check_gaps(approach: Any, windows: Windows, train: Indices, explained: Indices) -> None:
    """Refuse gaps, with the variables and times where they are, unless every approach handles them."""
    entries = approach if isinstance(approach, (list, tuple)) else [approach]
    unable = [one for one in map(new_approach, entries) if not one.handles_missing]
    if not unable:
        return
    used = np.concatenate([train, explained])
    for table in (windows.timeline.series, windows.timeline.exogenous):
        for name in table.columns:
            offsets = [cell.offset for cell in windows.cells if cell.variable == name]
            places = np.unique(used[:, None] + np.array(offsets, dtype=np.intp))
            gone = places[table[name].iloc[places].isna().to_numpy()]
            if len(gone):
                times = listing(str(table.index[i]) for i in gone)
                raise SchemaError(
                    f"approach '{unable[0].name}' needs variables without gaps, got missing values of '{name}' at {times}. "
                    "Interpolate them, or use an approach that handles missing values, such as 'vaeac'."
                )


def _as_given(model: Model, windows: Windows) -> Model:
    """The model, or a function for which tables become arrays as the series was one; other models say what they want."""
    is_function = callable(model) and not isinstance(model, type) and not hasattr(model, "predict")
    if windows.timeline.is_array and is_function and not is_instance(model, "torch", "nn.Module"):
        return _OfArrays(model)
    return model


@dataclass(frozen=True)
class _OfArrays:
    """A function of arrays as one of tables."""

    function: Any

    def __call__(self, table: pd.DataFrame) -> Any:
        return self.function(table.to_numpy())
