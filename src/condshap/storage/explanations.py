"""Explanation <-> one Parquet file: readable by anything, no pickle.

One line per explained row. Columns ``data/<name>`` hold the rows as given, labels as plain values, ``shapley/<i>``,
``std_error/<i>`` and ``model_error/<i>`` lists over outputs for player i, ``base_value``, ``prediction``, and ``v`` and
``v_std_error`` lists over (coalition, output). Names, coalitions, provenance and the dtypes of the rows (see
`condshap.storage.tables`) are JSON in the file's header, see `condshap.storage.file_kinds`; a checksum of the whole file is
there too, see `condshap.storage.sealing`. An explanation that has not kept v(S) has no columns for it. Further columns,
which a part of a large dataset has, are ignored by whoever loads it as an explanation. One by a fast explainer has
``unlike_pool``. A loss explanation is stored as the game that it shares out, minus the loss, with a kind of its own.
"""

from __future__ import annotations

import base64
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from condshap.draw_check.result import DrawCheck
from condshap.explanation import Explanation, Provenance
from condshap.games.loss_explanation import LossExplanation, loss_explanation
from condshap.options import as_path
from condshap.storage.file_kinds import EXPLANATION, HEADER, LOSS_EXPLANATION, SEAL, FileKind, has_kind
from condshap.storage.sealing import new_seal, sealed
from condshap.storage.tables import StoredTable, check_same, refusing, restore_table, store_table
from condshap.storage.writing import write_whole
from condshap.types import Floats, Masks
from condshap.values.table import ValueTable

if TYPE_CHECKING:
    import pyarrow as pa


def save_explanation(explanation: Explanation, path: Path) -> None:
    """Write an explanation."""
    _save(explanation, path, EXPLANATION)


def save_loss_explanation(loss: LossExplanation, path: Path) -> None:
    """Write a loss explanation."""
    _save(loss.as_explanation(), path, LOSS_EXPLANATION, loss=loss.loss)


def _save(explanation: Explanation, path: Path, kind: FileKind, **facts: Any) -> None:
    write_whole(path, explanation_bytes(explanation, kind, facts), kind.what)


def explanation_bytes(
    explanation: Explanation, kind: FileKind = EXPLANATION, facts: dict[str, Any] | None = None, more: Any = None
) -> bytes:
    """Content of a file; `more` are further Arrow columns by name."""
    with refusing("explained rows"):
        content = _to_bytes(explanation, kind, facts or {}, more or {})
        check_same(explanation.data, explanation_from_bytes(content, Path("the new file")).data, "explained rows")
    return content


def _to_bytes(explanation: Explanation, kind: FileKind, facts: dict[str, Any], more: dict[str, Any]) -> bytes:
    import pyarrow as pa

    stored = store_table(explanation.data)
    columns = {f"data/{name}": column for name, column in stored.columns.items()}
    n_rows = len(explanation)
    by_player = explanation.values.reshape(n_rows, len(explanation.player_names), -1)
    errors, model_errors = (e.reshape(by_player.shape) for e in (explanation.std_errors, explanation.model_errors))
    for i in range(by_player.shape[1]):
        columns[f"shapley/{i}"] = _lists(by_player[:, i])
        columns[f"std_error/{i}"] = _lists(errors[:, i])
        columns[f"model_error/{i}"] = _lists(model_errors[:, i])
    columns["base_value"] = _lists(explanation.base_values.reshape(n_rows, -1))
    columns["prediction"] = _lists(explanation.predictions.reshape(n_rows, -1))
    if explanation.unlike_pool is not None:
        columns["unlike_pool"] = pa.array(explanation.unlike_pool)
    table = explanation.value_table
    if table is not None:
        columns["v"] = _lists(table.values.swapaxes(0, 1).reshape(n_rows, -1))
        columns["v_std_error"] = _lists(table.std_errors.swapaxes(0, 1).reshape(n_rows, -1))
    return parquet_bytes(pa.table({**columns, **more}), kind.new_header(**_facts(explanation, stored.about), **facts))


