"""Paths from the command line -> tables, models, explanations and output paths."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from condshap.cli.csv_file import read_csv
from condshap.cli.screen import say
from condshap.exceptions import CondShapError, ModelError, OptionError, SchemaError, listing
from condshap.types import Model

if TYPE_CHECKING:
    import pandas as pd

    from condshap.explanation import Explanation

PARQUET = {".parquet", ".pq"}
_PICKLES = {".pkl", ".pickle", ".joblib"}


def read_table(
    path: Path, is_text: Mapping[str, bool] | None = None, used: Collection[str] | None = None
) -> pd.DataFrame:
    """Read a CSV or Parquet file; text columns of a CSV become categories (see `read_csv`), Parquet keeps its dtypes."""
    import pandas as pd

    if suffix_of(path) not in {".csv", *PARQUET}:
        raise SchemaError(f"a table must be a .csv or .parquet file, got '{path}'. Convert it to one of these.")
    check_exists(path, "table")
    try:
        if suffix_of(path) in PARQUET:
            return pd.read_parquet(path)
        return read_csv(path, is_text or {}, used)
    except CondShapError:
        raise
    except (ValueError, OSError) as error:  # parsers raise children of ValueError
        raise SchemaError(f"'{path}' must be a readable {suffix_of(path)} table, but {_one_line(error)}") from None


def read_features(path: Path, model: Model, is_text: Mapping[str, bool] | None = None) -> pd.DataFrame:
    """Read the columns that a model was trained with; `is_text` says which of them hold text in other rows."""
    used = [str(name) for name in getattr(model, "feature_names_in_", ())]
    return select_features(read_table(path, is_text, used or None), model, path)


def read_answered(
    path: Path,
    model: Model,
    target: str | None,
    is_text: Mapping[str, bool] | None = None,
    *,
    is_needed: bool = True,
) -> tuple[pd.DataFrame, Any]:
    """Read the columns that a model was trained with, and a column with the true answers, None if none is asked for."""
    if target is None:
        return read_features(path, model, is_text), None
    used = [str(name) for name in getattr(model, "feature_names_in_", ())]
    table = read_table(path, is_text, [*used, target] if used else None)
    if target in used:
        raise OptionError(f"--target must be a column that the model does not use, got its feature '{target}'.")
    if target not in table.columns:
        if is_needed:
            raise OptionError(
                f"--target must be a column of '{path}', got '{target}', but it has {listing(table.columns)}. Check the "
                "name."
            )
        return select_features(table, model, path), None
    return select_features(table.drop(columns=target), model, path), table[target]


def load_model(path: Path, *, trust: bool) -> Model:
    """Load a model; files that may run code are loaded only if they are trusted."""
    if suffix_of(path) not in {".skops", *_PICKLES}:
        raise ModelError(
            f"a model must be a .skops, .pkl, .pickle or .joblib file, got '{path}'. Save it with skops.io.dump."
        )
    check_exists(path, "model")
    if suffix_of(path) in _PICKLES and not trust:
        raise ModelError(
            f"'{path}' must be trusted before it is loaded: a {suffix_of(path)} file can run any code. Add --trust-model if "
            "you know where it comes from, or save the model with skops.io.dump."
        )
    try:
        return _load_skops(path, trust=trust) if suffix_of(path) == ".skops" else _load_pickle(path)
    except CondShapError:
        raise
    except Exception as error:  # a damaged file can fail in any way
        raise ModelError(
            f"'{path}' must be a complete model file whose packages are installed, but loading failed: "
            f"{type(error).__name__}: {_one_line(error)}"
        ) from None


def _load_pickle(path: Path) -> Model:
    import joblib

    return joblib.load(path)


def _load_skops(path: Path, *, trust: bool) -> Model:
    """Load a skops file: it contains no code but names types, and skops knows which of them are harmless."""
    import skops.io

    from condshap.storage.plain_values import HARMLESS_TYPES
    from condshap.trees.validating import check_trees

    untrusted = skops.io.get_untrusted_types(file=path)
    unknown = sorted(set(untrusted) - HARMLESS_TYPES)
    if unknown and not trust:
        raise ModelError(
            f"'{path}' must contain only types that are known to be harmless, but has {listing(unknown)}. Add --trust-model "
            "if you know where the file comes from."
        )
    model = skops.io.load(path, trusted=untrusted)
    check_trees(model)
    return model


def select_features(frame: pd.DataFrame, model: Model, path: Path) -> pd.DataFrame:
    """Keep the columns that the model was trained with, if it lists them; others, such as the response, go with a note."""
    wanted = [str(name) for name in getattr(model, "feature_names_in_", ())]
    extra = [name for name in frame.columns if name not in wanted]
    if not wanted or not extra or not set(wanted) <= set(frame.columns):
        return frame  # if columns are missing, the schema's check names them
    say(f"Note: '{path}' has columns {listing(extra)} that the model does not use; condshap ignores them.")
    return frame[[name for name in frame.columns if name in wanted]]


def load_explanations(paths: Sequence[Path]) -> dict[str, Explanation]:
    """Explanations of the same rows, keyed by approach, or by file name if approaches repeat."""
    from condshap.storage.explanations import load_explanation

    found = [load_explanation(path) for path in paths]
    for path, explanation in zip(paths[1:], found[1:], strict=True):
        _check_same_rows(found[0], explanation, paths[0], path)
    approaches = [explanation.provenance.approach for explanation in found]
    for names in (approaches, [path.stem for path in paths]):
        if len(set(names)) == len(names):
            return dict(zip(names, found, strict=True))
    return dict(zip(map(str, paths), found, strict=True))


def _check_same_rows(first: Explanation, other: Explanation, first_path: Path, path: Path) -> None:
    from condshap.tables.reading import to_pandas

    for what in ("player_names", "output_names"):
        wanted, got = getattr(first, what), getattr(other, what)
        if wanted != got:
            raise OptionError(
                f"explanations must have the same {what.replace('_', ' ')}, got {listing(wanted)} in '{first_path}' and "
                f"{listing(got)} in '{path}'. Explain the same rows of the same model."
            )
    wanted_rows, rows = (_cells(to_pandas(one.data)) for one in (first, other))
    if len(wanted_rows) != len(rows):
        where = f"{len(wanted_rows)} rows in '{first_path}' and {len(rows)} in '{path}'"
    elif (differs := np.flatnonzero((wanted_rows != rows).any(axis=(1, 2)))).size:
        where = f"rows that differ at {listing(differs.tolist())} between '{first_path}' and '{path}'"
    else:
        return
    raise OptionError(f"explanations must be of the same rows, got {where}. Explain the same table with both.")


def _cells(frame: pd.DataFrame) -> np.ndarray[Any, np.dtype[np.object_]]:
    """Cells as text, and whether they are missing, (R, M, 2): gaps are equal to each other, unlike NaN, and to no level."""
    gaps = frame.isna().to_numpy()
    texts = frame.astype(object).map(str).to_numpy()
    return np.stack([np.where(gaps, "", texts), gaps.astype(object)], axis=-1)


def is_folder(out: Path) -> bool:
    """Whether an output path is meant as a folder: there is one, or the name has no ending; but .parquet is a file."""
    return suffix_of(out) not in PARQUET and (out.is_dir() or not out.suffix)


def make_room(out: Path) -> None:
    """Create the folder of an output file; refuse a path that is a folder itself."""
    if out.is_dir():
        raise OptionError(f"the output must be a file, got the folder '{out}'. Add a file name.")
    out.parent.mkdir(parents=True, exist_ok=True)


def check_exists(path: Path, what: str) -> None:
    """Refuse a path that is not a file."""
    if not path.is_file():
        raise OptionError(f"the {what} must be an existing file, got '{path}'. Check the path.")


def suffix_of(path: Path) -> str:
    """Return the file extension in lower case."""
    return path.suffix.lower()


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
