"""The cases, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from whorl.bench import graphs
from whorl.bench.case import Case, Entry
from whorl.bench.contestants import Contestant
from whorl.bench.graphs import Ints
from whorl.bench.workload import CLOSURE, SHORTEST, Batch, Rules, Workload, cheapest, components, containment, ranking
from whorl.physical.strategies import STRATEGIES

AUTO = Contestant("whorl", "auto")
RECOMPUTE = Contestant("whorl", "recompute")
SUPPORT = Contestant("whorl", "support")
DUCKDB = Contestant("duckdb")
PATHWAY = Contestant("pathway")
CLINGO = Contestant("clingo")
SWIPL = Contestant("swipl")
_ROWS_OUT = (Contestant("whorl", "auto", rows_out=True), Contestant("duckdb", rows_out=True))


def _loaded(rows: Ints) -> Batch:
    return Batch("load", {"edge": rows})


# Closure from scratch


def _closure(full: Callable[[int], Ints], small: Callable[[int], Ints], seed: int, *, quick: bool) -> Workload:
    return Workload(CLOSURE, _loaded((small if quick else full)(seed)))


def _closure_case(
    name: str, title: str, full: Callable[[int], Ints], small: Callable[[int], Ints], *, main: bool = False
) -> Case:
    """Return a case of closure; slow contestants take part in the ``main`` one, in others on demand.

    Pathway is given the time after which the target is surely met.
    """
    entries = (
        Entry(RECOMPUTE),
        Entry(SUPPORT),
        Entry(DUCKDB),
        Entry(CLINGO, runs=2, on_demand=not main),
        Entry(SWIPL, runs=2, on_demand=not main),
        Entry(PATHWAY, runs=1, seconds=120),
        *(Entry(each, runs=1, seconds=900, on_demand=not main) for each in _ROWS_OUT),
    )
    return Case(f"closure-{name}", title, partial(_closure, full, small), entries)


_CLOSURES = (
    _closure_case(
        "random",
        "all pairs of 2,000 nodes and 6,000 random edges: 3.5 million rows",
        lambda seed: graphs.random_graph(2_000, 6_000, seed),
        lambda seed: graphs.random_graph(60, 150, seed),
        main=True,
    ),
    _closure_case(
        "chain",
        "all pairs of a chain of 3,000 nodes: 4.5 million rows, 2,999 rounds",
        lambda _seed: graphs.chain(3_000),
        lambda _seed: graphs.chain(50),
    ),
    _closure_case(
        "grid",
        "all pairs of a grid of 60 by 60 nodes: 3.3 million rows",
        lambda _seed: graphs.grid(60),
        lambda _seed: graphs.grid(10),
    ),
    _closure_case(
        "local",
        "all pairs of an acyclic graph of 20,000 nodes: about 10 million rows",
        lambda seed: graphs.local_graph(20_000, 1.7, 60, 2_500, seed),
        lambda seed: graphs.local_graph(200, 1.7, 10, 50, seed),
    ),
)


# Edges that go and come


def _flicker(rows: Ints, batch: int, times: int, seed: int) -> tuple[Batch, ...]:
    """Return steps that delete some edges and insert them again."""
    rng = np.random.default_rng(seed + 1)
    steps: list[Batch] = []
    for _ in range(times):
        chosen = {"edge": rows[rng.choice(len(rows), batch, replace=False)]}
        steps += [Batch("delete", deletes=chosen), Batch("insert", inserts=chosen)]
    return tuple(steps)


def _edges(nodes: int, edges: int, batch: int, times: int, seed: int, *, quick: bool) -> Workload:
    if quick:
        nodes, edges, batch, times = 40, 100, min(batch, 20), 3
    rows = graphs.random_graph(nodes, edges, seed)
    return Workload(CLOSURE, _loaded(rows), _flicker(rows, batch, times, seed))


_CHANGES = (
    Case(
        "edge",
        "one edge deleted, then inserted again, in the closure of 3.5 million rows",
        partial(_edges, 2_000, 6_000, 1, 50),
        (Entry(AUTO), Entry(RECOMPUTE, steps=4)),
    ),
    Case(
        "edge-small",
        "one edge deleted, then inserted again, in the closure of 500 nodes and 1,500 edges",
        partial(_edges, 500, 1_500, 1, 50),
        (Entry(AUTO), Entry(RECOMPUTE, steps=10), Entry(PATHWAY, runs=3)),
    ),
    Case(
        "edges-100",
        "100 edges deleted, then inserted again, in the closure of 3.5 million rows",
        partial(_edges, 2_000, 6_000, 100, 5),
        (Entry(AUTO), Entry(RECOMPUTE, steps=4)),
    ),
    Case(
        "edges-1000",
        "1,000 edges deleted, then inserted again, in the closure of 3.5 million rows",
        partial(_edges, 2_000, 6_000, 1_000, 3),
        (Entry(AUTO), Entry(RECOMPUTE, steps=4)),
    ),
)


# Shortest paths


def _paths(full: Callable[[int], Ints], seed: int, *, quick: bool) -> Workload:
    edges = graphs.grid(8, both_ways=True) if quick else full(seed)
    rows = graphs.weighted(edges, 100, seed)
    load = Batch("load", {"start": np.zeros((1, 1), np.int64), "edge": rows})
    return Workload(SHORTEST, load, _flicker(rows, 1, 3 if quick else 50, seed))


_SHORTEST = (
    Case(
        "paths-grid",
        "distances from one node of a grid of 120 by 120; one edge deleted, then inserted again",
        partial(_paths, lambda _seed: graphs.grid(120, both_ways=True)),
        (Entry(AUTO), Entry(RECOMPUTE, steps=10), Entry(PATHWAY, runs=3)),
    ),
    Case(
        "paths-random",
        "distances from one node over 100,000 random edges; one edge deleted, then inserted again",
        partial(_paths, lambda seed: graphs.random_graph(25_000, 100_000, seed)),
        (Entry(AUTO), Entry(RECOMPUTE, steps=10), Entry(PATHWAY, runs=3)),
    ),
)


# Sliding windows

_OFTEN = ("auto", "recompute", "expiry", "support")  # what the targets ask for, and what auto may choose
_EXPIRIES = 3


def slide_windows(rules: Rules, relation: str, rows: Ints, size: int, slide: int) -> Workload:
    """Return a stream with a fact a second: a full window, slides with new facts, and some without."""
    stamped = np.column_stack((np.arange(1, len(rows) + 1), rows))
    load = Batch("load", {relation: stamped[:size]}, time=size)
    steps = [
        Batch("slide", {relation: stamped[at : at + slide]}, time=at + slide)
        for at in range(size, len(stamped) - slide + 1, slide)
    ]
    end = steps[-1].time or 0
    steps += [Batch("expire", time=end + slide * count) for count in range(1, _EXPIRIES + 1)]
    return Workload(rules, load, tuple(steps))


def _window(
    rules: Callable[[int, int], Rules],
    relation: str,
    sizes: tuple[int, int, int],
    shape: str,
    seed: int,
    *,
    quick: bool,
) -> Workload:
    size, slide, nodes = sizes
    if quick:
        size, slide, nodes = 8 * (size // slide), 8, max(nodes * 8 // slide, 30)
    # It moves until nothing of the first window is left, so that dead rows are swept on the way, as in a long stream.
    total = size + (3 * slide if quick else size)
    rows = graphs.random_graph(nodes, total, seed, acyclic=shape in ("down", "up"))
    if shape == "down":  # citations lead back in time
        rows = rows[:, ::-1]
    if shape == "priced":
        rows = graphs.weighted(rows, 100, seed)
    return slide_windows(rules(size, slide), relation, rows, size, slide)


def _window_cases() -> tuple[Case, ...]:
    every = tuple(Entry(Contestant("whorl", name), runs=None if name in _OFTEN else 2) for name in STRATEGIES)
    out: list[Case] = []
    # Sparse windows are large, so that a slide measures the engine and not the way in: for containment and cheapest
    # paths as large as those that were published, for components a fiftieth of it. Dense ones have as many rows.
    for name, rules, relation, shape, sparse, dense in (
        ("containment", containment, "part", "up", (200_000, 10_000, 400_000), (4_000, 200, 2_000)),
        ("cheapest", cheapest, "ride", "priced", (10_000, 1_000, 20_000), (600, 60, 300)),
        ("components", components, "relates", "any", (80_000, 2_000, 160_000), (8_000, 200, 2_000)),
        ("ranking", ranking, "pub", "down", (10_000, 1_000, 20_000), (1_000, 100, 400)),
    ):
        for density, (size, slide, nodes) in (("sparse", sparse), ("dense", dense)):
            title = f"{name} over a window of {size:,} facts that slides by {slide:,}, {nodes:,} nodes ({density})"
            build = partial(_window, rules, relation, (size, slide, nodes), shape)
            out.append(Case(f"window-{name}-{density}", title, build, every))
    return tuple(out)


# Cost grows with the change

_LENGTH = 45  # nodes of a chain: 990 rows of closure


def _growth(count: int, seed: int, *, quick: bool) -> Workload:
    """Return closures of many chains; each step lets one chain grow by a node, and takes it back."""
    count, length = (3, 10) if quick else (count, _LENGTH)
    rng = np.random.default_rng(seed)
    steps: list[Batch] = []
    for at in rng.choice(count, min(count, 50), replace=False).tolist():
        edge = {"edge": np.array([[(at + 1) * length - 1, count * length]])}
        steps += [Batch("insert", inserts=edge), Batch("delete", deletes=edge)]
    return Workload(CLOSURE, _loaded(graphs.chains(count, length)), tuple(steps))


_GROWTH = tuple(
    Case(
        f"growth-{size}",
        f"one edge that adds {_LENGTH} rows, into a closure of {rows} rows",
        partial(_growth, count),
        (Entry(AUTO),),
    )
    for size, rows, count in (("100k", "0.1 million", 100), ("1m", "1 million", 1_000), ("10m", "10 million", 10_000))
)

CASES: tuple[Case, ...] = (*_CLOSURES, *_CHANGES, *_SHORTEST, *_window_cases(), *_GROWTH)
