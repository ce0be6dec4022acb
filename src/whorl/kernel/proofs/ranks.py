"""Some proof, quickly: from each row on to a derivation whose rows have smaller ranks.

The strategy `support` keeps a rank with every row, above the ranks of the rows it was derived from; so a derivation of
smaller ranks always exists, and going down the ranks ends. Where a stratum keeps no ranks, they are made: rows that
rules derive are derived once more under `support`, beside the state; for other strata, which hold far fewer
derivations, heights inside the stratum serve.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from whorl.kernel.operators.pipeline import State
from whorl.kernel.partition import Partition
from whorl.kernel.proofs.derivations import Derivation, Key
from whorl.kernel.proofs.search import Derivations, Found, Graph, reached
from whorl.kernel.state.relation import Ints, StoredRelation
from whorl.kernel.strategies import build_strategy
from whorl.kernel.strategies.stratum import Stratum
from whorl.physical.plan import PhysicalStratum


class Ranks:
    """The ranks of rows, by stratum."""

    def __init__(self, derivations: Derivations) -> None:
        self._derivations = derivations
        self._partition = derivations.partition
        self._labels: dict[str, Ints] = {}
        self._graphs: dict[int, Graph] = {}

    def of(self, key: Key) -> int | None:
        """Return the rank of a derived row; None if it has no proof."""
        stratum = self._derivations.stratum(key[0])
        assert stratum is not None, "base facts need no rank"
        if not stratum.recursive:
            return 0
        if stratum.kind == "rows" and key[1] >= 0:
            return int(self._ranks(key[0], stratum)[key[1]])
        return self._height(key, stratum)

    def _ranks(self, relation: str, stratum: PhysicalStratum) -> Ints:
        if relation not in self._labels:
            if stratum.strategy == "support":
                for name in stratum.relations:
                    self._labels[name] = self._partition.state.relations[name].labels >> 32
            else:
                self._labels.update(rank_again(stratum, self._partition))
        return self._labels[relation]

    def _height(self, key: Key, stratum: PhysicalStratum) -> int | None:
        if stratum.number not in self._graphs:
            derivations = self._derivations
            self._graphs[stratum.number] = Graph(derivations, lambda k: derivations.stratum(k[0]) is not stratum, None)
        graph = self._graphs[stratum.number]
        frontier = [key]
        while frontier:
            frontier = graph.expand(frontier)
        return graph.heights.get(key)


def rank_again(stratum: PhysicalStratum, partition: Partition) -> dict[str, Ints]:
    """Return ranks for the rows of a stratum that keeps none, by deriving them anew beside the state."""
    state = partition.state
    own = {name: StoredRelation(name, state.relations[name].types) for name in stratum.relations}
    beside = State({**state.relations, **own}, state.dictionary, state.functions, owner=state.owner)
    plan = replace(stratum, strategy="support")
    again_here = Stratum(plan, dict(partition.plan.relations), beside, partition.limits)
    build_strategy(again_here, partition.plan.logical).step()
    ranks: dict[str, Ints] = {}
    for name, again in own.items():
        stored = state.relations[name]
        alive = stored.alive()
        ranks[name] = np.zeros(stored.count, np.int64)
        ranks[name][alive] = again.labels[again.find(stored.read(alive))] >> 32
    return ranks


def search_ranks(derivations: Derivations, root: Key) -> Found | None:
    """Return a proof, not always a shortest one; None if a row has none."""
    ranks = Ranks(derivations)
    best: dict[Key, Derivation | None] = {}
    layer = [root]
    while layer:
        ways: dict[Key, tuple[int, Derivation]] = {}
        for key, derivation in derivations.find(layer):
            rank = _largest(key, derivation, ranks, derivations)
            if rank is not None and (key not in ways or rank < ways[key][0]):
                ways[key] = (rank, derivation)
        for key in layer:
            derived = derivations.stratum(key[0]) is not None
            if derived and key not in ways:
                return None
            best[key] = ways[key][1] if derived else None
        used = (premise for _rank, way in ways.values() for premise in way.premises)
        layer = [key for key in dict.fromkeys(used) if key not in best]
    chosen = reached(root, best)
    return Found(root, chosen, _heights(root, chosen), shortest=False)


def _largest(key: Key, derivation: Derivation, ranks: Ranks, derivations: Derivations) -> int | None:
    """Return the largest rank of a row's own stratum that a derivation uses, None if it does not lead down."""
    stratum = derivations.stratum(key[0])
    largest = -1
    for premise in derivation.premises:
        if derivations.stratum(premise[0]) is stratum:
            rank = ranks.of(premise)
            if rank is None:
                return None
            largest = max(largest, rank)
    if largest < 0 or derivation.rule is None:
        return largest
    own = ranks.of(key)
    return largest if own is not None and largest < own else None


def _heights(root: Key, chosen: dict[Key, Derivation | None]) -> dict[Key, int]:
    heights: dict[Key, int] = {}
    stack: list[tuple[Key, bool]] = [(root, False)]
    while stack:
        key, ready = stack.pop()
        way = chosen[key]
        if key in heights:
            continue
        if way is None:
            heights[key] = 0
        elif ready:
            heights[key] = way.cost + max((heights[premise] for premise in way.premises), default=0)
        else:
            stack.append((key, True))
            stack.extend((premise, False) for premise in way.premises if premise not in heights)
    return heights
