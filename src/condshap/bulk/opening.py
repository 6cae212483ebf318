"""Folder of explained parts -> a set of explanations that reads only what it is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from condshap.bulk.joining import join
from condshap.bulk.manifest import NAME, Done, Manifest, read_manifest
from condshap.bulk.part_files import CARRIED, read_columns, read_part
from condshap.exceptions import OptionError, StorageError, listing
from condshap.explanation import Explanation
from condshap.options import as_path, check_integer
from condshap.types import Indices

if TYPE_CHECKING:
    import pandas as pd

_REPORTED = 1000


@dataclass(frozen=True, eq=False)
class ExplanationSet:
    """Explanations in a folder, which `Explainer.explain_dataset` wrote. Parts are read when they are needed.

    Iterating gives the explanation of one part after the other. A run that is in progress or was stopped has fewer parts
    than planned; everything here is then about those that are finished, see `is_complete`.

    Attributes
    ----------
    folder : where the parts are
    manifest : the options of the run, and which parts are finished
    """

    folder: Path
    manifest: Manifest = field(repr=False)

    @property
    def parts(self) -> list[Done]:
        """Finished parts in the order of the source: file, rows, seconds, warnings."""
        return self.manifest.finished

    @property
    def is_complete(self) -> bool:
        """Whether all parts of the source are finished."""
        plan = self.manifest.plan
        return plan is not None and plan.broken_at is None and not self.manifest.missing

    @property
    def key(self) -> str | None:
        """Column that identifies rows; None where their position does."""
        found: str | None = self.manifest.run["options"]["key"]
        return found

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that were carried along."""
        return tuple(self.manifest.run["options"]["columns"])

    def __len__(self) -> int:
        """Return the number of explained rows."""
        return sum(done.part.n_rows for done in self.parts)

    def __repr__(self) -> str:
        """Say what was explained, in one line."""
        n_missing = len(self.manifest.missing)
        rest = "" if self.is_complete else f", {n_missing} parts or more are missing"
        options = self.manifest.run["options"]
        return f"ExplanationSet({len(self):,} rows in {len(self.parts)} parts, values={options['values']!r}{rest})"

    def __iter__(self) -> Iterator[Explanation]:
        """Give the explanations of the parts, one after the other."""
        return (read_part(self.folder, done) for done in self.parts)

    def to_explanation(self, limit: int | None = None) -> Explanation:
        """One explanation of the first `limit` rows, or of all, which then have to fit into memory."""
        wanted = len(self) if limit is None else min(check_integer("limit", limit, least=1), len(self))
        return self._take(np.arange(wanted))

    def rows(self, keys: Any) -> Explanation:
        """Explanation of the rows with these keys, in their order; without a key column keys are positions from 0.

        Only parts that can have one of the keys are looked into, and only those that have one are read.
        """
        asked = [keys] if isinstance(keys, (str, bytes)) or not isinstance(keys, Iterable) else list(keys)
        if not asked:
            raise OptionError("keys must name at least one row, got none.")
        return self._take(self._positions(asked) if self.key is None else self._find(asked))

    def summary(self) -> pd.DataFrame:
        """One line per player (and output) over all rows, read part by part.

        Columns: mean size, mean, smallest and largest value, and mean error, which bounds that of the means.
        """
        from condshap.bulk.summing import summarise

        self._need_rows()
        return summarise(self)

    def to_frame(self, limit: int | None = None, *, errors: bool = False) -> pd.DataFrame:
        """Key, carried columns, base value, Shapley values and prediction of the first `limit` rows, or of all.

        See `Explanation.to_frame`; with several outputs there is a line for each of them.
        """
        explanation = self.to_explanation(limit)
        frame = explanation.to_frame(errors=errors)
        # the key is a column: pandas calls a name that the index has as well ambiguous
        frame.index = frame.index.set_names([None, *frame.index.names[1:]])
        times = len(frame) // max(1, len(explanation))
        for place, name in enumerate(dict.fromkeys([*([self.key] if self.key else []), *self.columns])):
            values = self._carried(name, len(explanation))
            frame.insert(place, name, values.repeat(times), allow_duplicates=True)
        return frame

    def report(self, path: str | Path, *, limit: int = _REPORTED, title: str | None = None, **options: Any) -> Path:
        """Write a page with `limit` rows, evenly spread over the set; further options are those of `condshap.report`."""
        from condshap.reporting import report

        self._need_rows()
        n = min(check_integer("limit", limit, least=1), len(self))
        chosen = np.unique(np.linspace(0, len(self) - 1, n).round().astype(np.intp))
        shown = title or f"Shapley values, {len(chosen):,} of {len(self):,} rows"
        return report(self._take(chosen), path, title=shown, **options)

    def _need_rows(self) -> None:
        if not self.parts:
            raise OptionError(
                f"'{self.folder}' must have a finished part, but has none yet. Call explain_dataset again."
            )

    @property
    def _ends(self) -> Indices:
        return np.array(list(accumulate(done.part.n_rows for done in self.parts)), dtype=np.intp)

    def _take(self, positions: Indices) -> Explanation:
        """Explanation of rows at positions in the set, in their order."""
        self._need_rows()
        parts, ends = self.parts, self._ends
        which = np.searchsorted(ends, positions, side="right")
        taken, order = [], []
        for i in np.unique(which).tolist():
            of_part = np.flatnonzero(which == i)
            inside = positions[of_part] - (ends[i] - parts[i].part.n_rows)
            part = read_part(self.folder, parts[i])
            is_whole = len(inside) == len(part) and (np.diff(inside) == 1).all()
            taken.append(part if is_whole else part[inside])
            order.append(of_part)
        joined, places = join(taken), np.argsort(np.concatenate(order), kind="stable")
        return joined if (np.diff(places) == 1).all() else joined[places]

    def _positions(self, asked: list[Any]) -> Indices:
        found = [check_integer("a key without a key column", one, least=0) for one in asked]
        beyond = [one for one in found if one >= len(self)]
        if beyond:
            raise OptionError(f"keys must be positions below {len(self)}, got {listing(beyond)}.")
        return np.array(found, dtype=np.intp)

    def _find(self, asked: list[Any]) -> Indices:
        """Positions of rows by their keys, which are compared as text where the column holds text."""
        wanted = dict.fromkeys(_plain(one) for one in asked)
        found: dict[Any, int] = {}
        for end, done in zip(self._ends.tolist(), self.parts, strict=True):
            possible = [key for key in wanted if key not in found and _may_have(done, key)]
            if not possible:
                continue
            start = end - done.part.n_rows
            values = read_columns(self.folder, done, [f"{CARRIED}{self.key}"]).column(0).to_pylist()
            place = {value: start + i for i, value in enumerate(values)}
            by_text = {str(value): at for value, at in place.items()} if isinstance(values[0], str) else {}
            found |= {key: at for key in possible if (at := place.get(key, by_text.get(str(key)))) is not None}
        unknown = [key for key in wanted if key not in found]
        if unknown:
            partly = "" if self.is_complete else " Not all parts are finished yet."
            raise OptionError(f"keys must be among those of '{self.key}', got {listing(unknown)}.{partly}")
        return np.array([found[_plain(one)] for one in asked], dtype=np.intp)

    def _carried(self, name: str, n: int) -> Any:
        """A column that was carried along, of the first n rows."""
        import pyarrow as pa

        parts = self.parts[: int(np.searchsorted(self._ends, n)) + 1]
        read = [read_columns(self.folder, done, [f"{CARRIED}{name}"]) for done in parts]
        return pa.concat_tables(read, promote_options="permissive").column(0).slice(0, n).to_pandas().array


