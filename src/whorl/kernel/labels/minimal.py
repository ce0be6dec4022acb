"""The smallest ways to make a positive function true, or false: its minimal sets and its minimal cuts.

In a decision diagram both are paths. A set of variables that makes a positive function true, all others being false,
follows one path to true, and takes the branch `true` at its members; a set whose loss makes it false follows one to
false, and takes the branch `false` at its members. So paths with fewest such branches are the smallest sets, and they
come in order; a set that contains one that came before is not minimal.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from whorl.kernel.labels.diagrams import Diagrams, Function, nodes_of

Names = frozenset[int]
_NEVER = 1 << 60


def minimal_sets(diagrams: Diagrams, function: Function) -> Iterator[Names]:
    """Yield the minimal sets of variables that make a function true, smallest first."""
    return _ascending(diagrams, function, diagrams.true)


def minimal_cuts(diagrams: Diagrams, function: Function) -> Iterator[Names]:
    """Yield the minimal sets of variables without which a function is false, smallest first."""
    return _ascending(diagrams, function, diagrams.false)


def _ascending(diagrams: Diagrams, function: Function, target: Function) -> Iterator[Names]:
    counted = 0 if target == diagrams.true else 1  # which branch takes its variable into the set
    left = _distances(diagrams, function, target, counted)
    if left[function] >= _NEVER:
        return
    found: list[Names] = []
    turn = 0  # settles ties by age: functions have no order
    heap: list[tuple[int, int, Names, Function]] = [(left[function], turn, frozenset(), function)]
    while heap:
        _bound, _turn, names, node = heapq.heappop(heap)
        branch = diagrams.branch(node)
        if branch is None:
            if not any(other <= names for other in found):
                found.append(names)
                yield names
            continue
        name, *children = branch
        for at, child in enumerate(children):
            taken = names | {name} if at == counted else names
            if left[child] < _NEVER:
                turn += 1
                heapq.heappush(heap, (len(taken) + left[child], turn, taken, child))


def _distances(diagrams: Diagrams, function: Function, target: Function, counted: int) -> dict[Function, int]:
    """Return for each node how many variables at least are still taken on the way to a terminal."""
    left = {diagrams.true: _NEVER, diagrams.false: _NEVER, target: 0}
    for node in sorted(nodes_of(function), key=lambda each: -(each.node_level() or 0)):
        children = node.cofactors()
        assert children is not None, "only nodes that test a variable are listed"
        left[node] = min(_NEVER, *(left[child] + (at == counted) for at, child in enumerate(children)))
    return left
