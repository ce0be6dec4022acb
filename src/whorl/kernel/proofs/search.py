"""The search for a shortest proof: from the row backwards, a layer of derivations at a time.

The height of a base fact is 0, that of a derived row one more than its highest premise. Each layer adds the derivations
of the rows that the layer before reached; heights then spread from the facts upwards through what is known. After n
layers every proof of height n or less is in sight, so the search ends as soon as the row has one. Among proofs of equal
height fewer leaves win, then the rule that stands first, then the order of rows; and what holds for a row holds for
every row of its proof.

Each row is looked at once, whatever number of proofs it is part of. If the derivations become too many, ranks lead to a
proof that need not be a shortest one (`whorl.kernel.proofs.ranks`).
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from whorl.kernel.partition import Partition
from whorl.kernel.proofs.cells import CONTRIBUTIONS, CellsFinder
from whorl.kernel.proofs.derivations import (
    Derivation,
    Finder,
    Key,
    Rows,
    RuleFinder,
    hidden_relations,
    plain_rules,
    strata_by_relation,
)
from whorl.kernel.proofs.evaluated import Evaluated
from whorl.model.values import row_key
from whorl.physical.plan import PhysicalStratum

BUDGET = 100_000  # derivations that the search for a shortest proof may look at


class TooMany(Exception):
    """More derivations than the budget allows."""


class Derivations:
    """The derivations of all rows of a partition, by whoever knows them."""

    def __init__(self, partition: Partition, contributions: int = CONTRIBUTIONS) -> None:
        """Name at most so many ``contributions`` of an aggregate that the kernel keeps."""
        self.partition = partition
        self._contributions = contributions
        self.rows = Rows(partition)
        self._strata: dict[str, PhysicalStratum | None] = {**strata_by_relation(partition)}
        self._hidden = hidden_relations(partition)
        self._finders: dict[str, Finder] = {}

    def stratum(self, relation: str) -> PhysicalStratum | None:
        """Return the stratum that derives a relation, None if its rows are base facts."""
        if relation not in self._strata:  # a base relation, or one made for contributions
            self._strata[relation] = self._strata.get(relation.removesuffix("^used").rpartition("^")[0])
        return self._strata[relation]

    def find(self, keys: Iterable[Key]) -> Iterator[tuple[Key, Derivation]]:
        """Yield the derivations of rows, with the row of each."""
        by_relation: dict[str, list[int]] = defaultdict(list)
        for relation, number in keys:
            by_relation[relation].append(number)
        for relation, numbers in by_relation.items():
            if self.stratum(relation) is not None:
                yield from self._finder(relation).find(relation, numbers)

    def recursive(self) -> list[PhysicalStratum]:
        """Return the recursive strata in which values are improved, or that the reference evaluator runs."""
        strata = {id(each): each for each in self._strata.values() if each is not None}
        return [each for each in strata.values() if each.recursive and each.kind not in ("rows", "cells")]

    def replay_rounds(self, stratum: PhysicalStratum) -> None:
        """From now on, derive the rows of a stratum as its rounds did."""
        evaluated = Evaluated(stratum, self.partition, self.rows, self._hidden)
        evaluated.replay_rounds()
        for name in evaluated.names():
            self._finders[name] = evaluated

    def _finder(self, relation: str) -> Finder:
        if relation not in self._finders:
            stratum = self.stratum(relation)
            assert stratum is not None, "base facts have no derivations"
            finder = self._build(stratum)
            names = finder.names() if isinstance(finder, Evaluated) else stratum.relations
            for name in names:
                self._finders[name] = finder
        return self._finders[relation]

    def _build(self, stratum: PhysicalStratum) -> Finder:
        if stratum.kind == "cells":
            return CellsFinder(stratum, self.rows, self._contributions)
        if stratum.kind in ("rows", "best"):
            return RuleFinder(plain_rules(stratum, self.partition), self.partition.state, self._hidden)
        return Evaluated(stratum, self.partition, self.rows, self._hidden)


@dataclass(frozen=True, slots=True)
class Found:
    """A proof: the derivation chosen for every row in it, None for base facts."""

    root: Key
    chosen: dict[Key, Derivation | None]
    heights: dict[Key, int]
    shortest: bool


class Graph:
    """The derivations seen so far, and the smallest height that they give each row."""

    def __init__(self, derivations: Derivations, given: Callable[[Key], bool], budget: int | None) -> None:
        self._derivations = derivations
        self._given = given  # rows that need no proof
        self._left = budget
        self.found: dict[Key, list[Derivation]] = {}
        self.heights: dict[Key, int] = {}
        self._users: dict[Key, list[tuple[Key, Derivation]]] = defaultdict(list)

    def expand(self, keys: Iterable[Key]) -> list[Key]:
        """Look at the derivations of rows; return the rows that come next."""
        layer = [key for key in keys if key not in self.found]
        following: dict[Key, None] = {}
        while layer:
            self.found.update((key, []) for key in layer)
            gathered: dict[Key, None] = {}
            for key, derivation in self._derivations.find(layer):
                self._add(key, derivation)
                if derivation.rule is None:  # contributions belong to the same layer
                    gathered.update(dict.fromkeys(derivation.premises))
            for key in layer:
                if self.heights.get(key) != 1:  # nothing can be shorter
                    for derivation in self.found[key]:
                        following.update(dict.fromkeys(derivation.premises))
            layer = [key for key in gathered if key not in self.found]
        return [key for key in following if key not in self.found and not self._given(key)]

    def _add(self, key: Key, derivation: Derivation) -> None:
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                raise TooMany
        self.found[key].append(derivation)
        for premise in derivation.premises:
            if premise not in self.heights and self._given(premise):
                self.heights[premise] = 0
            self._users[premise].append((key, derivation))
        self._improve(key, derivation)

    def height(self, derivation: Derivation) -> int | None:
        """Return the height that a derivation gives, None if a premise has none yet."""
        highest = 0
        for premise in derivation.premises:
            height = self.heights.get(premise)
            if height is None:
                return None
            highest = max(highest, height)
        return highest + derivation.cost

    def _improve(self, key: Key, derivation: Derivation) -> None:
        height = self.height(derivation)
        queue = [] if height is None else [(height, key)]
        while queue:
            height, key = heapq.heappop(queue)
            if key in self.heights and self.heights[key] <= height:
                continue
            self.heights[key] = height
            for user, use in self._users[key]:
                offered = self.height(use)
                if offered is not None and offered < self.heights.get(user, offered + 1):
                    heapq.heappush(queue, (offered, user))

    def lowest(self, key: Key) -> list[Derivation]:
        """Return the derivations that give a row its height."""
        return [each for each in self.found.get(key, ()) if self.height(each) == self.heights[key]]


def search_layers(derivations: Derivations, root: Key, budget: int | None = BUDGET) -> Found | None:
    """Return a shortest proof, None if no row has one from rows alive; raise TooMany beyond the budget."""
    graph = Graph(derivations, lambda key: derivations.stratum(key[0]) is None, budget)
    if derivations.stratum(root[0]) is None:
        return Found(root, {root: None}, {root: 0}, shortest=True)
    frontier, layers = [root], 0
    while frontier:
        frontier = graph.expand(frontier)
        layers += 1
        if root in graph.heights and graph.heights[root] <= layers:
            break
    if root not in graph.heights:
        return None
    return _choose(graph, root, derivations.rows)


def _choose(graph: Graph, root: Key, rows: Rows) -> Found:
    """Choose for each row among the derivations that give it its height; premises first."""
    leaves: dict[Key, int] = {}
    best: dict[Key, Derivation | None] = {}
    stack: list[tuple[Key, bool]] = [(root, False)]
    while stack:
        key, ready = stack.pop()
        if key in leaves:
            continue
        if graph.heights[key] == 0 and not graph.found.get(key):
            leaves[key], best[key] = 1, None
            continue
        ways = graph.lowest(key)
        if not ready:
            stack.append((key, True))
            stack.extend((premise, False) for way in ways for premise in way.premises if premise not in leaves)
            continue
        counts = [sum(leaves[premise] for premise in way.premises) or 1 for way in ways]
        fewest = min(counts)
        tied = [way for way, count in zip(ways, counts, strict=True) if count == fewest]
        best[key] = tied[0] if len(tied) == 1 else min(tied, key=lambda way: _order(way, rows))
        leaves[key] = fewest
    return Found(root, reached(root, best), graph.heights, shortest=True)


def _order(way: Derivation, rows: Rows) -> tuple[object, ...]:
    origin = -1 if way.rule is None else way.rule.origin
    return origin, tuple(row_key(rows.read(premise)) for premise in way.premises)


def reached(root: Key, best: dict[Key, Derivation | None]) -> dict[Key, Derivation | None]:
    """Return what a proof uses of the derivations chosen, the root first."""
    chosen: dict[Key, Derivation | None] = {}
    queue = [root]
    for key in queue:
        if key in chosen:
            continue
        way = chosen[key] = best[key]
        queue.extend(way.premises if way is not None else ())
    return chosen