def parquet_bytes(arrow: pa.Table, header: str) -> bytes:
    """Parquet file of a table and the text of a header, sealed; lists of numbers hardly repeat, so no dictionary helps."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink, seal = pa.BufferOutputStream(), new_seal()
    arrow = arrow.replace_schema_metadata({HEADER: header})
    repeating = [field.name for field in arrow.schema if not pa.types.is_fixed_size_list(field.type)]
    with pq.ParquetWriter(sink, arrow.schema, use_dictionary=repeating or False) as writer:
        writer.write_table(arrow)
        writer.add_key_value_metadata({SEAL: seal})
    return sealed(sink.getvalue().to_pybytes(), seal)


def load_explanation(path: str | Path) -> Any:
    """Load an explanation that `Explanation.save` wrote, or a loss explanation that `LossExplanation.save` wrote."""
    path = as_path(path)
    arrow, about = _read(path)
    with EXPLANATION.clear_damage(path):
        found = _rebuild(arrow, about)
        if about["kind"] == EXPLANATION.name:
            return found
        return loss_explanation(found, str(about["loss"]))


def explanation_from_bytes(content: bytes, path: Path) -> Explanation:
    """Inverse of `explanation_bytes`; `path` is for messages."""
    return _rebuild(*_parse(content, path))


def _rebuild(arrow: pa.Table, about: dict[str, Any]) -> Explanation:
    names, n_rows = about["names"], arrow.num_rows
    tail = (len(names["outputs"]),) if about["several_outputs"] else ()
    players = range(len(names["players"]))

    def stack(prefix: str) -> Floats:
        by_player = [numbers_of(arrow, f"{prefix}/{i}") for i in players]
        return np.stack(by_player, axis=1).reshape(n_rows, len(players), *tail)

    def table() -> ValueTable:
        masks = _masks_from_text(about["coalitions"], len(players))
        wide = (numbers_of(arrow, name).reshape(n_rows, len(masks), *tail) for name in ("v", "v_std_error"))
        values, errors = (np.ascontiguousarray(one.swapaxes(0, 1)) for one in wide)
        return ValueTable(masks, values, errors, about["n_evaluations"])

    provenance = about["provenance"]
    lists: dict[str, Any] = {key: tuple(provenance[key]) for key in ("n_samples", "warnings")}
    order, confounding = provenance["causal_ordering"], provenance["confounding"]
    lists["causal_ordering"] = None if order is None else tuple(tuple(component) for component in order)
    lists["confounding"] = None if confounding is None else tuple(confounding)
    check = provenance["draw_check"]
    data = {name.removeprefix("data/"): arrow.column(name) for name in arrow.column_names if name.startswith("data/")}
    return Explanation(
        values=stack("shapley"),
        base_values=numbers_of(arrow, "base_value").reshape(n_rows, *tail),
        predictions=numbers_of(arrow, "prediction").reshape(n_rows, *tail),
        std_errors=stack("std_error"),
        model_errors=stack("model_error"),
        value_table=None if about["coalitions"] is None else table(),  # type: ignore[arg-type]
        data=restore_table(StoredTable(data, about["data"])),
        feature_names=tuple(names["features"]),
        player_names=tuple(names["players"]),
        output_names=tuple(names["outputs"]),
        membership=tuple(tuple(member) for member in about["membership"]),
        unlike_pool=arrow.column("unlike_pool").to_numpy() if "unlike_pool" in arrow.column_names else None,
        provenance=Provenance(
            **{**provenance, **lists, "draw_check": None if check is None else DrawCheck.from_json(check)}
        ),
    )


def _read(path: Path) -> tuple[pa.Table, dict[str, Any]]:
    content = EXPLANATION.read(path)
    with EXPLANATION.opening(path):
        return _parse(content, path)


def _parse(content: bytes, path: Path) -> tuple[pa.Table, dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.ParquetFile(pa.BufferReader(content), pre_buffer=False)
    metadata = file.schema_arrow.metadata or {}
    header = metadata.get(HEADER.encode())
    kind = LOSS_EXPLANATION if has_kind(header, LOSS_EXPLANATION.name) else EXPLANATION
    about = kind.read_header(path, header)
    kind.check_seal(path, content)
    return file.read(use_threads=False), about  # threads that outlive the call abort Python when it ends


def read_about(path: Path) -> dict[str, Any]:
    """Header of a file: names, provenance and whatever else is not of single rows."""
    import pyarrow.parquet as pq

    with EXPLANATION.opening(path):
        metadata = pq.read_schema(path).metadata or {}
    return EXPLANATION.read_header(path, metadata.get(HEADER.encode()))


def _facts(explanation: Explanation, data: dict[str, Any]) -> dict[str, Any]:
    table = explanation.value_table
    return {
        "data": data,
        "several_outputs": explanation.values.ndim == 3,
        "names": {
            "features": explanation.feature_names,
            "players": explanation.player_names,
            "outputs": explanation.output_names,
        },
        "membership": explanation.membership,
        "coalitions": None if table is None else _masks_to_text(table.coalitions),
        "n_evaluations": None if table is None else table.n_evaluations,
        "provenance": asdict(explanation.provenance),
    }


def _masks_to_text(masks: Masks) -> str:
    return base64.b64encode(np.packbits(masks, axis=1).tobytes()).decode()


def _masks_from_text(text: str, n_players: int) -> Masks:
    packed = np.frombuffer(base64.b64decode(text), dtype=np.uint8).reshape(-1, -(-n_players // 8))
    return np.unpackbits(packed, axis=1, count=n_players).astype(bool)


def _lists(values: Floats) -> pa.Array:
    """(n, k) -> Arrow array of n lists of k numbers."""
    import pyarrow as pa

    flat = np.ascontiguousarray(values, dtype=np.float64).ravel()
    return pa.FixedSizeListArray.from_arrays(pa.array(flat), values.shape[1])


def numbers_of(arrow: pa.Table, column: str) -> Floats:
    """Lists of a column as an array (n, k)."""
    flat = arrow.column(column).combine_chunks().flatten().to_numpy()
    return np.asarray(flat, dtype=np.float64).reshape(arrow.num_rows, -1)
