"""Queries for the lowest cost and the fewest hops of paths, all with the same answer, by what they select on the way.

The first is query 2 of REGIONS. Costs and lengths only grow along a path, so a path that has lost in its group need not
be followed: selections end on cycles by themselves, and what selects nothing has to tell that it would go in a circle.
"""

from __future__ import annotations

from whorl.bench.workload import Rules

_LINKS = "RELATION link(X: Integer, Y: Integer, C: Integer).\n"
_ANSWER = """\
best(X, Y, C, L) :- minCost(X, Y, C), minHops(X, Y, L), X != Y.
query best(X, Y, C, L).
"""


def _recursion(path: str) -> str:
    return f"""\
{path}(X, Y, C, L) :- link(X, Y, C), L = 1.
{path}(X, Y, C, L) :- link(X, Z, C0), {path}(Z, Y, C1, L1), C = C0 + C1, L = 1 + L1.
"""


_PRINTED = Rules(
    "cheapest-path",
    _LINKS
    + """\
path(X, Y, P, C, L) :- link(X, Y, C), P = concat([X, Y], nil), L = 1.
path(X, Y, P, C, L) :- link(X, Z, C0), path(Z, Y, P1, C1, L1), C = C0 + C1, P = concat([X], P1), L = 1 + L1.
minCost(X, Y, min<C>) :- path(X, Y, P, C, L).
minHops(X, Y, min<L>) :- path(X, Y, P, C, L).
cheapestPath(X, Y, P, C) :- path(X, Y, P, C, L), minCost(X, Y, C).
fewestHops(X, Y, P, L) :- path(X, Y, P, C, L), minHops(X, Y, L).
query cheapestPath(X, Y, P, C).
query fewestHops(X, Y, P, L).
"""
    + _ANSWER,
    "best",
)
_TWO = Rules(
    "two-selections",
    _LINKS
    + _recursion("path")
    + """\
minCost(X, Y, min<C>) :- path(X, Y, C, L).
minHops(X, Y, min<L>) :- path(X, Y, C, L).
"""
    + _ANSWER,
    "best",
)
_ONE = Rules(
    "one-selection",
    _LINKS
    + _recursion("cheap")
    + _recursion("short")
    + """\
minCost(X, Y, min<C>) :- cheap(X, Y, C, L).
minHops(X, Y, min<L>) :- short(X, Y, C, L).
"""
    + _ANSWER,
    "best",
)
_LEAST = Rules(
    "least",
    _LINKS
    + """\
minCost(X, Y, min<C>) :- link(X, Y, C).
minCost(X, Y, min<C>) :- link(X, Z, C0), minCost(Z, Y, C1), C = C0 + C1.
minHops(X, Y, min<L>) :- link(X, Y, _), L = 1.
minHops(X, Y, min<L>) :- link(X, Z, _), minHops(Z, Y, L1), L = L1 + 1.
"""
    + _ANSWER,
    "best",
)
_NONE = Rules(
    "no-selection",
    _LINKS
    + """\
path(X, Y, P, C, L) :- link(X, Y, C), P = [X, Y], L = 1.
path(X, Y, P, C, L) :- link(X, Z, C0), path(Z, Y, P1, C1, L1), not member(X, P1), C = C0 + C1, P = concat([X], P1),
    L = 1 + L1.
minCost(X, Y, min<C>) :- path(X, Y, P, C, L).
minHops(X, Y, min<L>) :- path(X, Y, P, C, L).
query path(X, Y, P, C, L).
"""
    + _ANSWER,
    "best",
)

QUERIES: dict[str, tuple[Rules, str]] = {
    "none": (_NONE, "every path without a circle: nothing is selected"),
    "one": (_ONE, "a recursion for the lowest cost and one for the fewest hops, each with its own selection"),
    "two": (_TWO, "one recursion with both selections, lowest cost and fewest hops"),
    "least": (_LEAST, "min in the recursion: as one, but rows hold the cost or the length, not both"),
    "printed": (_PRINTED, "query 2 of REGIONS: as two, and each row holds its path"),
}
