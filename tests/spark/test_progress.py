"""Listeners that Spark calls see what each epoch did and cost."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming import StreamingQueryListener

import whorl
from tests.spark.feeding import EPOCHS, REACH, Feed, links, reference
from tests.spark.processes import await_
from whorl.hosts.spark import progress

pytestmark = pytest.mark.xdist_group("spark")  # one process, and one session, for all


class Listener(StreamingQueryListener):  # type: ignore[misc]  # pyspark is not followed
    """Keeps the progress of batches that had rows."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
        pass

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - Spark's name
        if event.progress.numInputRows:
            self.told.append(event.progress)

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802 - Spark's name
        pass

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 - Spark's name
        pass


def test_each_batch_tells_what_its_epoch_did_and_cost(spark: Any, tmp_path: Path) -> None:
    feed, listener = Feed(tmp_path / "in"), Listener()
    spark.streams.addListener(listener)
    query = whorl.stream(spark, REACH, {"link": feed.frame(spark)}, checkpoint=tmp_path / "ckpt", partitions=2)
    try:
        reports: list[Any] = []
        odd: list[Sequence[Any]] = [("+", "x", None), ("+", "x", "y")]
        batches: list[Sequence[Sequence[Any]]] = [*EPOCHS, odd]
        for rows in batches:
            feed.put(rows)
            query.processAllAvailable()
            reports.append(query.report)
        await_(lambda: len(listener.told) == len(reports), "the progress of all batches")
    finally:
        query.stop()
        spark.streams.removeListener(listener)
    found = [progress.observedMetrics["whorl"] for progress in listener.told]
    views = [set[Any](), *(each["reachable"] for each in reference(REACH, [links(rows) for rows in EPOCHS]))]
    views.append(views[-1] | {("x", "y")})
    assert [row.epoch for row in found] == [1, 2, 3, 4, 5]
    assert [row.rows for row in found] == [2, 2, 1, 3, 2]
    assert [row.inserted for row in found] == [len(after - before) for before, after in pairwise(views)]
    assert [row.deleted for row in found] == [len(before - after) for before, after in pairwise(views)]
    assert [row.quarantined for row in found] == [0, 0, 0, 0, 1]
    for row, report in zip(found, reports, strict=True):
        assert (row.derivations, row.rounds, row.probes) == (
            report.work.derivations,
            report.work.rounds,
            report.work.probes,
        )
        assert row.derivations > 0
        assert (row.stateBytes, row.seconds) == (report.state_bytes, report.seconds)
        assert row.seconds > 0


@pytest.mark.parametrize("columns", [0, 3, 54, 55, 130])
def test_a_row_reads_in_spark_as_it_was_packed(spark: Any, columns: int) -> None:
    figures = {name: 2**40 + at for at, name in enumerate(progress._WHOLE)} | dict.fromkeys(progress._BROKEN, 0.25)
    content = progress.pack_row(columns, figures)
    row = spark._jvm.org.apache.spark.sql.catalyst.expressions.UnsafeRow(columns + len(figures))
    row.pointTo(bytearray(content), len(content))
    assert [row.isNullAt(at) for at in range(columns + len(figures))] == [True] * columns + [False] * len(figures)
    read = [row.getLong(columns + at) for at in range(len(progress._WHOLE))]
    assert [*read, row.getDouble(columns + len(read))] == list(figures.values())
