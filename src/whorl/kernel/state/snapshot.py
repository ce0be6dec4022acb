"""State as files: an Arrow IPC file for each relation, one for the dictionary, and manifests that vouch for files.

`docs/architecture/state-format.md` describes the format. Rows, flags and labels are written as they are stored; hash
tables, indexes and queues are built anew from them. A manifest is JSON: its content, and a checksum of it.
"""

from __future__ import annotations

import json
import mmap
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whorl.diagnostics.errors import UserError
from whorl.kernel.state.base import Facts
from whorl.kernel.state.dictionary import Dictionary
from whorl.kernel.state.relation import StoredRelation, StoredRows
from whorl.model.values import Term, Value

VERSION = 1
MANIFEST = "manifest.json"
Content = dict[str, Any]  # JSON: a foreign border
_TEXT, _JSON = 0, 1  # how a value of the dictionary is written


# Relations


def write_relation(path: Path, relation: StoredRelation, facts: Facts | None) -> None:
    """Write the rows of a relation; of a base relation also what is known of its facts."""
    stored = relation.save()
    rows = pa.array(np.ascontiguousarray(stored.rows).reshape(-1))
    columns: dict[str, Any] = {
        "row": pa.FixedSizeListArray.from_arrays(rows, stored.rows.shape[1]),
        "flags": pa.array(stored.flags),
    }
    known: Content = {"relation": relation.name, "narrow": stored.narrow, "types": [str(t) for t in relation.types]}
    if stored.labels is not None:
        columns["label"] = pa.array(stored.labels)
    if facts is not None:
        columns["present"] = pa.array(facts.present.view(np.uint8))
        columns["time"] = pa.array(facts.times)
        columns["arrived"] = pa.array(facts.arrived)
        known |= {"arrivals": facts.arrivals, "boundary": facts.boundary}
    _write(path, columns, known)


def read_relation(path: Path, relation: StoredRelation) -> Facts | None:
    """Fill a relation from its file; return what is known of its facts."""
    batch, known = _read(path)
    column = batch.column("row")
    rows = _numbers(column.flatten()).reshape(len(column), column.type.list_size)
    labels = _numbers(batch.column("label")) if "label" in batch.schema.names else None
    relation.load(StoredRows(rows, _numbers(batch.column("flags")), labels, known["narrow"]))
    if "present" not in batch.schema.names:
        return None
    present = _numbers(batch.column("present")).view(np.bool_)
    times, arrived = _numbers(batch.column("time")), _numbers(batch.column("arrived"))
    return Facts(present, times, arrived, known["arrivals"], known["boundary"])


# The dictionary


def write_dictionary(path: Path, dictionary: Dictionary) -> None:
    """Write the values in the order of their numbers."""
    values = dictionary.values()
    try:
        texts = pa.array(values, pa.large_string())
        forms = np.full(len(values), _TEXT, np.uint8)
    except (pa.ArrowException, UnicodeEncodeError, TypeError):  # not all are strings that UTF-8 can hold
        plain = [isinstance(value, str) and value.isprintable() for value in values]
        texts = pa.array(
            [v if p else json.dumps(_plain(v)) for v, p in zip(values, plain, strict=True)], pa.large_string()
        )
        forms = np.where(plain, _TEXT, _JSON).astype(np.uint8)
    _write(path, {"text": texts, "form": pa.array(forms)}, {})


def read_dictionary(path: Path, dictionary: Dictionary) -> None:
    """Fill an empty dictionary from its file."""
    batch, _known = _read(path)
    values: list[Value] = batch.column("text").to_pylist()
    for at in np.flatnonzero(_numbers(batch.column("form")) == _JSON).tolist():
        values[at] = _value(json.loads(str(values[at])))
    dictionary.load(values)


def _plain(value: Value) -> object:
    return {"name": value.name, "args": [_plain(arg) for arg in value.args]} if isinstance(value, Term) else value


def _value(plain: Any) -> Value:
    if isinstance(plain, dict):
        return Term(plain["name"], tuple(_value(arg) for arg in plain["args"]))
    value: Value = plain
    return value


# Arrow files


def _write(path: Path, columns: Mapping[str, Any], known: Content) -> None:
    batch = pa.record_batch(list(columns.values()), names=list(columns))
    schema = batch.schema.with_metadata({"whorl": json.dumps(known)})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        writer.write_batch(batch.replace_schema_metadata(schema.metadata))


def _read(path: Path) -> tuple[Any, Content]:
    """Return the one batch of a file, whose arrays are the mapped file itself, and what is known beside it."""
    with pa.memory_map(str(path)) as file:
        reader = pa.ipc.open_file(file)
        known: Content = json.loads(reader.schema.metadata[b"whorl"])
        return reader.get_batch(0), known


def _numbers(column: Any) -> npt.NDArray[Any]:
    numbers: npt.NDArray[Any] = column.to_numpy(zero_copy_only=True)
    return numbers


# Manifests


def describe_file(path: Path) -> Content:
    """Return the size and the checksum of a file, which is on the disk when this returns."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        size = os.fstat(descriptor).st_size
        return {"bytes": size, "checksum": _checksum(descriptor, size)}
    finally:
        os.close(descriptor)


def _checksum(descriptor: int, size: int) -> int:
    if not size:
        return 0
    with mmap.mmap(descriptor, size, access=mmap.ACCESS_READ) as content:
        return zlib.crc32(content)


def check_file(path: Path, wanted: Mapping[str, int]) -> None:
    """Raise if a file is missing or is not the one that a manifest describes."""
    try:
        found = describe_file(path)
    except OSError as error:
        raise UserError("E685", None, path=path, reason=error.strerror or str(error)) from None
    for name in ("bytes", "checksum"):
        if found[name] != wanted[name]:
            what = f"{found['bytes']} bytes" if name == "bytes" else f"checksum {found[name]:08x}"
            expected = f"{wanted['bytes']}" if name == "bytes" else f"{wanted[name]:08x}"
            raise UserError("E685", None, path=path, reason=f"Found {what}, expected {expected}")


def write_manifest(folder: Path, content: Content) -> int:
    """Write a manifest under another name, then give it its own, so that there is always a whole one.

    Return the checksum of its content.
    """
    text = json.dumps(content, sort_keys=True)
    checksum = zlib.crc32(text.encode())
    temporary = folder / f"{MANIFEST}.tmp"
    with temporary.open("w", encoding="utf-8") as file:
        json.dump({"whorl": VERSION, "checksum": checksum, "content": content}, file, sort_keys=True, indent=1)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(folder / MANIFEST)
    _sync_folder(folder)
    return checksum


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_manifest(folder: Path, wanted: int | None = None) -> Content:
    """Return the content of a folder's manifest; raise if there is none, or not a whole one, or of another version.

    ``wanted`` is the checksum that the content must have, where somebody else vouches for it.
    """
    path = folder / MANIFEST
    try:
        whole = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError("E682", None, path=folder, reason=f"{path}: {error.strerror or error}") from None
    except ValueError:
        raise UserError("E685", None, path=path, reason="It is no JSON") from None
    version = whole.get("whorl") if isinstance(whole, dict) else None
    if version is None:
        raise UserError("E685", None, path=path, reason="It is no manifest")
    if version != VERSION:
        raise UserError("E683", None, path=folder, found=version, expected=VERSION)
    content: Content = whole.get("content")
    found = zlib.crc32(json.dumps(content, sort_keys=True).encode())
    if found != whole.get("checksum") or wanted not in (None, found):
        raise UserError("E685", None, path=path, reason="Its checksum does not fit its content")
    return content
