"""A folder of files as a frame that streams: each new file is an epoch, in the order of their times.

The first file tells the format and the columns. Text is read as text and turned into the types of the program; what
does not turn becomes nothing, and such a row is set aside later.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from whorl.connectors.files import find_files
from whorl.connectors.target import Target, match_columns
from whorl.diagnostics.errors import UserError
from whorl.diagnostics.wording import quoted
from whorl.hosts.spark.lanes import OPERATION, Expression, Frame
from whorl.model.types import Type

_CASTS = {Type.INTEGER: "bigint", Type.FLOAT: "double", Type.BOOLEAN: "boolean"}


def follow_folder(spark: Any, folder: Path, target: Target) -> Frame:
    """Return the rows of all files that are or come to be in a folder, with the columns of a relation."""
    if not folder.is_dir():
        raise UserError("E818", None, path=folder, name=target.relation)
    first = find_files(folder)[0]
    ending = "".join(first.suffixes[-2:]) if first.suffix == ".gz" else first.suffix
    # One file an epoch: within a micro-batch, Spark does not keep the order of files.
    reader = spark.readStream.option("pathGlobFilter", f"*{ending}").option("maxFilesPerTrigger", 1)
    if ending == ".parquet":
        return reader.schema(spark.read.parquet(str(first)).schema).parquet(str(folder))
    textual = ending.startswith(".csv")
    names = _header(first) if textual else _keys(first)
    reader = reader.schema(", ".join(f"`{name}` string" for name in names))
    if textual:
        frame = reader.option("header", "true").option("enforceSchema", "false").option("escape", '"').csv(str(folder))
        sample = spark.read.option("header", "true").option("inferSchema", "true").csv(str(first))
    else:
        frame, sample = reader.json(str(folder)), spark.read.json(str(first))
    return frame.select(*_typed(target, names, dict(sample.dtypes), empty=textual))


def _typed(target: Target, names: Sequence[str], guessed: dict[str, str], *, empty: bool) -> list[Expression]:
    """Return the columns of a relation, read from text; an empty text is a string only where there are quotes."""
    declared = [name.lower() for name in target.names or ()]
    data = [name for name in names if name != OPERATION or OPERATION in declared]
    found = [F.col(OPERATION)] if len(data) < len(names) else []
    for at, place in enumerate(match_columns(target, data, f"the files for {target.relation}")):
        name = data[place]
        column = _read(F.col(f"`{name}`"), target.types[at], guessed.get(name, "string"), empty=empty)
        found.append(column.alias(target.names[at] if target.names else name))
    return found


def _read(column: Expression, kind: Type, guessed: str, *, empty: bool) -> Expression:
    if kind is Type.UNKNOWN and guessed in ("int", "bigint", "double", "boolean"):
        return column.try_cast("bigint" if guessed == "int" else guessed)
    if kind is Type.TIMESTAMP:
        return F.coalesce(column.try_cast("bigint"), F.unix_seconds(F.try_to_timestamp(column)))
    if kind in _CASTS:
        return column.try_cast(_CASTS[kind])
    return F.coalesce(column, F.lit("")) if empty and kind in (Type.STRING, Type.UNKNOWN) else column


def _first_line(path: Path) -> str:
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        return file.readline().removeprefix("\ufeff")


def _header(path: Path) -> list[str]:
    return next(csv.reader([_first_line(path)]), [])


def _keys(path: Path) -> list[str]:
    try:
        found = json.loads(_first_line(path))
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise UserError("E622", None, place=f"line 1 of {quoted(str(path))}", format="JSON", reason="It is no object")
    return list(found)
