"""What a benchmark runs: a program, the facts that are loaded, and the changes that follow.

A `Batch` is one epoch for whoever takes part. Its `kind` says under which name its cost is shown: `load`, `delete`,
`insert`, `slide` (a window moves on and facts arrive), `expire` (a window moves on and nothing arrives), `warm` and
`epoch` (rows come and go, before it counts and after).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from whorl.bench.graphs import Ints


@dataclass(frozen=True, slots=True)
class Rules:
    """A program under a name that the others know it by, and the view whose rows are compared."""

    name: str
    text: str
    view: str


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows that arrive and rows that go, by relation."""

    kind: str
    inserts: Mapping[str, Ints] = field(default_factory=dict)
    deletes: Mapping[str, Ints] = field(default_factory=dict)
    time: int | None = None

    @property
    def size(self) -> int:
        """How many rows arrive."""
        return sum(map(len, self.inserts.values()))


@dataclass(frozen=True, slots=True)
class Workload:
    """A program, what it starts with, and what happens then."""

    rules: Rules
    load: Batch
    steps: tuple[Batch, ...] = ()

    def first(self, steps: int | None) -> Workload:
        """Return the workload with at most so many steps."""
        return self if steps is None else replace(self, steps=self.steps[:steps])


@dataclass(frozen=True, slots=True)
class Spread(Workload):
    """A workload for partitions on a network, with the seconds that a message takes from one to another."""

    latencies: tuple[tuple[float, ...], ...] = ((0.0,),)
    placement: str = "first"

    @property
    def partitions(self) -> int:
        """How many there are."""
        return len(self.latencies)


REGION = Rules(
    "region",
    """\
RELATION sensor(X: Integer, Px: Integer, Py: Integer).
RELATION mainSensorInRegion(Rid: Integer, X: Integer).
RELATION isTriggered(X: Integer).
activeRegion(Rid, X) :- sensor(X, _, _), mainSensorInRegion(Rid, X), isTriggered(X).
activeRegion(Rid, Y) :- sensor(X, Px, Py), sensor(Y, Qx, Qy), isTriggered(X), activeRegion(Rid, X),
    (Px - Qx) * (Px - Qx) + (Py - Qy) * (Py - Qy) < 400.
regionSizes(Rid, count<X>) :- activeRegion(Rid, X).
largestRegion(max<Size>) :- regionSizes(Rid, Size).
largestRegions(Rid) :- regionSizes(Rid, Size), largestRegion(Size).
query activeRegion(Rid, X).
query largestRegions(Rid).
""",
    "activeRegion",
)
REACHABLE = Rules(
    "reachable",
    """\
RELATION link(X: Integer, Y: Integer).
reachable(X, Y) :- link(X, Y).
reachable(X, Y) :- link(X, Z), reachable(Z, Y).
query reachable(X, Y).
""",
    "reachable",
)
CLOSURE = Rules(
    "closure",
    """\
RELATION edge(X: Integer, Y: Integer).
path(X, Y) :- edge(X, Y).
path(X, Y) :- path(X, Z), edge(Z, Y).
query path(X, Y).
""",
    "path",
)
REACH = Rules(
    "reach",
    """\
RELATION start(X: Integer).
RELATION link(X: Integer, Y: Integer).
start(0).
reach(X) :- start(X).
reach(Y) :- reach(X), link(X, Y).
query reach(X).
""",
    "reach",
)
SHORTEST = Rules(
    "shortest",
    """\
RELATION start(X: Integer).
RELATION edge(X: Integer, Y: Integer, Cost: Integer).
dist(X, mmin<D>) :- start(X), D = 0.
dist(Y, mmin<D>) :- dist(X, D1), edge(X, Y, C), D = D1 + C.
query dist(Y, D).
""",
    "dist",
)


def containment(size: int, slide: int) -> Rules:
    """Return: what is part of what, directly or not."""
    text = f"""\
STREAM part(Ts: Timestamp, X: Integer, Y: Integer) WINDOW({size}, {slide}).
within(Ts, X, Y) :- part(Ts, X, Y).
within(Ts, X, Z) :- part(Ts1, X, Y), within(Ts2, Y, Z), largest(Ts, Ts1, Ts2).
query within(_, X, Z).
"""
    return Rules("containment", text, "within")


def cheapest(size: int, slide: int) -> Rules:
    """Return: the cheapest way between any two places."""
    text = f"""\
STREAM ride(Ts: Timestamp, From: Integer, To: Integer, Fare: Integer) WINDOW({size}, {slide}).
best(Ts, P, D, mmin<F>) :- ride(Ts, P, D, F).
best(Ts, P, D, mmin<F>) :- ride(Ts1, P, Q, F1), best(Ts2, Q, D, F2), F = F1 + F2, largest(Ts, Ts1, Ts2).
query best(_, P, D, F).
"""
    return Rules("cheapest", text, "best")


def components(size: int, slide: int) -> Rules:
    """Return: the smallest node that leads to each node."""
    text = f"""\
STREAM relates(Ts: Timestamp, X: Integer, Y: Integer) WINDOW({size}, {slide}).
first(Ts, X, mmin<X>) :- relates(Ts, X, _).
first(Ts, Y, mmin<V>) :- first(Ts1, X, V), relates(Ts2, X, Y), largest(Ts, Ts1, Ts2).
query first(_, Y, V).
"""
    return Rules("components", text, "first")


def ranking(size: int, slide: int) -> Rules:
    """Return: ranks handed on along citations."""
    text = f"""\
STREAM pub(Ts: Timestamp, Paper: Integer, Cited: Integer) WINDOW({size}, {slide}).
ref(Ts, P, count<R>) :- pub(Ts, P, R).
rank(Ts, P, V) :- ref(Ts, P, R), V = 1.0.
rank(Ts, P, sum<V>) :- rank(Ts1, C, W), pub(Ts2, C, P), ref(Ts3, C, R), V = W / R, largest(Ts, Ts1, Ts2, Ts3).
query rank(_, P, S).
"""
    return Rules("ranking", text, "rank")
