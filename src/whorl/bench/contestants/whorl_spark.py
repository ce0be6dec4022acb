"""Whorl on Spark: `whorl.evaluate` over a frame, or `whorl.stream` over files, one a micro-batch."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import whorl
from whorl.bench.measure import TreeMeter
from whorl.bench.on_spark import answer_in, edges_frame, epoch_figures, feed, missing, open_session, warmly
from whorl.bench.outcome import Outcome
from whorl.bench.workload import Workload
from whorl.model.limits import Limits

__all__ = ["measure", "missing"]
_LIMITS = Limits(rounds=1_000_000, tuples=1_000_000_000)


def measure(workload: Workload, warm_up: Workload, variant: str, *, rows_out: bool) -> Outcome:
    """Measure `evaluate`, `stream`, or a stream with so many partitions."""
    assert not rows_out, "rows stay in Spark here"
    spark = open_session()
    if variant == "evaluate":
        outcome = warmly(partial(_evaluate, spark), warm_up, workload)
    else:
        partitions = int(variant.split(maxsplit=1)[0]) if variant[0].isdigit() else None
        _stream(spark, warm_up, partitions)
        outcome = _stream(spark, workload, partitions)
    spark.stop()
    return outcome


def _evaluate(spark: Any, workload: Workload) -> Outcome:
    edges = edges_frame(spark, workload)
    with TreeMeter() as spent:
        found = whorl.evaluate(spark, workload.rules.text, {"edge": edges}, limits=_LIMITS)[workload.rules.view]
        found.count()
    answer = answer_in(found)
    edges.unpersist()
    return Outcome(spent.figures, {"load": answer}, whorl.__version__)


def _stream(spark: Any, workload: Workload, partitions: int | None) -> Outcome:
    (relation,) = workload.load.inserts
    with tempfile.TemporaryDirectory() as folder:
        frame = feed(spark, workload, Path(folder) / "in")
        query = whorl.stream(
            spark,
            workload.rules.text,
            {relation: frame},
            checkpoint=Path(folder) / "state",
            partitions=partitions,
            limits=_LIMITS,
        )
        try:
            query.processAllAvailable()
            figures = epoch_figures(query.spark_query, workload)
            answer = answer_in(query.snapshot(workload.rules.view))
        finally:
            query.stop()
    return Outcome(figures, {"end": answer}, whorl.__version__)
