"""CSV files: a header, then a row a line; quotes as usual, line breaks inside them too.

Values are read as text, and mean what `whorl.connectors.text` says. Empty lines are skipped.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv

from whorl.connectors.bytes import Advance, open_bytes, open_text
from whorl.connectors.columns import Columns
from whorl.connectors.target import Target
from whorl.connectors.text import read_text
from whorl.diagnostics.errors import UserError
from whorl.diagnostics.wording import counted, quoted


def read_csv(path: Path, _target: Target, advance: Advance) -> Columns:
    """Read a file, every column as text."""
    try:
        header = next((record for _line, record in _records(path)), None)
        if header is None:
            raise UserError("E622", None, place=quoted(path), format="CSV", reason="The file is empty")
        table = _read(path, header, advance)
    except (pa.ArrowInvalid, csv.Error, EOFError, OSError) as error:
        raise _malformed(path, error) from None
    return Columns(table.column_names, table.columns, table.num_rows, read_text, partial(_place, path), quoted(path))


def _read(path: Path, header: list[str], advance: Advance) -> pa.Table:
    options = pa_csv.ConvertOptions(
        column_types=dict.fromkeys(header, pa.string()), null_values=[], strings_can_be_null=False
    )
    parsing = pa_csv.ParseOptions(newlines_in_values=True)
    with open_bytes(path, advance) as stream:
        return pa_csv.read_csv(stream, parse_options=parsing, convert_options=options)


def _records(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the records of a file, each with the line it starts on."""
    with open_text(path) as lines:
        reader = csv.reader(lines)
        line = 1
        for record in reader:
            if record:
                yield line, record
            line = reader.line_num + 1


def _place(path: Path, position: int) -> str:
    """Say on which line a row stands."""
    line = next((line for at, (line, _record) in enumerate(_records(path)) if at == position + 1), "?")
    return f"line {line} of {quoted(path)}"


def _malformed(path: Path, error: Exception) -> UserError:
    """Return the error of a file that is no CSV: at its first line with too few or too many values."""
    place, reason = quoted(path), str(error).strip().split("\n", 1)[0].rstrip(".") or type(error).__name__
    try:
        width = None
        for line, record in _records(path):
            width = width or len(record)
            if len(record) != width:
                place, reason = f"line {line} of {place}", f"It has {counted(len(record), 'value')}, the header {width}"
                break
    except (csv.Error, EOFError, OSError):
        pass
    return UserError("E622", None, place=place, format="CSV", reason=reason[:1].upper() + reason[1:])
