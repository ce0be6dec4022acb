"""JSON lines: an object a line, its keys the columns. Empty lines are skipped.

The quick way lets Arrow read the file. What it reads otherwise than the rows mean (a date in a string, a list of
several kinds) is read line by line, which also finds the line that is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.json as pa_json

from whorl.connectors.arrow import read_column
from whorl.connectors.bytes import Advance, open_bytes, open_text
from whorl.connectors.columns import Columns
from whorl.connectors.rows import fit_values, plain_value
from whorl.connectors.target import Misfit, Target
from whorl.connectors.text import parse_text
from whorl.diagnostics.errors import UserError
from whorl.diagnostics.wording import quoted, shortened
from whorl.model.batch import Values
from whorl.model.types import Type
from whorl.model.values import Value

_FROM_TEXT = (Type.TIMESTAMP, Type.LIST, Type.TERM)  # JSON has no way of its own to write them, or not all of them


def read_json(path: Path, _target: Target, advance: Advance) -> Columns:
    """Read a file, quickly if Arrow can."""
    slow = partial(_read_lines, path)
    try:
        with open_bytes(path, advance) as stream:
            table = pa_json.read_json(stream)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return slow()
    if any(pa.types.is_temporal(column.type) for column in table.columns):
        return slow()  # a string that looks like a date is still a string
    convert = partial(read_column, text=True)
    return Columns(table.column_names, table.columns, table.num_rows, convert, str, quoted(path), slow)


def _read_lines(path: Path) -> Columns:
    """Read a file line by line."""
    lines, rows = [], []
    for line, row in _objects(path):
        lines.append(line)
        rows.append(row)
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = [[row.get(name) for row in rows] for name in names]
    return Columns(
        names, columns, len(rows), _convert, lambda row: f"line {lines[row]} of {quoted(path)}", quoted(path)
    )


def _objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    with open_text(path) as text:
        for number, line in enumerate(text, 1):
            if not line.strip():
                continue
            place = f"line {number} of {quoted(path)}"
            try:
                row = json.loads(line)
            except ValueError as error:
                raise UserError("E622", None, place=place, format="JSON", reason=str(error)) from None
            if not isinstance(row, dict):
                reason = f"Found {shortened(line.strip())}, not an object with a key for each column"
                raise UserError("E622", None, place=place, format="a row", reason=reason)
            yield number, row


def _convert(column: Sequence[Any], kind: Type) -> Values:
    values = [_value(value, kind, row) for row, value in enumerate(column)]
    if kind is Type.UNKNOWN and set(map(type, values)) == {int, float}:
        values = [float(value) for value in values]  # type: ignore[arg-type]
    return fit_values(values, kind)


def _value(value: Any, kind: Type, row: int) -> Value:
    if isinstance(value, str) and kind in _FROM_TEXT:
        parsed = parse_text(value, kind, row)
        if parsed is None:
            raise Misfit(row, quoted(shortened(value)))
        return parsed
    if isinstance(value, dict):
        raise Misfit(row, shortened(json.dumps(value)))
    return plain_value(value, kind, row)