def _plain(key: Any) -> Any:
    """A key as parts give it back: numbers of NumPy are Python's, its times are pandas'."""
    import pandas as pd

    times = {np.datetime64: pd.Timestamp, np.timedelta64: pd.Timedelta}
    plain = times.get(type(key), np.generic.item)(key) if isinstance(key, np.generic) else key
    try:
        hash(plain)
    except TypeError:
        raise OptionError(
            f"keys must be values of the key column, got {plain!r} of type {type(plain).__name__}. Pass one key or a list "
            "of them."
        ) from None
    return plain


def _may_have(done: Done, key: Any) -> bool:
    """Whether a part can have a key, by its smallest and largest."""
    if done.keys is None:
        return True
    low, high = done.keys
    try:
        return bool(low <= (str(key) if isinstance(low, str) else key) <= high)
    except TypeError:
        return False


def open_explanations(out: str | Path) -> ExplanationSet:
    """Open the explanations that `Explainer.explain_dataset` wrote to a folder; nothing but its manifest is read yet.

    Parameters
    ----------
    out : the folder; an unfinished run can be opened, too, and has the parts that are finished
    """
    folder = as_path(out)
    manifest = read_manifest(folder) if folder.is_dir() else None
    if manifest is None:
        raise StorageError(
            f"'{folder}' must be a folder written by explain_dataset, with '{NAME}' in it, but it is not. Check the path."
        )
    return ExplanationSet(folder, manifest)
