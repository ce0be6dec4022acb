"""Some proof, quickly: from each row on to a derivation whose rows have smaller ranks.

The strategy `support` keeps a rank with every row, not below the ranks of the rows it is derived from, and of rows of
its own rank it uses older ones; so there is always a way down, and it ends. Other labels may mean something else; but
whatever they mean, a descent that ends is a proof. Where labels lead nowhere, ranks are made: rows that rules derive
are derived once more under `support`, beside the state, until those asked for have appeared; for other strata, which
hold far fewer derivations, heights inside the stratum serve.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from whorl.kernel.operators.pipeline import State
from whorl.kernel.partition import Partition
from whorl.kernel.proofs.derivations import Derivation, Key
from whorl.kernel.proofs.search import Derivations, Found, Graph, reached
from whorl.kernel.state.relation import Ints, StoredRelation
from whorl.kernel.strategies.stratum import Stratum
from whorl.kernel.strategies.support import Support
from whorl.physical.plan import PhysicalStratum


class Ranks:
    """The ranks of rows, by stratum."""

    def __init__(self, derivations: Derivations, *, kept: bool) -> None:
        """Take the labels that are ``kept`` for ranks, or make ranks."""
        self._kept = kept
        self._derivations = derivations
        self._partition = derivations.partition
        self._labels: dict[str, Ints] = {}
        self._wanted: dict[int, dict[Key, None]] = defaultdict(dict)
        self._graphs: dict[int, Graph] = {}

    def ensure(self, keys: Iterable[Key]) -> None:
        """Make sure that the ranks of rows are known, and those of rows that lead to them."""
        missing: dict[int, PhysicalStratum] = {}
        for key in keys:
            stratum = self._derivations.stratum(key[0])
            if stratum is None or not stratum.recursive or stratum.kind != "rows":
                continue
            stored = self._partition.state.relations[key[0]]
            if self._kept and len(stored.labels) >= stored.count:
                if key[0] not in self._labels:
                    self._labels[key[0]] = stored.labels >> 32
            elif self.of(key) is None:
                self._wanted[stratum.number][key] = None
                missing[stratum.number] = stratum
        for number, stratum in missing.items():
            self._labels.update(rank_again(stratum, self._partition, list(self._wanted[number])))

    def of(self, key: Key) -> int | None:
        """Return the rank of a derived row; None if it has none, or it is not known yet."""
        stratum = self._derivations.stratum(key[0])
        assert stratum is not None, "base facts need no rank"
        if not stratum.recursive:
            return 0
        if stratum.kind != "rows":
            return self._height(key, stratum)
        if key[0] not in self._labels:
            return None
        rank = int(self._labels[key[0]][key[1]])
        return None if rank < 0 else rank

    def _height(self, key: Key, stratum: PhysicalStratum) -> int | None:
        if stratum.number not in self._graphs:
            derivations = self._derivations
            self._graphs[stratum.number] = Graph(derivations, lambda k: derivations.stratum(k[0]) is not stratum, None)
        graph = self._graphs[stratum.number]
        frontier = [key]
        while frontier:
            frontier = graph.expand(frontier)
        return graph.heights.get(key)


class _Appeared(Exception):
    """All rows that are looked for have been derived."""


class _Until(Support):
    """Derives a stratum until some rows have appeared."""

    algebra = None

    def __init__(self, stratum: Stratum, wanted: dict[str, Ints]) -> None:
        super().__init__(stratum)
        self._left = wanted

    def accept(self, rule: int, chunk: Ints) -> Ints:
        """Make the rows of a chunk alive; stop if nothing more is looked for."""
        fresh = super().accept(rule, chunk)
        name = self.stratum.rules[rule].relation
        if name in self._left:
            relation = self.stratum.relation(name)
            found = relation.find(self._left[name])
            there = found >= 0
            there[there] = relation.is_alive(found[there])
            self._left[name] = np.ascontiguousarray(self._left[name][~there])
            if not any(len(rows) for rows in self._left.values()):
                raise _Appeared
        return fresh


def rank_again(stratum: PhysicalStratum, partition: Partition, wanted: Sequence[Key]) -> dict[str, Ints]:
    """Return ranks for rows of a stratum that keeps none, by deriving it anew beside the state; -1 where unknown.

    The run is the same each time, as far as it goes; so ranks do not change when it goes further for other rows.
    """
    state = partition.state
    own = {name: StoredRelation(name, state.relations[name].types) for name in stratum.relations}
    beside = State({**state.relations, **own}, state.dictionary, state.functions, owner=state.owner)
    plan = replace(stratum, strategy="support")
    rows = {
        name: state.relations[name].read(np.array([number for other, number in wanted if other == name], np.int64))
        for name in stratum.relations
    }
    with suppress(_Appeared):
        _Until(Stratum(plan, dict(partition.plan.relations), beside, partition.limits), rows).step()
    ranks: dict[str, Ints] = {}
    for name, again in own.items():
        stored = state.relations[name]
        alive = stored.alive()
        found = again.find(stored.read(alive))
        known = found >= 0
        ranks[name] = np.full(stored.count, -1, np.int64)
        ranks[name][alive[known]] = again.labels[found[known]] >> 32
    return ranks


def search_ranks(derivations: Derivations, root: Key) -> Found | None:
    """Return a proof, not always a shortest one; None if a row has none."""
    return _descend(derivations, root, Ranks(derivations, kept=True)) or _descend(
        derivations, root, Ranks(derivations, kept=False)
    )


def _descend(derivations: Derivations, root: Key, ranks: Ranks) -> Found | None:
    """Choose for each row a derivation of smaller ranks; None if a row has none."""
    best: dict[Key, Derivation | None] = {}
    layer = [root]
    while layer:
        ways: dict[Key, tuple[int, Derivation]] = {}
        ranks.ensure(layer)
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
            if rank is None or not (derivation.rule is None or _is_before(premise, key, ranks)):
                return None
            largest = max(largest, rank)
    return largest


def _is_before(premise: Key, key: Key, ranks: Ranks) -> bool:
    """Whether a row has a smaller rank than another, or the same and, in the same relation, a smaller number."""
    rank, own = ranks.of(premise), ranks.of(key)
    if rank is None or own is None:
        return False
    return rank < own or (rank == own and premise[0] == key[0] and premise[1] < key[1])


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
