"""Views and their changes as Parquet files, one for each partition that has any."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from whorl.connectors.arrow import write_column
from whorl.hosts.spark.files import write_file
from whorl.hosts.spark.layout import part_name
from whorl.kernel.partition import Partition
from whorl.logical.plan import Output
from whorl.model.batch import Values

EPOCH, OPERATION = "_epoch", "_op"


def column_names(output: Output) -> list[str]:
    """Return the names of a view's columns; Spark does not tell upper from lower case, so none is taken twice."""
    found: list[str] = []
    taken = {EPOCH, OPERATION}
    for name in output.columns:
        spelled, number = name, 1
        while spelled.lower() in taken:
            number += 1
            spelled = f"{name}_{number}"
        taken.add(spelled.lower())
        found.append(spelled)
    return found


def write_rows(folder: Path, partition: Partition, output: Output, *, durable: bool) -> None:
    """Write the rows of a view that a partition holds, in any order."""
    columns = partition.columns(output.name, ordered=False)
    table = pa.table(_arrays(columns, output), names=column_names(output))
    if not output.columns:
        table = pa.table({EPOCH: pa.array([0] * len(columns[0]), pa.int64())})
    _write(folder, partition.number, table, durable=durable)


def write_changes(folder: Path, partition: Partition, output: Output, epoch: int, *, durable: bool) -> tuple[int, int]:
    """Write what the prepared epoch did to a view, rows that vanished first; return how many appeared and vanished."""
    changed = partition.changed_columns(output.name, ordered=False)
    if changed is None:
        return 0, 0
    appeared, vanished = changed
    counts = len(appeared[0]), len(vanished[0])
    halves = [
        pa.table(
            [*_arrays(columns, output), pa.array(np.full(count, epoch)), _signs(sign, count)],
            names=[*column_names(output), EPOCH, OPERATION],
        )
        for columns, count, sign in ((vanished, counts[1], 0), (appeared, counts[0], 1))
        if count
    ]
    _write(folder, partition.number, pa.concat_tables(halves), durable=durable)
    return counts


def _signs(sign: int, count: int) -> pa.Array:
    """Return the operation of rows that all vanished or all appeared."""
    return pa.DictionaryArray.from_arrays(pa.array(np.full(count, sign, np.int8)), pa.array(["-", "+"]))


def _arrays(columns: Sequence[Values], output: Output) -> list[pa.Array]:
    return [write_column(values, kind) for values, kind in zip(columns, output.types, strict=False)]


def _write(folder: Path, number: int, table: pa.Table, *, durable: bool) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    write_file(folder / part_name(number, "parquet"), sink.getvalue().to_pybytes(), durable=durable)
