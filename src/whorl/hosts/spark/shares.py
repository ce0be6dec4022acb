"""What goes into an epoch, as bytes: batches of columns, and the entry of the log that holds them.

A batch is a line of JSON that describes it, and its columns as an Arrow stream. Numbers are themselves, strings are
encoded by a dictionary, everything else is a dictionary of JSON texts.

An entry has a share for each partition, and one for all of them. A small epoch's shares stand in the entry itself,
behind a line of JSON that says where; those of a large one are files of their own, and the entry vouches for them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from whorl.connectors.text import to_numpy
from whorl.diagnostics.errors import UserError
from whorl.hosts.spark.files import checksum
from whorl.hosts.spark.layout import Layout
from whorl.model.batch import Batch, Values
from whorl.model.types import Type
from whorl.model.values import Term, Value

ALL = "all"  # the share that every partition takes
_MAGIC = b"whorl entry 1\n"
Span: TypeAlias = tuple[int, int]  # bytes, checksum
Json: TypeAlias = Any  # a foreign border


# Batches


def encode_batches(batches: Iterable[Batch]) -> bytes:
    """Return batches one behind the other."""
    return b"".join(_encode(batch) for batch in batches if batch.count)


def _encode(batch: Batch) -> bytes:
    columns = [_encode_values(values) for values in batch.columns]
    body = b""
    if columns:
        sink = pa.BufferOutputStream()
        table = pa.record_batch([array for array, _form in columns], names=[str(at) for at in range(len(columns))])
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_batch(table)
        body = sink.getvalue().to_pybytes()
    about = {
        "relation": batch.relation,
        "weight": batch.weight,
        "count": batch.count,
        "columns": [[str(values.type), form] for values, (_array, form) in zip(batch.columns, columns, strict=True)],
        "bytes": len(body),
    }
    return json.dumps(about).encode() + b"\n" + body


def decode_batches(content: bytes) -> Iterator[Batch]:
    """Yield the batches of a share."""
    start = 0
    while start < len(content):
        end = content.index(b"\n", start)
        about: Json = json.loads(content[start:end])
        start = end + 1
        body = content[start : start + about["bytes"]]
        start += about["bytes"]
        arrays = pa.ipc.open_stream(body).read_next_batch().columns if about["columns"] else []
        columns = [
            _decode_values(array, Type(kind), form)
            for array, (kind, form) in zip(arrays, about["columns"], strict=True)
        ]
        yield Batch(about["relation"], tuple(columns), about["count"], about["weight"])


def _encode_values(values: Values) -> tuple[pa.Array, str]:
    if values.distinct is None:
        return pa.array(values.data), "plain"
    numbers = pa.array(values.data, pa.int64())
    if values.type is Type.STRING:
        try:
            return pa.DictionaryArray.from_arrays(numbers, pa.array(values.distinct, pa.large_string())), "text"
        except (pa.ArrowException, UnicodeEncodeError):  # a string that UTF-8 cannot hold
            pass
    texts = [json.dumps(_plain(value)) for value in values.distinct]
    return pa.DictionaryArray.from_arrays(numbers, pa.array(texts, pa.large_string())), "json"


def _decode_values(array: pa.Array, kind: Type, form: str) -> Values:
    if form == "plain":
        return Values(kind, to_numpy(array))
    distinct = array.dictionary.to_pylist()
    if form == "json":
        distinct = [_value(json.loads(text)) for text in distinct]
    return Values(kind, to_numpy(array.indices), tuple(distinct))


def _plain(value: Value) -> object:
    return {"name": value.name, "args": [_plain(arg) for arg in value.args]} if isinstance(value, Term) else value


def _value(plain: Json) -> Value:
    if isinstance(plain, dict):
        return Term(plain["name"], tuple(_value(arg) for arg in plain["args"]))
    value: Value = plain
    return value


# Entries


@dataclass(frozen=True, slots=True)
class ShareFile:
    """A file of batches for one partition, or for all."""

    owner: str
    name: str
    size: int
    checksum: int


@dataclass(frozen=True, slots=True)
class Entry:
    """What the log says of an epoch: its event time, and where each partition finds its share."""

    time: int | None
    files: Sequence[ShareFile] = ()
    inside: Mapping[str, tuple[int, int, int]] = field(default_factory=dict)  # start, bytes, checksum


def encode_entry(time: int | None, shares: Mapping[str, bytes], files: Sequence[ShareFile]) -> bytes:
    """Return the entry of an epoch."""
    inside: dict[str, tuple[int, int, int]] = {}
    start = 0
    for owner, content in shares.items():
        inside[owner] = (start, len(content), checksum(content))
        start += len(content)
    named = [[each.owner, each.name, each.size, each.checksum] for each in files]
    header = json.dumps({"time": time, "inside": inside, "files": named}).encode()
    sealed = b"%08x " % checksum(header)
    return _MAGIC + sealed + header + b"\n" + b"".join(shares.values())


def read_share(layout: Layout, token: str, *numbers: int) -> tuple[int | None, list[Batch]]:
    """Return the event time of an epoch, and the batches of some partitions; raise if anything is damaged."""
    (path,) = layout.have(layout.entry(token))
    content = _read(path)
    entry, start = _read_header(path, content)
    owners = (ALL, *map(str, numbers))
    layout.have(*(layout.shares(token) / each.name for each in entry.files if each.owner in owners))
    batches: list[Batch] = []
    for owner in owners:
        if owner in entry.inside:
            offset, size, wanted = entry.inside[owner]
            batches += _checked(path, content[start + offset : start + offset + size], (size, wanted))
        batches += read_files(layout, token, entry.files, owner)
    return entry.time, batches


def read_files(layout: Layout, token: str, files: Sequence[ShareFile], owner: str) -> list[Batch]:
    """Return the batches of one owner that stand in files of their own; raise if one is damaged."""
    found: list[Batch] = []
    for each in files:
        if each.owner == owner:
            (path,) = layout.have(layout.shares(token) / each.name)
            found += _checked(path, _read(path), (each.size, each.checksum))
    return found


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError("E821", None, path=path, reason=error.strerror or str(error)) from None


def _read_header(path: Path, content: bytes) -> tuple[Entry, int]:
    end = content.find(b"\n", len(_MAGIC))
    line = content[len(_MAGIC) : end] if end > 0 else b""
    if not content.startswith(_MAGIC) or line[:9] != b"%08x " % checksum(line[9:]):
        raise UserError("E821", None, path=path, reason="Its first lines are not whole")
    header: Json = json.loads(line[9:])
    files = [ShareFile(*each) for each in header["files"]]
    return Entry(header["time"], files, {owner: tuple(span) for owner, span in header["inside"].items()}), end + 1


def _checked(path: Path, content: bytes, wanted: Span) -> list[Batch]:
    if (len(content), checksum(content)) != wanted:
        raise UserError("E821", None, path=path, reason=f"Found {len(content)} bytes, expected {wanted[0]} as written")
    return list(decode_batches(content))
