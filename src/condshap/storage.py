"""Explanation <-> one Parquet file: readable by anything, no pickle.

One line per explained row. Columns ``data/<name>`` hold the rows as given, ``shapley/<i>`` and ``std_error/<i>`` lists
over outputs for player i, ``base_value``, ``prediction``, and ``v`` and ``v_std_error`` lists over (coalition, output).
Names, coalitions and provenance are JSON in the file's metadata under the key ``condshap``.
"""

from __future__ import annotations

import base64
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from condshap.exceptions import StorageError
from condshap.types import Floats, Masks, Table

if TYPE_CHECKING:
    import pyarrow as pa

    from condshap.explanation import Explanation

FORMAT_VERSION = 1
_KEY = b"condshap"


def save_explanation(explanation: Explanation, path: Path) -> None:
    """Write an explanation."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    data, backend = _data_to_arrow(explanation.data)
    columns = {f"data/{name}": data.column(name) for name in data.column_names}
    n_rows = len(explanation)
    by_player = explanation.values.reshape(n_rows, len(explanation.player_names), -1)
    errors = explanation.std_errors.reshape(by_player.shape)
    for i in range(by_player.shape[1]):
        columns[f"shapley/{i}"] = _lists(by_player[:, i])
        columns[f"std_error/{i}"] = _lists(errors[:, i])
    columns["base_value"] = _lists(explanation.base_values.reshape(n_rows, -1))
    columns["prediction"] = _lists(explanation.predictions.reshape(n_rows, -1))
    table = explanation.value_table
    columns["v"] = _lists(table.values.swapaxes(0, 1).reshape(n_rows, -1))
    columns["v_std_error"] = _lists(table.std_errors.swapaxes(0, 1).reshape(n_rows, -1))
    arrow = pa.table(columns)
    about = _metadata(explanation, backend)
    kept = {b"pandas": data.schema.metadata[b"pandas"]} if b"pandas" in (data.schema.metadata or {}) else {}
    pq.write_table(arrow.replace_schema_metadata({_KEY: json.dumps(about).encode(), **kept}), path)


def load_explanation(path: str | Path) -> Explanation:
    """Read an explanation that `Explanation.save` wrote."""
    from condshap.explanation import Explanation, Provenance
    from condshap.values import ValueTable

    arrow, about = _read(Path(path))
    names, several, n_rows = about["names"], about["several_outputs"], arrow.num_rows
    n_outputs = len(names["outputs"])
    tail = (n_outputs,) if several else ()
    players = range(len(names["players"]))
    masks = _masks_from_text(about["coalitions"], len(names["players"]))

    def stack(prefix: str) -> Floats:
        return np.stack([_numbers(arrow, f"{prefix}/{i}") for i in players], axis=1).reshape(
            n_rows, len(players), *tail
        )

    def table(column: str) -> Floats:
        wide = _numbers(arrow, column).reshape(n_rows, len(masks), *tail)
        return np.ascontiguousarray(wide.swapaxes(0, 1))

    provenance = about["provenance"]
    lists = {key: tuple(provenance[key]) for key in ("n_samples", "warnings")}
    return Explanation(
        values=stack("shapley"),
        base_values=_numbers(arrow, "base_value").reshape(n_rows, *tail),
        predictions=_numbers(arrow, "prediction").reshape(n_rows, *tail),
        std_errors=stack("std_error"),
        value_table=ValueTable(masks, table("v"), table("v_std_error"), about["n_evaluations"]),
        data=_data_from_arrow(arrow, about["backend"]),
        feature_names=tuple(names["features"]),
        player_names=tuple(names["players"]),
        output_names=tuple(names["outputs"]),
        membership=tuple(tuple(member) for member in about["membership"]),
        provenance=Provenance(**{**provenance, **lists}),
    )


def _read(path: Path) -> tuple[pa.Table, dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        arrow = pq.read_table(path)
    except FileNotFoundError:
        raise StorageError(f"an explanation must be an existing file, got '{path}'.") from None
    except (pa.ArrowInvalid, OSError) as error:
        raise StorageError(
            f"'{path}' must be a complete Parquet file, but cannot be read: {error}. Save it again."
        ) from None
    metadata = arrow.schema.metadata or {}
    if _KEY not in metadata:
        raise StorageError(f"'{path}' must be an explanation saved by condshap, but is some other Parquet file.")
    about: dict[str, Any] = json.loads(metadata[_KEY])
    if about["format_version"] != FORMAT_VERSION:
        raise StorageError(
            f"'{path}' must have format version {FORMAT_VERSION}, got {about['format_version']} (condshap "
            f"{about['provenance']['versions'].get('condshap')}). Read it with that version of condshap."
        )
    return arrow, about


def _metadata(explanation: Explanation, backend: str) -> dict[str, Any]:
    return {
        "format_version": FORMAT_VERSION,
        "backend": backend,
        "several_outputs": explanation.values.ndim == 3,
        "names": {
            "features": explanation.feature_names,
            "players": explanation.player_names,
            "outputs": explanation.output_names,
        },
        "membership": explanation.membership,
        "coalitions": base64.b64encode(np.packbits(explanation.value_table.coalitions, axis=1).tobytes()).decode(),
        "n_evaluations": explanation.value_table.n_evaluations,
        "provenance": asdict(explanation.provenance),
    }


def _masks_from_text(text: str, n_players: int) -> Masks:
    packed = np.frombuffer(base64.b64decode(text), dtype=np.uint8).reshape(-1, -(-n_players // 8))
    return np.unpackbits(packed, axis=1, count=n_players).astype(bool)


def _lists(values: Floats) -> pa.Array:
    """(n, k) -> Arrow array of n lists of k numbers."""
    import pyarrow as pa

    flat = np.ascontiguousarray(values, dtype=np.float64).ravel()
    return pa.FixedSizeListArray.from_arrays(pa.array(flat), values.shape[1])


def _numbers(arrow: pa.Table, column: str) -> Floats:
    flat = arrow.column(column).combine_chunks().flatten().to_numpy()
    return np.asarray(flat, dtype=np.float64).reshape(arrow.num_rows, -1)


def _data_to_arrow(data: Table) -> tuple[pa.Table, str]:
    """Rows as an Arrow table, and the back-end that they came from."""
    import narwhals as nw
    import pyarrow as pa

    if isinstance(data, np.ndarray):
        names = [f"x{j}" for j in range(data.shape[1])]
        return pa.table({name: pa.array(data[:, j].tolist()) for j, name in enumerate(names)}), f"numpy:{data.dtype}"
    native = nw.from_native(data, eager_only=True)
    backend = str(native.implementation)
    if backend == "pandas":
        return pa.Table.from_pandas(data.rename(columns=str)), backend
    return (data if backend == "pyarrow" else native.to_arrow()), backend


def _data_from_arrow(arrow: pa.Table, backend: str) -> Table:
    import pyarrow as pa

    names = [name for name in arrow.column_names if name.startswith("data/")]
    metadata = {k: v for k, v in (arrow.schema.metadata or {}).items() if k == b"pandas"}
    columns = {name.removeprefix("data/"): arrow.column(name) for name in names}
    table = pa.table(columns).replace_schema_metadata(metadata or None)
    if backend == "pandas":
        return table.to_pandas()
    if backend == "polars":
        import polars as pl

        return pl.from_arrow(table)
    if backend.startswith("numpy:"):
        dtype = np.dtype(backend.removeprefix("numpy:"))
        return np.array([column.to_pylist() for column in table.columns], dtype=dtype).T
    return table
