"""All that a row follows from: its derivations, those of the rows they use, and so on down to base facts.

Nodes are numbered, the row itself is 0. A base fact is a leaf; another node has ways, each a set of nodes that together
derive it. Circles are part of the graph; what is derivable is what can be built from the leaves up.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from whorl.diagnostics.errors import UserError
from whorl.kernel.partition import Partition
from whorl.kernel.proofs.derivations import Key
from whorl.kernel.proofs.search import Derivations

DERIVATIONS = 200_000  # that are gathered for one question
Leaves = frozenset[int]
Way = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Ancestry:
    """The graph of one row: the key of each node, and its ways; those of a leaf are none."""

    keys: tuple[Key, ...]
    ways: tuple[tuple[Way, ...], ...]
    leaves: Leaves

    def users(self) -> list[list[tuple[int, Way]]]:
        """Return for each node the ways that use it, with what they derive."""
        users: list[list[tuple[int, Way]]] = [[] for _ in self.keys]
        for node, ways in enumerate(self.ways):
            for way in ways:
                for premise in way:
                    users[premise].append((node, way))
        return users


def gather(partition: Partition, root: Key, shown: str, budget: int = DERIVATIONS) -> Ancestry:
    """Return what a row that is alive follows from; refuse if that is too much. ``shown`` names the row."""
    derivations = Derivations(partition, contributions=budget)
    numbers: dict[Key, int] = {root: 0}
    ways: list[dict[Way, None]] = [{}]
    leaves: set[int] = set()
    layer, seen = [root], 0
    while layer:
        following: list[Key] = []
        for key in layer:
            if derivations.stratum(key[0]) is None:
                leaves.add(numbers[key])
        for key, derivation in derivations.find(layer):
            seen += 1 + len(derivation.premises) // 8 + derivation.left_out
            if seen > budget:
                raise UserError("E652", None, row=shown, limit=budget)
            for premise in derivation.premises:
                if premise not in numbers:
                    numbers[premise] = len(ways)
                    ways.append({})
                    following.append(premise)
            way = tuple(sorted({numbers[premise] for premise in derivation.premises}))
            if numbers[key] not in way:
                ways[numbers[key]][way] = None
        layer = following
    return Ancestry(tuple(numbers), tuple(tuple(each) for each in ways), frozenset(leaves))


class Builder:
    """Builds proofs from leaves up."""

    def __init__(self, ancestry: Ancestry) -> None:
        self._ancestry = ancestry
        self._users = ancestry.users()
        self._given = [(node, way) for node, ways in enumerate(ancestry.ways) for way in ways if not way]

    def proof(self, allowed: Iterable[int]) -> Leaves | None:
        """Return the leaves of a proof of least height that uses some leaves only, None if there is none."""
        chosen: dict[int, Way] = {}
        queue: deque[int] = deque()
        for leaf in allowed:
            chosen[leaf] = ()
            queue.append(leaf)
        for node, way in self._given:
            chosen[node] = way
            queue.append(node)
        while queue and 0 not in chosen:
            for node, way in self._users[queue.popleft()]:
                if node not in chosen and all(premise in chosen for premise in way):
                    chosen[node] = way
                    queue.append(node)
        return self._leaves_of(chosen) if 0 in chosen else None

    def _leaves_of(self, chosen: dict[int, Way]) -> Leaves:
        seen, stack = {0}, [0]
        while stack:
            for premise in chosen[stack.pop()]:
                if premise not in seen:
                    seen.add(premise)
                    stack.append(premise)
        return self._ancestry.leaves & seen

    def minimal(self, leaves: Leaves) -> Leaves:
        """Return a proof within the leaves of a proof from which none can be left out."""
        kept = leaves
        for leaf in sorted(leaves, reverse=True):
            if leaf in kept:
                smaller = self.proof(kept - {leaf})
                kept = kept if smaller is None else smaller
        return kept

    def without(self, gone: Iterable[int]) -> Leaves | None:
        """Return a minimal proof that does without some leaves, None if there is none."""
        found = self.proof(sorted(self._ancestry.leaves.difference(gone)))
        return None if found is None else self.minimal(found)


def longest_life(ancestry: Ancestry, end: Callable[[Key], float]) -> tuple[float, Sequence[int]] | None:
    """Return until when a row can be derived if leaves end, and the leaves that bound it; None if it has no proof.

    A proof ends with the first of its leaves, a row with the last of its proofs. So leaves are taken in the order of
    their ends, the last one first, until the row is derived.
    """
    builder = Builder(ancestry)
    ends = {leaf: end(ancestry.keys[leaf]) for leaf in ancestry.leaves}
    distinct = sorted(set(ends.values()), reverse=True)
    low, high = 0, len(distinct) - 1
    if builder.proof(sorted(ancestry.leaves)) is None:
        return None
    if not distinct or builder.proof(()) is not None:
        return float("inf"), ()
    while low < high:  # the first end down to which leaves suffice
        middle = (low + high) // 2
        if builder.proof(sorted(leaf for leaf in ends if ends[leaf] >= distinct[middle])) is None:
            low = middle + 1
        else:
            high = middle
    allowed = frozenset(leaf for leaf in ends if ends[leaf] >= distinct[low])
    found = builder.proof(sorted(allowed))
    assert found is not None, "the search ends where leaves suffice"
    bounding = [leaf for leaf in sorted(builder.minimal(found)) if ends[leaf] == distinct[low]]
    return distinct[low], bounding
