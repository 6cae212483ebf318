"""Explanation, labels of its rows -> explanations of cohorts: by given labels, by a column, or by a shallow tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from condshap.exceptions import OptionError, listing
from condshap.numerics.readable import feature_value, typed
from condshap.options import check_integer
from condshap.tables.reading import Column, read_columns, to_pandas
from condshap.types import Floats, Indices

if TYPE_CHECKING:
    from condshap.explanation import Explanation

_MOST_NUMBERS = 10
"""Different numbers of a column up to which each is a cohort."""


def split(explanation: Explanation, by: Any) -> dict[str, Explanation]:
    """Cohorts by name, see `Explanation.cohorts`."""
    if not len(explanation):
        raise OptionError("cohorts need at least one row, got none. Explain or select some.")
    if isinstance(by, str):
        codes, names = _by_column(explanation, by)
    elif np.ndim(by) == 0:
        codes, names = _by_tree(explanation, check_integer("by", by, least=1))
    else:
        codes, names = _by_labels(explanation, by)
    return {name: explanation[np.flatnonzero(codes == code)] for code, name in names.items()}


def _by_column(explanation: Explanation, by: str) -> tuple[Indices, dict[int, str]]:
    """Cohorts by the values of a feature."""
    columns = _columns(explanation)
    if by not in columns:
        raise OptionError(
            f"by must be a feature among {listing(columns)}, a number of cohorts, or a label for each row, got {by!r}."
        )
    column = columns[by]
    if column.numbers is None:
        assert column.codes is not None
        return column.codes, _ordered(column.codes, [f"{by} = {level}" for level in column.levels], f"{by} missing")
    levels = np.unique(column.numbers[~np.isnan(column.numbers)])
    if len(levels) > _MOST_NUMBERS:
        raise OptionError(
            f"by must be a column with at most {_MOST_NUMBERS} different numbers, got {by!r} with {len(levels)}. Cut it "
            f"into classes, e.g. explanation.cohorts(pd.qcut(rows[{by!r}], 4))."
        )
    codes = np.where(np.isnan(column.numbers), -1, np.searchsorted(levels, column.numbers))
    return codes, _ordered(codes, [f"{by} = {level:g}" for level in levels], f"{by} missing")


def _by_labels(explanation: Explanation, by: Any) -> tuple[Indices, dict[int, str]]:
    """Cohorts by a label for each row, in the order of categories if there is one, else sorted."""
    labels = _aligned(explanation, by)
    if isinstance(labels.dtype, pd.CategoricalDtype):
        codes, levels = labels.cat.codes.to_numpy().astype(np.intp), list(labels.cat.categories)
    else:
        try:
            found, different = pd.factorize(labels, sort=True)
        except TypeError:  # labels of several types have no order
            found, different = pd.factorize(labels)
        codes, levels = found.astype(np.intp), list(different)
    names = [str(level) for level in levels]
    if len(set(names)) < len(names):
        raise OptionError(f"labels must differ as text, got {listing(levels)}. Rename some of them.")
    return codes, _ordered(codes, names, "missing")


def _aligned(explanation: Explanation, by: Any) -> pd.Series[Any]:
    """Labels in the order of the rows: those of a pandas Series by its index if it has all of the rows' labels."""
    data, n_rows = explanation.data, len(explanation)
    if (
        isinstance(by, pd.Series)
        and isinstance(data, pd.DataFrame)
        and by.index.is_unique
        and data.index.isin(by.index).all()
    ):
        return by.loc[data.index]
    try:
        labels = by.reset_index(drop=True) if isinstance(by, pd.Series) else pd.Series(by)
    except (TypeError, ValueError) as error:
        raise OptionError(f"by must be a label for each of {n_rows} rows, got {type(by).__name__}: {error}.") from None
    if len(labels) != n_rows:
        raise OptionError(f"by must be a label for each of {n_rows} explained rows, got {len(labels)} labels.")
    return labels


