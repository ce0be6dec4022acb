"""Rows that come with the job of an epoch, as tasks see them.

Few rows come to every partition as Arrow batches; each partition checks all of them and takes its share. Many rows are
checked and routed by tasks of an earlier stage, which write shares; notes on these come to every partition. Both stages
belong to one job. What a partition took goes back to the driver, which writes it to the log before the epoch counts.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext

from whorl.hosts.spark.arrivals import Arrived, latest, read_arrivals, split_batches
from whorl.hosts.spark.ending import end_quietly
from whorl.hosts.spark.files import checksum, write_file
from whorl.hosts.spark.lanes import Lane
from whorl.hosts.spark.layout import Layout, epoch_of
from whorl.hosts.spark.protocol import PROPERTY, Brought, Request
from whorl.hosts.spark.shares import ALL, ShareFile, encode_batches, read_files
from whorl.model.batch import Batch


@dataclass(frozen=True, slots=True)
class Reader:
    """What tasks must know of the rows: their lanes, and the schema, which batches leave out."""

    lanes: Sequence[Lane]
    schema: pa.Schema

    def read(self, content: bytes) -> Arrived:
        """Check the rows of a batch."""
        batch = pa.ipc.read_record_batch(pa.py_buffer(content), self.schema)
        return read_arrivals(pa.Table.from_batches([batch]), self.lanes)

    def places(self) -> dict[str, int | None]:
        """Return the attribute that tells the partition, for each relation."""
        return {lane.target.relation: lane.place for lane in self.lanes}


@lru_cache(maxsize=32)
def load_reader(path: str) -> Reader:
    """Return the reader that the driver wrote for its workers."""
    found: Reader = pickle.loads(Path(path).read_bytes())
    return found


def _reader(request: Request) -> Reader:
    assert request.fed is not None, "rows come with the job"
    (path,) = request.layout.have(request.layout.reader(request.fed.reader))
    return load_reader(str(path))


def current_request() -> Request:
    """Return the request of the job that this task belongs to."""
    context = TaskContext.get()
    assert context is not None, "runs in a task"
    return Request.from_json(context.getLocalProperty(PROPERTY) or "")


# The last stage: each partition takes what is its own


def take_in(
    request: Request, number: int, contents: Sequence[bytes], facts: Sequence[Batch], places: Mapping[str, int | None]
) -> tuple[list[Batch], Brought]:
    """Return the batches of one partition, facts first, and what it has to tell of all that came."""
    assert request.fed is not None, "rows come with the job"
    ordered = sorted(contents)  # they come in any order, and all partitions must see the same
    if request.fed.many:
        brought, batches = _put_together([pickle.loads(each) for each in ordered]), list[Batch]()
    else:
        brought, batches = _read_rows(request, number, ordered)
    split = split_batches([*facts, *batches], dict(places), request.partitions)
    own: list[Batch] = []
    for owner in (ALL, str(number)):
        own += split.get(owner, ())
        own += read_files(request.layout, request.entry, brought.files, owner)
    told = (ALL, "0") if number == 0 else (str(number),)
    shares = {owner: encode_batches(split[owner]) for owner in told if owner in split}
    brought = replace(brought, shares=shares, time=latest(brought.time, request.fed.time))
    return own, brought if request.shared else _apart(request, brought)


def _apart(request: Request, brought: Brought) -> Brought:
    """Write large shares to files of their own: these need not pass through the driver."""
    files: list[ShareFile] = []
    for owner, content in brought.shares.items():
        if len(content) > request.most_bytes:
            files.append(_write_share(request, f"all-{owner}.share", owner, content))
    large = {each.owner for each in files}
    small = {owner: content for owner, content in brought.shares.items() if owner not in large}
    return replace(brought, shares=small, files=[*brought.files, *files])


def _write_share(request: Request, name: str, owner: str, content: bytes) -> ShareFile:
    write_file(request.layout.shares(request.entry) / name, content, durable=request.durable)
    return ShareFile(owner, name, len(content), checksum(content))


def _read_rows(request: Request, number: int, contents: Sequence[bytes]) -> tuple[Brought, list[Batch]]:
    assert request.fed is not None, "rows come with the job"
    reader, arrived = _reader(request), Arrived()
    for content in contents:
        arrived.add(reader.read(content))
    if number == 0:
        set_aside(request.layout, epoch_of(request.entry), "rows", arrived, durable=request.durable)
    misfits = {name: len(lines) for name, lines in arrived.misfits.items()}
    digest = checksum(b"".join(contents))
    return Brought({}, (), arrived.rows, arrived.time, misfits, digest), arrived.batches


def _put_together(notes: Sequence[Brought]) -> Brought:
    files = sorted((each for note in notes for each in note.files), key=lambda each: each.name)
    time: int | None = None
    misfits: dict[str, int] = {}
    for note in notes:
        time = latest(time, note.time)
        for name, count in note.misfits.items():
            misfits[name] = misfits.get(name, 0) + count
    content = [(each.name.partition(".")[0], each.size, each.checksum) for each in files]
    digest = checksum(repr(content).encode())
    return Brought({}, files, sum(note.rows for note in notes), time, misfits, digest)


# The stage before it, if there are many rows


def route_rows(contents: Iterable[bytes]) -> Iterator[Brought]:
    """Check and route the rows of one task; write a share for each partition, and yield a note on them."""
    end_quietly()
    request, context = current_request(), TaskContext.get()
    assert request.fed is not None, "rows come with the job"
    assert context is not None, "runs in a task"
    reader, arrived = _reader(request), Arrived()
    for content in contents:
        arrived.add(reader.read(content))
    source = f"from-{context.partitionId():05}"
    set_aside(request.layout, epoch_of(request.entry), source, arrived, durable=request.durable)
    files: list[ShareFile] = []
    for owner, own in split_batches(arrived.batches, reader.places(), request.partitions).items():
        name = f"{source}-{owner}.{context.taskAttemptId()}.share"
        files.append(_write_share(request, name, owner, encode_batches(own)))
    yield Brought({}, files, arrived.rows, arrived.time, {name: len(own) for name, own in arrived.misfits.items()})


def set_aside(layout: Layout, epoch: int, source: str, arrived: Arrived, *, durable: bool) -> None:
    """Write the rows that did not fit, with their reasons."""
    for name, lines in arrived.misfits.items():
        content = "".join(f"{line}\n" for line in lines)
        write_file(layout.quarantine(epoch) / f"{name}-{source}.jsonl", content.encode(), durable=durable)
