"""Files between workers and a store that they do not reach by paths. Spark reads and writes them, not the driver.

Out: workers yield what they hold as rows, and Spark's own writer puts them there as Parquet: a view as its rows, other
files as chunks. In: Spark reads files, or chunks of them, and each worker gets those that it lacks beside its anchor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it
from pyspark.sql.pandas.types import from_arrow_schema

from whorl.diagnostics.errors import UserError
from whorl.hosts.spark.afar import CHUNKS
from whorl.hosts.spark.layout import is_table, pack_of, unit_of
from whorl.hosts.spark.protocol import TAKE_FILES, Reply, Request

if TYPE_CHECKING:
    from whorl.hosts.spark.anchors import Anchors
    from whorl.hosts.spark.hadoop import HadoopStore
    from whorl.hosts.spark.lanes import Frame

_QUIET = ("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")  # no file that tells of success


def chunks_of(store: HadoopStore, names: Sequence[str]) -> tuple[Frame | None, set[str]]:
    """Return the chunks of files and folders, and the names of those that are not there."""
    addresses, packs, absent = list[str](), dict[str, list[str]](), set[str]()
    for name in names:
        unit, found = unit_of(name), store.files(name)
        if found:
            addresses += found
        elif unit is not None and store.exists(store.layout.folder / pack_of(unit)):
            packs.setdefault(pack_of(unit), []).append(name)
        else:
            absent.add(name)
    frames = [_packed(store, pack, own) for pack, own in packs.items()]
    if addresses:
        frames.append(_whole(store, addresses))
    whole: Frame | None = None
    for frame in frames:
        whole = frame if whole is None else whole.unionByName(frame)
    return whole, absent


def _whole(store: HadoopStore, addresses: Sequence[str]) -> Frame:
    found = store.spark.read.format("binaryFile").load(list(addresses))
    name = F.col("path").substr(F.lit(len(store.root) + 2), F.length("path"))
    return found.select(name.alias("name"), F.lit(0).cast("bigint").alias("start"), "content")


def _packed(store: HadoopStore, pack: str, names: Sequence[str]) -> Frame:
    found = store.spark.read.schema(from_arrow_schema(CHUNKS)).parquet(store.address(store.layout.folder / pack))
    wanted = F.lit(False)  # noqa: FBT003 - a value
    for name in names:
        wanted = wanted | (F.col("name") == name) | F.col("name").startswith(f"{name}/")
    return found.where(wanted)


def give_files(
    store: HadoopStore, anchors: Anchors, request: Request, lacking: Mapping[int, Sequence[str]]
) -> set[str]:
    """Give partitions the files that they lack; return the names of those that are not there, or not whole."""
    rows: dict[int, Any] = {}
    absent: set[str] = set()
    for number, names in lacking.items():
        frame, missing = chunks_of(store, names)
        absent |= missing
        if frame is not None:
            rows[number] = frame._jdf.toArrowBatchRdd(1, "UTC", True, False).toJavaRDD()  # noqa: FBT003 - Java's order
    if rows:
        wanted = {str(number): tuple(lacking[number]) for number in rows}
        try:
            anchors.give(replace(request, do=TAKE_FILES, wanted=wanted, fed=None), rows)
        except UserError:
            absent |= {name for number in rows for name in lacking[number] if unit_of(name) is not None}
            if not absent:
                raise
    return absent


def carry_away(
    store: HadoopStore, anchors: Anchors, request: Request, replies: Sequence[Reply], schemas: Mapping[str, Any]
) -> bool:
    """Write what workers hold; return whether all of it is there. ``schemas`` are those of the views."""
    holders: dict[str, list[int]] = {}
    for reply in replies:
        for unit in reply.held:
            holders.setdefault(unit, []).append(reply.number)
    for unit, numbers in holders.items():
        table = is_table(unit)
        schema = schemas[unit] if table else from_arrow_schema(CHUNKS)
        target = store.layout.folder / (unit if table else pack_of(unit))
        try:
            frame = anchors.held(store.spark, request, unit, numbers, schema)
            with anchors.asking(request, f"whorl: write {unit}"):
                frame.write.mode("overwrite").option(*_QUIET).parquet(store.address(target))
        except (Py4JError, PySparkException):
            return False
    return True
