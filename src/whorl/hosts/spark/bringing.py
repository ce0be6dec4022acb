"""A micro-batch on its way into the log: through the driver while it is small, past it when it is large.

Small: the rows come to the driver once, are checked there, and stand in the entry of the log. Large: tasks check and
route the rows where they are, and write shares; the driver learns names, sizes and counts. Either way it is one job,
and the same entry results.
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import TaskContext
from pyspark.errors import PySparkException

from whorl.hosts.spark.arrivals import Arrived, latest, read_arrivals, split_batches
from whorl.hosts.spark.files import checksum, write_file
from whorl.hosts.spark.lanes import Frame, Lane
from whorl.hosts.spark.layout import Layout
from whorl.hosts.spark.shares import ShareFile, encode_batches
from whorl.model.batch import Batch

SMALL_ROWS = 50_000
SMALL_BYTES = 8 << 20
_SCHEMA = "owner string, name string, size long, checksum long, rows long, time long, misfits long, relation string"


@dataclass(frozen=True, slots=True)
class Brought:
    """What an epoch brings: batches on the driver, or files of shares; counts and the latest event time."""

    batches: Sequence[Batch] = ()
    files: Sequence[ShareFile] = ()
    rows: int = 0
    time: int | None = None
    misfits: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Bringer:
    """Knows the lanes of a deployment, and its folder."""

    lanes: Sequence[Lane]
    layout: Layout
    partitions: int
    durable: bool

    def bring(self, frame: Frame, token: str, epoch: int, last_rows: int | None) -> Brought:
        """Bring a micro-batch in; ``last_rows`` is how many the one before had, None before the first."""
        shutil.rmtree(self.layout.quarantine(epoch), ignore_errors=True)
        size = estimate(frame)
        small = size <= SMALL_BYTES if size is not None else last_rows is not None and last_rows <= SMALL_ROWS
        if small:
            try:
                return self.through_driver(frame, epoch)
            except (Py4JError, PySparkException) as error:
                if "maxResultSize" not in str(error):
                    raise
        return self.by_tasks(frame, token, epoch)

    def through_driver(self, frame: Frame, epoch: int) -> Brought:
        """Bring the rows to the driver."""
        arrived = read_arrivals(frame.toArrow(), self.lanes)
        set_aside(self.layout, epoch, "driver", arrived, durable=self.durable)
        misfits = {name: len(lines) for name, lines in arrived.misfits.items()}
        return Brought(arrived.batches, (), arrived.rows, arrived.time, misfits)

    def by_tasks(self, frame: Frame, token: str, epoch: int) -> Brought:
        """Let tasks write shares."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of pyspark, about pandas, which nobody uses here
            routed = frame.mapInArrow(_router(self, token, epoch), _SCHEMA)
        told = routed.toArrow().to_pylist()
        written = [each for each in told if each["owner"] is not None]
        files = [ShareFile(each["owner"], each["name"], each["size"], each["checksum"]) for each in written]
        files.sort(key=lambda each: each.name)
        time: int | None = None
        misfits: dict[str, int] = {}
        for each in told:
            time = latest(time, each["time"])
            if each["misfits"]:
                misfits[each["relation"]] = misfits.get(each["relation"], 0) + each["misfits"]
        return Brought((), files, sum(each["rows"] for each in told), time, misfits)


def estimate(frame: Frame) -> int | None:
    """Return Spark's guess at the size of a frame in bytes, None if it has none."""
    size = int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))
    return None if size >= 1 << 60 else size


def set_aside(layout: Layout, epoch: int, source: str, arrived: Arrived, *, durable: bool) -> None:
    """Write the rows that did not fit, with their reasons."""
    for name, lines in arrived.misfits.items():
        content = "".join(f"{line}\n" for line in lines)
        write_file(layout.quarantine(epoch) / f"{name}-{source}.jsonl", content.encode(), durable=durable)


def _router(bringer: Bringer, token: str, epoch: int) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def route(batches: Iterator[Any]) -> Iterator[Any]:
        return route_rows(bringer, token, epoch, batches)

    return route


def route_rows(bringer: Bringer, token: str, epoch: int, batches: Iterator[Any]) -> Iterator[Any]:
    """Check and route the rows of one task; write a share for each partition, and yield what was written."""
    context = TaskContext.get()
    assert context is not None, "runs in a task"
    arrived = Arrived()
    for batch in batches:
        arrived.add(read_arrivals(pa.Table.from_batches([batch]), bringer.lanes))
    source = f"from-{context.partitionId():05}"
    set_aside(bringer.layout, epoch, source, arrived, durable=bringer.durable)
    places = {lane.target.relation: lane.place for lane in bringer.lanes}
    told = [_row(rows=arrived.rows, time=arrived.time)]
    told += [_row(relation=name, misfits=len(lines)) for name, lines in arrived.misfits.items()]
    for owner, own in split_batches(arrived.batches, places, bringer.partitions).items():
        content = encode_batches(own)
        name = f"{source}-{context.taskAttemptId()}-{owner}.share"
        write_file(bringer.layout.shares(token) / name, content, durable=bringer.durable)
        told.append(_row(owner=owner, name=name, size=len(content), checksum=checksum(content)))
    yield pa.RecordBatch.from_pylist(told, schema=_ARROW)


_ARROW = pa.schema(
    [
        ("owner", pa.string()),
        ("name", pa.string()),
        ("size", pa.int64()),
        ("checksum", pa.int64()),
        ("rows", pa.int64()),
        ("time", pa.int64()),
        ("misfits", pa.int64()),
        ("relation", pa.string()),
    ]
)


def _row(**known: object) -> dict[str, object]:
    return {"owner": None, "name": None, "rows": 0, "misfits": 0, **known}
