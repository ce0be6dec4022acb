"""What an epoch did and cost, in Spark's own progress of the micro-batch, for listeners that Spark calls.

A frame can be observed: aggregates over its rows come with the progress, as `observedMetrics`. Whorl's frame has some,
over columns that no row fills and no task carries further. When the epoch counts, the driver adds one row with the
figures to these aggregates, before Spark reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from struct import error as StructError  # noqa: N812 - it is one
from struct import pack
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from whorl.hosts.spark.lanes import Frame
from whorl.hosts.spark.manifest import Manifest
from whorl.model.report import EpochReport

NAME = "whorl"
_WHOLE = ("epoch", "rows", "inserted", "deleted", "quarantined", "derivations", "rounds", "probes", "stateBytes")
_BROKEN = ("seconds",)
_NODE = "CollectMetrics"


@dataclass(frozen=True, slots=True)
class Progress:
    """The figures of a frame that is observed; they stand behind its own columns."""

    spark: Any
    frame: Frame
    columns: int
    row_class: Any  # Java's; looking a class up takes longer than to use it

    def tell(self, last: Manifest, report: EpochReport) -> None:
        """Add the figures of an epoch to the progress of the micro-batch that this thread is in."""
        try:
            self._add(figures_of(last, report))
        except (Py4JError, AttributeError, StructError):  # no room, or no figure; the epoch counts all the same
            return

    def _add(self, figures: Mapping[str, int | float]) -> None:
        context = self.spark.sparkContext
        query = self.spark._jsparkSession.streams().get(context.getLocalProperty("sql.streaming.queryId"))
        node = query.streamingQuery().lastExecution().executedPlan()
        while str(node.nodeName()) != _NODE:
            node = node.children().head()
        content = pack_row(self.columns, figures)
        row = self.row_class(self.columns + len(figures))
        row.pointTo(bytearray(content), len(content))
        node.accumulator().add(row)


def observe(spark: Any, frame: Frame) -> Progress:
    """Return a frame whose progress has room for the figures of an epoch."""
    names = frame.columns
    kinds = [*((name, "bigint") for name in _WHOLE), *((name, "double") for name in _BROKEN)]
    room = [F.lit(None).cast(kind).alias(f"{NAME}.{name}") for name, kind in kinds]
    figures = [F.max(f"`{NAME}.{name}`").alias(name) for name, _kind in kinds]
    observed = frame.select("*", *room).observe(NAME, *figures).select(*names)
    row_class = spark._jvm.org.apache.spark.sql.catalyst.expressions.UnsafeRow
    return Progress(spark, observed, len(names), row_class)


def pack_row(columns: int, figures: Mapping[str, int | float]) -> bytes:
    """Return a row as Spark has it in memory, to go there at once: which fields are null, then a word for each."""
    fields = columns + len(figures)
    nulls = ((1 << columns) - 1).to_bytes((fields + 63) // 64 * 8, "little")
    words = "".join("q" if name in _WHOLE else "d" for name in (*_WHOLE, *_BROKEN))
    return nulls + bytes(8 * columns) + pack(f"<{words}", *(figures[name] for name in (*_WHOLE, *_BROKEN)))


def figures_of(last: Manifest, report: EpochReport) -> dict[str, int | float]:
    """Return what an epoch did and cost, as numbers."""
    work = report.work
    return {
        "epoch": last.epoch,
        "rows": last.rows,
        "inserted": sum(inserted for inserted, _deleted in last.views.values()),
        "deleted": sum(deleted for _inserted, deleted in last.views.values()),
        "quarantined": sum(last.misfits.values()),
        "derivations": 0 if work is None else work.derivations,
        "rounds": 0 if work is None else work.rounds,
        "probes": 0 if work is None else work.probes,
        "stateBytes": report.state_bytes or 0,
        "seconds": report.seconds,
    }
