"""Parquet files, with the types that `whorl.connectors.arrow` knows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from whorl.connectors.arrow import read_column
from whorl.connectors.bytes import Advance
from whorl.connectors.columns import Columns
from whorl.connectors.target import Target, row_place
from whorl.diagnostics.errors import UserError
from whorl.diagnostics.wording import quoted


def read_parquet(path: Path, _target: Target, advance: Advance) -> Columns:
    """Read a file."""
    try:
        with pq.ParquetFile(path) as file:
            table = file.read()
    except pa.ArrowInvalid as error:
        reason = str(error).split("\n", 1)[0].rstrip(".")
        raise UserError("E622", None, place=quoted(path), format="Parquet", reason=reason) from None
    advance(path.stat().st_size)
    return Columns(
        table.column_names,
        table.columns,
        table.num_rows,
        read_column,
        lambda row: f"{row_place(row)} of {quoted(path)}",
        quoted(path),
    )
