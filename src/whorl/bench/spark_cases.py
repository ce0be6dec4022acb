"""The cases and targets of `whorl bench spark`: everything runs on one Spark of two threads, bound to this machine."""

from __future__ import annotations

from functools import partial

import numpy as np

from whorl.bench import graphs
from whorl.bench.case import Case, Entry
from whorl.bench.contestants import Contestant
from whorl.bench.graphs import Ints
from whorl.bench.targets import Figure, Target
from whorl.bench.workload import CLOSURE, REACH, Batch, Workload

IN_PROCESS = Contestant("whorl", "auto")
EVALUATE = Contestant("whorl-spark", "evaluate")
STREAM = Contestant("whorl-spark", "stream")
ONE, TWO = Contestant("whorl-spark", "1 partition"), Contestant("whorl-spark", "2 partitions")
LOOP, CTE, EMPTY = (Contestant("spark", variant) for variant in ("loop", "cte", "empty"))


def _closure(nodes: int, edges: int, seed: int, *, acyclic: bool, quick: bool) -> Workload:
    if quick:
        nodes, edges = 40, 70
    rows = graphs.random_graph(nodes, edges, seed, acyclic=acyclic)
    return Workload(CLOSURE, Batch("load", {"edge": rows}))


def _swaps(relation: str, rows: Ints, spare: Ints, count: int, kinds: list[str], seed: int) -> tuple[Batch, ...]:
    """Return steps that each take ``count`` rows away and bring as many others, so that the size stays."""
    rng = np.random.default_rng(seed + 1)
    steps: list[Batch] = []
    for kind in kinds:
        out, back = rng.choice(len(rows), count, replace=False), rng.choice(len(spare), count, replace=False)
        steps.append(Batch(kind, {relation: spare[back]}, {relation: rows[out]}))
        rows, spare = _exchange(rows, out, spare, back)
    return tuple(steps)


def _exchange(rows: Ints, out: Ints, spare: Ints, back: Ints) -> tuple[Ints, Ints]:
    rows, spare = rows.copy(), spare.copy()
    rows[out], spare[back] = spare[back], rows[out]
    return rows, spare


def _start_at_a_hub(edges: Ints) -> Ints:
    """Exchange node 0, where the program starts, with the one that has most links: from there much can be reached."""
    hub = int(np.bincount(edges[:, 0]).argmax())
    found = edges.copy()
    found[edges == 0], found[edges == hub] = hub, 0
    return found


def _stream(
    rules: str, nodes: int, edges: int, count: int, warm: int, epochs: int, seed: int, *, quick: bool
) -> Workload:
    if quick:
        nodes, edges, count, warm, epochs = 40, 80, 4, 2, 2
    generated = graphs.random_graph(nodes, edges + edges // 2, seed)
    if rules == "reach":
        generated = _start_at_a_hub(generated)
    rows, spare = generated[:edges], generated[edges:]
    kinds = ["warm"] * warm + ["epoch"] * epochs
    program, relation = (REACH, "link") if rules == "reach" else (CLOSURE, "edge")
    return Workload(program, Batch("load", {relation: rows}), _swaps(relation, rows, spare, count, kinds, seed))


SPARK_CASES: tuple[Case, ...] = (
    Case(
        "spark-closure",
        "all pairs of 2,000 nodes and 4,000 random edges",
        partial(_closure, 2_000, 4_000, acyclic=False),
        (Entry(EVALUATE), Entry(LOOP, runs=2, seconds=600), Entry(CTE, runs=1, seconds=900, on_demand=True)),
    ),
    Case(
        "spark-closure-acyclic",
        "all pairs of an acyclic graph of 2,000 nodes and 4,000 edges, which Spark's recursive CTE can finish",
        partial(_closure, 2_000, 4_000, acyclic=True),
        (Entry(EVALUATE), Entry(LOOP, runs=2, seconds=600), Entry(CTE, runs=2, seconds=600)),
    ),
    Case(
        "spark-epoch",
        "who can be reached from one node over 100,000 links, 100 of which change in each of 40 epochs",
        partial(_stream, "reach", 50_000, 100_000, 50, 20, 40),
        (Entry(STREAM), Entry(EMPTY), Entry(IN_PROCESS)),
    ),
    Case(
        "spark-partitions",
        "the closure of 4,000 nodes and 12,000 edges, 1,000 of which are exchanged in each of 8 epochs",
        partial(_stream, "closure", 4_000, 12_000, 1_000, 2, 8),
        (Entry(ONE), Entry(TWO)),
    ),
)

SPARK_TARGETS: tuple[Target, ...] = (
    Target(
        "speed of evaluate against a loop of data frames",
        Figure("spark-closure", "spark loop", "load.wall"),
        Figure("spark-closure", "whorl-spark evaluate", "load.wall"),
        50.0,
        least=True,
    ),
    Target(
        "time of an epoch against one that does nothing",
        Figure("spark-epoch", "whorl-spark stream", "epoch.wall"),
        Figure("spark-epoch", "spark empty", "epoch.wall"),
        2.5,
    ),
    Target(
        "throughput of 2 partitions against 1 (both cores free)",
        Figure("spark-partitions", "whorl-spark 1 partition", "stream.wall"),
        Figure("spark-partitions", "whorl-spark 2 partitions", "stream.wall"),
        1.5,
        least=True,
    ),
)
