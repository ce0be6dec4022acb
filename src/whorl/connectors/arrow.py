"""Arrow tables in and out, and through Arrow the frames of pandas and Polars.

| Arrow | Whorl |
|---|---|
| integers | Integer |
| floats | Float |
| strings, also encoded by a dictionary | String; List and Term in delta notation, where the column holds those |
| Booleans | Boolean |
| timestamps and dates | Timestamp: whole seconds since 1970, without a zone UTC |
| lists | List |
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.interchange import from_dataframe

from whorl.connectors.columns import Columns, StrangeType, read_columns
from whorl.connectors.rows import fit_values
from whorl.connectors.target import Misfit, Target, row_place
from whorl.connectors.text import encode_strings, read_text, to_numpy, whole_seconds
from whorl.model.batch import Batch, Values, values_of
from whorl.model.types import Type
from whorl.model.values import Value, format_value, list_value

_TEXTUAL = (Type.LIST, Type.TERM)


def table_of(data: Any) -> pa.Table | None:
    """Return data as a table if it offers itself as Arrow or as a data frame; None if not. Any: a foreign border."""
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if hasattr(data, "__arrow_c_stream__"):
        return _without_index(pa.RecordBatchReader.from_stream(data).read_all())
    if hasattr(data, "__dataframe__"):
        return from_dataframe(data)
    return None


def _without_index(table: pa.Table) -> pa.Table:
    """Drop the columns in which pandas ships row labels."""
    return table.drop_columns([name for name in table.column_names if name.startswith("__index_level_")])


def read_table(target: Target, table: pa.Table, weight: int) -> Batch:
    """Check a table against a relation, and return it as a batch."""
    source = Columns(table.column_names, table.columns, table.num_rows, read_column, row_place, "the table")
    return read_columns(target, source, weight)


def read_column(column: pa.ChunkedArray, kind: Type, *, text: bool = False) -> Values:
    """Return an Arrow column that fits a type; with ``text``, strings may stand for timestamps."""
    if not len(column):
        return values_of(())
    if column.null_count:
        raise Misfit(int(np.flatnonzero(to_numpy(pc.is_null(column)))[0]))
    found = column.type
    inner = found.value_type if pa.types.is_dictionary(found) else found
    if inner is not found and not _is_text(inner):
        column, found = column.cast(inner), inner
    if _is_text(inner):
        if kind in _TEXTUAL or (text and kind is Type.TIMESTAMP):
            return read_text(column.cast(pa.string()), kind)
        return _check(encode_strings(column), kind)
    if pa.types.is_temporal(found) and not (pa.types.is_time(found) or pa.types.is_duration(found)):
        return _moments(column, kind)
    if pa.types.is_list(found) or pa.types.is_large_list(found) or pa.types.is_fixed_size_list(found):
        return fit_values([_nested(value, row) for row, value in enumerate(column.to_pylist())], kind)
    return _check(_numbers(column), kind)


def _is_text(found: pa.DataType) -> bool:
    return bool(pa.types.is_string(found) or pa.types.is_large_string(found) or pa.types.is_string_view(found))


def _numbers(column: pa.ChunkedArray) -> Values:
    found = column.type
    if pa.types.is_boolean(found):
        return Values(Type.BOOLEAN, to_numpy(column))
    if pa.types.is_floating(found):
        data = to_numpy(column).astype(np.float64)
        if not np.isfinite(data).all():
            row = int(np.flatnonzero(~np.isfinite(data))[0])
            raise Misfit(row, str(data[row]))
        return Values(Type.FLOAT, data)
    if pa.types.is_integer(found):
        data = to_numpy(column)
        if found == pa.uint64() and (data > np.iinfo(np.int64).max).any():
            row = int(np.flatnonzero(data > np.iinfo(np.int64).max)[0])
            raise Misfit(row, str(data[row]))
        return Values(Type.INTEGER, data.astype(np.int64))
    raise StrangeType(str(found))


def _check(values: Values, kind: Type) -> Values:
    """Refuse a column of another type at its first row."""
    fits = kind in (Type.UNKNOWN, values.type)
    if fits or (values.type is Type.INTEGER and kind in (Type.FLOAT, Type.TIMESTAMP)):
        return values
    raise Misfit(0, format_value(values[0]))


def _moments(column: pa.ChunkedArray, kind: Type) -> Values:
    if kind not in (Type.TIMESTAMP, Type.UNKNOWN):
        raise Misfit(0, str(column[0].as_py()))
    column = column.cast(pa.timestamp("s")) if pa.types.is_date(column.type) else column
    seconds = whole_seconds(column) if column.type.unit != "ns" else _from_nanoseconds(column)
    if seconds is None:
        rest = pc.not_equal(column, pc.floor_temporal(column, unit="second"))
        row = int(np.flatnonzero(to_numpy(rest))[0])
        raise Misfit(row, f"{column[row].as_py()} with a fraction of a second")
    return seconds


def _from_nanoseconds(column: pa.ChunkedArray) -> Values | None:
    nanos = to_numpy(pc.cast(column, pa.int64()))
    return None if (nanos % 1_000_000_000).any() else Values(Type.INTEGER, nanos // 1_000_000_000)


def _nested(value: Any, row: int) -> Value:
    """Return a list with lists inside as a value."""
    if isinstance(value, list):
        return list_value(tuple(_nested(item, row) for item in value))
    if value is None or not isinstance(value, int | float | str | bool):
        raise Misfit(row, None if value is None else repr(value))
    return value


_ARROW = {
    Type.INTEGER: pa.int64(),
    Type.TIMESTAMP: pa.int64(),
    Type.FLOAT: pa.float64(),
    Type.BOOLEAN: pa.bool_(),
    Type.STRING: pa.string(),
}


def write_column(values: Values, kind: Type) -> pa.Array:
    """Return a column of a view as Arrow; what Arrow has no type for becomes text in delta notation."""
    if kind is Type.STRING and values.distinct is not None:
        distinct = pa.array(values.distinct, pa.string())
        return pa.DictionaryArray.from_arrays(pa.array(values.data, pa.int64()), distinct).cast(pa.string())
    if kind in _ARROW:
        return pa.array(values.data if values.distinct is None else values.to_list(), _ARROW[kind])
    texts = [format_value(value) for value in values.to_list()]
    return pa.array(texts, pa.string())