def _ordered(codes: Indices, names: Sequence[str], missing: str) -> dict[int, str]:
    """Names by code of those cohorts that have rows, rows without a label last."""
    present = set(codes.tolist())
    found = {code: name for code, name in enumerate(names) if code in present}
    return found | ({-1: missing} if -1 in present else {})


def _columns(explanation: Explanation) -> dict[str, Column]:
    """Columns of the explained rows by the names of the features."""
    frame = to_pandas(explanation.data)
    names = [str(name) for name in frame.columns]
    if set(names) != set(explanation.feature_names):  # trained on an array, whose columns have generated names
        names = list(explanation.feature_names)
    return dict(zip(names, read_columns(frame), strict=True))


def _by_tree(explanation: Explanation, most: int) -> tuple[Indices, dict[int, str]]:
    """Up to `most` cohorts whose rows have similar Shapley values, as the leaves of a regression tree on the features."""
    from sklearn.tree import DecisionTreeRegressor

    inputs, questions = _tree_inputs(explanation)
    values = explanation.values.reshape(len(explanation), -1)
    if most == 1 or len(explanation) == 1:
        return np.zeros(len(explanation), dtype=np.intp), {0: "all rows"}
    tree = DecisionTreeRegressor(max_leaf_nodes=most, random_state=0).fit(inputs, values).tree_
    leaves = tree.apply(inputs.astype(np.float32)).astype(np.intp)
    names: dict[int, str] = {}
    for leaf, path in _paths(tree).items():
        name = " & ".join(_conditions(path, questions, inputs)) or "all rows"
        names[leaf] = name if name not in names.values() else f"{name} ({leaf})"
    return leaves, names


def _tree_inputs(explanation: Explanation) -> tuple[Floats, list[tuple[str, str | None]]]:
    """Numbers as they are, levels as a column of 0 and 1 each; with the names of feature and level."""
    inputs: list[npt.NDArray[Any]] = []
    questions: list[tuple[str, str | None]] = []
    for name, column in _columns(explanation).items():
        if column.numbers is not None:
            inputs.append(column.numbers)
            questions.append((name, None))
            continue
        for code in np.unique(column.codes) if column.codes is not None else ():
            inputs.append(column.codes == code)
            questions.append((name, "missing" if code < 0 else str(column.levels[code])))
    return np.column_stack(inputs).astype(np.float64), questions


_Step = tuple[int, bool, float, bool]
"""Input, whether the way goes left, threshold, and whether missing values go the same way."""


def _paths(tree: Any) -> dict[int, list[_Step]]:
    """Steps from the root to every leaf, leaves from left to right."""
    found: dict[int, list[_Step]] = {}

    def walk(node: int, steps: list[_Step]) -> None:
        if tree.children_left[node] < 0:
            found[node] = steps
            return
        j, cut, gaps_left = int(tree.feature[node]), float(tree.threshold[node]), bool(tree.missing_go_to_left[node])
        walk(int(tree.children_left[node]), [*steps, (j, True, cut, gaps_left)])
        walk(int(tree.children_right[node]), [*steps, (j, False, cut, not gaps_left)])

    walk(0, [])
    return found


def _conditions(path: list[_Step], questions: list[tuple[str, str | None]], inputs: Floats) -> list[str]:
    """What holds in a leaf, a text per feature."""
    found = []
    for j in dict.fromkeys(step[0] for step in path):
        (name, level), steps = questions[j], [step for step in path if step[0] == j]
        if level is not None:
            found.append(f"{name} {'≠' if steps[0][1] else '='} {level}")
            continue
        below, above = ([step[2] for step in steps if step[1] is left] for left in (True, False))
        text = f"{_edge(max(above))} < {name}" if above else name
        text = f"{text} ≤ {_edge(min(below))}" if below else f"{name} > {_edge(max(above))}"
        gaps = np.isnan(inputs[:, j]).any() and all(step[3] for step in steps)
        found.append(f"{text} or missing" if gaps else text)
    return found


def _edge(value: float) -> str:
    """End of a range, in letters that people can type."""
    return typed(feature_value(value))
