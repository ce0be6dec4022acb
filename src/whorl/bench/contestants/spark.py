"""What Spark offers by itself: a loop of data frames, its recursive table expression, and an epoch that does nothing.

The loop is semi-naive: each round joins the pairs found last with the edges, drops what is known, and is cut from its
plan by a local checkpoint; without that cut the plans grow with every round. The table expression knows `UNION ALL`
only, so on cyclic data it never ends. There it gets the number of rounds that the loop needs, and drops double pairs in
every round; nobody would know that number beforehand.
"""

from __future__ import annotations

import tempfile
from functools import partial, reduce
from pathlib import Path
from typing import Any

import numpy as np

from whorl.bench.graphs import Ints
from whorl.bench.measure import TreeMeter
from whorl.bench.on_spark import answer_in, edges_frame, epoch_figures, feed, missing, open_session, warmly
from whorl.bench.outcome import Outcome
from whorl.bench.workload import Workload

__all__ = ["measure", "missing"]
_ACYCLIC = """\
WITH RECURSIVE path(x, y) AS (
    SELECT x, y FROM edge UNION ALL SELECT path.x, edge.y FROM path JOIN edge ON path.y = edge.x
) SELECT DISTINCT x, y FROM path"""
_BOUNDED = """\
WITH RECURSIVE path(x, y, level) AS (
    SELECT x, y, 1 FROM edge
    UNION ALL
    SELECT DISTINCT path.x, edge.y, path.level + 1 FROM path JOIN edge ON path.y = edge.x WHERE path.level < {depth}
) SELECT DISTINCT x, y FROM path"""


def measure(workload: Workload, warm_up: Workload, variant: str, *, rows_out: bool) -> Outcome:
    """Measure a loop, a table expression (`cte`), or a stream that does nothing (`empty`)."""
    assert not rows_out, "rows stay in Spark here"
    load = {"loop": _loop, "cte": _table_expression, "empty": None}[variant]
    spark = open_session()
    if load is not None:
        outcome = warmly(partial(load, spark), warm_up, workload)
    else:
        _nothing(spark, warm_up)
        outcome = _nothing(spark, workload)
    spark.stop()
    return outcome


def _loop(spark: Any, workload: Workload) -> Outcome:
    edges = edges_frame(spark, workload)
    follow = edges.toDF("z", "w").hint("broadcast")
    with TreeMeter() as spent:
        new = edges.localCheckpoint()
        rounds, rows = [new], new.count()
        while True:
            known = reduce(lambda left, right: left.union(right), rounds)
            step = new.join(follow, new.y == follow.z).selectExpr("x", "w AS y").distinct()
            new = step.join(known, ["x", "y"], "left_anti").localCheckpoint()
            found = new.count()
            if not found:
                break
            rounds.append(new)
            rows += found
    answer = answer_in(known)
    edges.unpersist()
    return Outcome(spent.figures, {"load": answer}, spark.version)


def _table_expression(spark: Any, workload: Workload) -> Outcome:
    for limit in ("Level", "Row"):
        spark.conf.set(f"spark.sql.cteRecursion{limit}Limit", "-1")
    depth = bound(workload.load.inserts["edge"])
    edges = edges_frame(spark, workload)
    edges.createOrReplaceTempView("edge")
    found = spark.sql(_ACYCLIC if depth is None else _BOUNDED.format(depth=depth)).cache()
    with TreeMeter() as spent:
        found.count()
    answer = answer_in(found)
    for frame in (found, edges):
        frame.unpersist()
    return Outcome(spent.figures, {"load": answer}, spark.version)


def bound(edges: Ints) -> int | None:
    """Return how many rounds the closure takes, or None if the graph is acyclic and needs no bound."""
    nodes = int(edges.max()) + 1
    near = np.zeros((nodes, nodes), bool)
    near[edges[:, 0], edges[:, 1]] = True
    reached, new, depth = near.copy(), near, 1
    while True:
        further = np.zeros_like(near)
        for start, stop in edges.tolist():
            further[:, stop] |= new[:, start]
        new = further & ~reached
        if not new.any():
            return depth if reached.diagonal().any() else None
        reached |= new
        depth += 1


def _nothing(spark: Any, workload: Workload) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        frame = feed(spark, workload, Path(folder) / "in")
        writer = frame.writeStream.foreachBatch(lambda _frame, _batch: None)
        query = writer.option("checkpointLocation", str(Path(folder) / "state")).start()
        try:
            query.processAllAvailable()
            return Outcome(epoch_figures(query, workload), {}, spark.version)
        finally:
            query.stop()
