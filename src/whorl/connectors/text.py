"""Columns of text, as CSV files hold them, and the values that the text means.

The quick way converts a whole column at once. Where it finds something odd, every text is read on its own: that decides
what is accepted, and which row is wrong.
"""

from __future__ import annotations

import math
import re
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whorl.connectors.rows import seconds_of
from whorl.connectors.target import Misfit
from whorl.diagnostics.wording import quoted, shortened
from whorl.model.batch import Array, Values, values_of
from whorl.model.types import Type, type_of
from whorl.model.values import Value, storable
from whorl.syntax.deltas import parse_value

_INTEGER = re.compile(r"\s*[+-]?\d{1,30}\s*\Z", re.ASCII)
_NUMBER = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*\Z", re.ASCII)
_GUESSES = (Type.INTEGER, Type.FLOAT, Type.BOOLEAN)


def read_text(column: pa.ChunkedArray, kind: Type) -> Values:
    """Return the values that a column of text means; of a column without a type, those that all of it can mean."""
    if kind is Type.UNKNOWN:
        return _guess(column)
    if kind is Type.STRING:
        return encode_strings(column)
    quick = _quick(column, kind)
    if quick is not None:
        return quick
    values = []
    for row, text in enumerate(column.to_pylist()):
        value = parse_text(text, kind, row)
        if value is None:
            raise Misfit(row, quoted(shortened(text)) if text.strip() else None)
        values.append(value)
    return values_of(values)


def _guess(column: pa.ChunkedArray) -> Values:
    """Take whole numbers for Integers, numbers for Floats, true and false for Booleans, all else for Strings."""
    if len(column):
        for kind in _GUESSES:
            try:
                return read_text(column, kind)
            except Misfit:
                continue
    return encode_strings(column)


def _quick(column: pa.ChunkedArray, kind: Type) -> Values | None:
    try:
        if kind in (Type.INTEGER, Type.TIMESTAMP) and not _any(pc.match_substring_regex(column, "[^0-9-]")):
            return Values(Type.INTEGER, to_numpy(pc.cast(column, pa.int64())))
        if kind is Type.FLOAT and not _any(pc.match_substring_regex(column, "[^0-9.eE+-]")):
            data = to_numpy(pc.cast(column, pa.float64()))
            return Values(kind, data) if np.isfinite(data).all() else None
        if kind is Type.BOOLEAN:
            return _booleans(column)
        if kind is Type.TIMESTAMP:
            zoned = _any(pc.match_substring_regex(column, "Z$|[+-][0-9:]+$"))
            return whole_seconds(pc.cast(column, pa.timestamp("us", "UTC" if zoned else None)))
    except pa.ArrowInvalid:
        pass
    return None


def _booleans(column: pa.ChunkedArray) -> Values | None:
    if _any(pc.invert(pc.match_substring_regex(column, "(?i)^(true|false)$"))):
        return None
    return Values(Type.BOOLEAN, to_numpy(pc.match_substring_regex(column, "(?i)^true$")))


def _any(mask: pa.ChunkedArray) -> bool:
    return bool(pc.any(mask).as_py())


def whole_seconds(column: pa.ChunkedArray) -> Values | None:
    """Return date-times as seconds since 1970; None if one has a fraction of a second."""
    micros = to_numpy(pc.cast(pc.cast(column, pa.timestamp("us", column.type.tz)), pa.int64()))
    return None if (micros % 1_000_000).any() else Values(Type.INTEGER, micros // 1_000_000)


def to_numpy(column: pa.ChunkedArray | pa.Array) -> Array:
    """Return numbers or Booleans without nulls as an array. Arrow's own way imports pandas, which takes long."""
    if pa.types.is_boolean(column.type):
        return to_numpy(column.cast(pa.uint8())).astype(np.bool_)
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return np.from_dlpack(whole)


def encode_strings(column: pa.ChunkedArray) -> Values:
    """Return strings as positions among the distinct ones."""
    if not len(column):
        return values_of(())
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    whole = encoded.unify_dictionaries().combine_chunks()
    return Values(Type.STRING, to_numpy(whole.indices).astype(np.int64), tuple(whole.dictionary.to_pylist()))


def parse_text(text: str, kind: Type, row: int) -> Value | None:
    """Return the value of a type that a text means, None if there is none."""
    value: Value | None = None
    if kind in (Type.INTEGER, Type.TIMESTAMP) and _INTEGER.match(text):
        value = int(text)
    elif kind is Type.FLOAT and _NUMBER.match(text):
        value = float(text) if math.isfinite(float(text)) else None
    elif kind is Type.BOOLEAN and text.strip().lower() in ("true", "false"):
        value = text.strip().lower() == "true"
    elif kind is Type.STRING:
        value = text
    elif kind is Type.TIMESTAMP:
        value = _moment(text, row)
    elif kind in (Type.LIST, Type.TERM):
        value = parse_value(text)
        value = value if value is not None and type_of(value) is kind else None
    return value if value is not None and storable(value) else None


def _moment(text: str, row: int) -> int | None:
    try:
        return seconds_of(datetime.fromisoformat(text.strip()), row)
    except ValueError:
        return None
