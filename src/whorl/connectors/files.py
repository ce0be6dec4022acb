"""Input files: CSV with a header, JSON lines, Parquet; text may be compressed with gzip. A folder is all files in it.

Each format is read into columns in a file of its own; here they become a `Feed`. Two columns are not data, unless the
program declares them: `op` says whether a row is inserted (`+`) or deleted (`-`), and `epoch` which epoch it is in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from whorl.connectors.bytes import Advance
from whorl.connectors.columns import Columns, read_columns
from whorl.connectors.csv_files import read_csv
from whorl.connectors.json_files import read_json
from whorl.connectors.parquet_files import read_parquet
from whorl.connectors.target import Misfit, Target
from whorl.diagnostics.errors import UserError
from whorl.diagnostics.wording import listed, quoted
from whorl.model.batch import Array, Batch
from whorl.model.types import Type

Reader: TypeAlias = Callable[[Path, Target, Advance], Columns]

_READERS: dict[str, Reader] = {
    ".csv": read_csv,
    ".csv.gz": read_csv,
    ".jsonl": read_json,
    ".jsonl.gz": read_json,
    ".ndjson": read_json,
    ".json": read_json,
    ".parquet": read_parquet,
}
_KNOWN = listed(list(_READERS))
_OPERATIONS = {"+": 1, "-": -1}


@dataclass(frozen=True, slots=True)
class Feed:
    """The rows of one file, with the weight and the epoch of each where the file gives them."""

    path: Path
    batch: Batch
    weights: Array | None = None
    epochs: Array | None = None


def find_files(path: Path) -> list[Path]:
    """Return the files that an input names: itself, or those of a folder in the order of their names."""
    try:
        if not path.is_dir():
            path.open("rb").close()
            found = [path]
        else:
            found = sorted(each for each in path.iterdir() if each.is_file() and not each.name.startswith((".", "_")))
    except OSError as error:
        raise UserError("E701", None, path=path, reason=error.strerror or str(error)) from None
    if not found:
        raise UserError("E621", None, path=path, known=_KNOWN)
    for each in found:
        _reader(each)
    return found


def _reader(path: Path) -> Reader:
    name = path.name.lower()
    for ending, reader in _READERS.items():
        if name.endswith(ending):
            return reader
    raise UserError("E620", None, path=path, known=_KNOWN)


def read_file(path: Path, target: Target, advance: Advance) -> Feed:
    """Read the rows of one file; ``advance`` is told how many bytes were read."""
    try:
        source = _reader(path)(path, target, advance)
    except OSError as error:
        raise UserError("E701", None, path=path, reason=error.strerror or str(error)) from None
    try:
        return _feed(path, target, source)
    except UserError:
        if source.again is None:
            raise
    return _feed(path, target, source.again())


def _feed(path: Path, target: Target, source: Columns) -> Feed:
    declared = target.names or ()
    operations = None if "op" in declared else source.column("op")
    epochs = None if "epoch" in declared else source.column("epoch")
    source = source if operations is None else source.without("op")
    source = source if epochs is None else source.without("epoch")
    batch = read_columns(target, source, 1)
    return Feed(path, batch, _weights(operations, source), _epochs(epochs, source, target))


def _weights(column: object, source: Columns) -> Array | None:
    """Return the weight of each row; refuse what is no operation."""
    if column is None:
        return None
    try:
        signs = source.convert(column, Type.STRING).to_list()
    except Misfit as misfit:
        found = "nothing" if misfit.found is None else misfit.found
        raise UserError("E623", None, place=source.place(misfit.row), found=found) from None
    for row, sign in enumerate(signs):
        if sign not in _OPERATIONS:
            raise UserError("E623", None, place=source.place(row), found=quoted(sign))
    return np.fromiter((_OPERATIONS[str(sign)] for sign in signs), np.int64, len(signs))


def _epochs(column: object, source: Columns, target: Target) -> Array | None:
    if column is None:
        return None
    try:
        return source.convert(column, Type.INTEGER).data
    except Misfit as misfit:
        raise misfit.at(Target(target.relation, (Type.INTEGER,), ("epoch",)), 0, source.place) from None
