"""Minimal proofs and smallest cuts of a row, from the graph of what it follows from.

A graph of few facts becomes a decision diagram, whose paths are the answers (`whorl.kernel.labels.minimal`). In a
larger one, proofs are found one after another. A cut hits all of them; so sets that hit those known so far are tried,
smallest first, and where a proof avoids such a set, it is one more to hit. Proofs are listed in much the same way: each
that is found is robbed of one fact after the other, until no proof avoids all that is gone.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from whorl.kernel.labels.diagrams import Diagrams, Function, TooManyNodes
from whorl.kernel.labels.minimal import minimal_cuts, minimal_sets
from whorl.kernel.proofs.ancestry import Ancestry, Builder, Leaves

_FACTS = 200  # of a graph that may become a diagram
_NODES = 20_000  # of that diagram
_TRIALS = 1_000  # proofs that are looked for
_IDLE = 30  # attempts in a row that may bring no other proof
_STEPS = 300_000  # of the search for sets that hit


class TooHard(Exception):
    """The answer was not found within the bounds."""


@dataclass(frozen=True, slots=True)
class Found:
    """Sets of leaves, smallest first; `complete` if there are no others."""

    sets: tuple[Leaves, ...]
    complete: bool


def minimal_proofs(ancestry: Ancestry, limit: int, nodes: int = _NODES) -> Found:
    """Return minimal sets of facts from which the row follows."""
    built = _diagram(ancestry, nodes)
    if built is not None:
        found = list(islice(minimal_sets(*built), limit + 1))
        return Found(tuple(found[:limit]), complete=len(found) <= limit)
    return _Proofs(ancestry).some(limit)


def smallest_cuts(ancestry: Ancestry, limit: int, nodes: int = _NODES) -> Found:
    """Return the smallest sets of facts without which the row does not follow; none if it follows from nothing."""
    built = _diagram(ancestry, nodes)
    if built is None:
        return _Cuts(ancestry).smallest(limit)
    found: list[Leaves] = []
    for cut in minimal_cuts(*built):
        if found and len(cut) > len(found[0]):
            break
        if len(found) == limit:
            return Found(tuple(found), complete=False)
        found.append(cut)
    return Found(tuple(found), complete=True)


def _diagram(ancestry: Ancestry, nodes: int) -> tuple[Diagrams, Function] | None:
    """Return the row as a function of its facts, None if that becomes too large."""
    if len(ancestry.leaves) > _FACTS or len(ancestry.leaves) >= nodes:
        return None
    try:
        return _fixpoint(ancestry, Diagrams(nodes))
    except TooManyNodes:
        return None


def _fixpoint(ancestry: Ancestry, diagrams: Diagrams) -> tuple[Diagrams, Function]:
    functions = [diagrams.false] * len(ancestry.keys)
    for leaf in sorted(ancestry.leaves):
        functions[leaf] = diagrams.variable(leaf)
    users = ancestry.users()
    queue = deque(node for node in range(len(ancestry.keys)) if node not in ancestry.leaves)
    waiting = set(queue)
    while queue:
        node = queue.popleft()
        waiting.discard(node)
        before = after = functions[node]
        for way in ancestry.ways[node]:
            product = diagrams.products([[diagrams.true], *([functions[premise]] for premise in way)])[0]
            after = diagrams.plus(after, product)
        if after != before:
            functions[node] = after
            for user, _way in users[node]:
                if user not in waiting:
                    waiting.add(user)
                    queue.append(user)
    return diagrams, functions[0]


class _Proofs:
    """Finds proofs that avoid ever more."""

    def __init__(self, ancestry: Ancestry) -> None:
        self._builder = Builder(ancestry)
        self._found: dict[Leaves, None] = {}
        self._cuts: list[Leaves] = []  # without them there is no proof
        self._trials = 0

    def some(self, limit: int) -> Found:
        """Return minimal proofs: all of them, or as many as wanted."""
        luck = random.Random(0)  # the same question has the same answer
        idle = 0
        while idle < _IDLE and len(self._found) <= limit and self._trials < _TRIALS:
            before = len(self._found)
            self._dive(luck)
            idle = 0 if len(self._found) > before else idle + 1
        complete = idle == _IDLE and self._exhaust(limit)
        found = sorted(self._found, key=lambda each: (len(each), sorted(each)))
        return Found(tuple(found[:limit]), complete=complete and len(found) <= limit)

    def _proof(self, gone: Leaves) -> Leaves | None:
        """Look for a proof without some facts, and keep it."""
        if any(cut <= gone for cut in self._cuts):
            return None
        self._trials += 1
        proof = self._builder.without(gone)
        if proof is None:
            self._cuts.append(gone)
        else:
            self._found[proof] = None
        return proof

    def _dive(self, luck: random.Random) -> None:
        """Take one fact of each proof away before the next is looked for, until there is none: all of them differ."""
        gone: Leaves = frozenset()
        while (proof := self._proof(gone)) is not None and proof:
            gone |= {luck.choice(sorted(proof))}

    def _exhaust(self, limit: int) -> bool:
        """Take facts away in every way that leaves no proof; tell whether that came to an end."""
        stack: list[Leaves] = [frozenset()]
        seen: set[Leaves] = {frozenset()}
        while stack:
            gone = stack.pop()
            proof = next((each for each in self._found if not each & gone), None) or self._proof(gone)
            if len(self._found) > limit or self._trials > _TRIALS or len(seen) > _TRIALS:
                return False
            for leaf in sorted(proof or ()):
                more = gone | {leaf}
                if more not in seen:
                    seen.add(more)
                    stack.append(more)
        return True


class _Cuts:
    """Finds the smallest sets that hit every proof."""

    def __init__(self, ancestry: Ancestry) -> None:
        self._builder = Builder(ancestry)
        self._proofs: list[Leaves] = []
        self._steps = 0

    def smallest(self, limit: int) -> Found:
        """Return the smallest cuts; of size 0 there is none, since the row is there."""
        if not self._learn(frozenset()):
            raise TooHard
        if not self._proofs[0]:
            return Found((), complete=True)
        cuts: list[Leaves] = []
        size = 1
        while True:
            for candidate in self._hitting(size):
                if candidate in cuts:
                    continue
                if self._learn(candidate):  # a proof avoids it: try again with that one to hit
                    break
                if len(cuts) == limit:
                    return Found(tuple(cuts), complete=False)
                cuts.append(candidate)
            else:
                if cuts:
                    return Found(tuple(cuts), complete=True)
                size += 1

    def _learn(self, gone: Leaves) -> bool:
        """Look for a proof without some facts, and keep it; tell whether there is one."""
        proof = self._builder.without(gone)
        if proof is not None:
            self._proofs.append(proof)
            if len(self._proofs) > _TRIALS:
                raise TooHard
        return proof is not None

    def _hitting(self, size: int) -> Iterator[Leaves]:
        """Yield the sets of a size, or smaller ones, that hit every proof known now."""
        return self._extend((), tuple(self._proofs), size)

    def _extend(self, taken: tuple[int, ...], left: Sequence[Leaves], size: int) -> Iterator[Leaves]:
        self._steps += 1
        if self._steps > _STEPS:
            raise TooHard
        if not left:
            yield frozenset(taken)
        elif _disjoint(left, size):
            shortest = min(left, key=len)
            barred: set[int] = set()
            for leaf in sorted(shortest, key=lambda each: (-sum(each in proof for proof in left), each)):
                rest = [proof - barred for proof in left if leaf not in proof]
                barred.add(leaf)
                if all(rest):
                    yield from self._extend((*taken, leaf), rest, size - 1)


def _disjoint(left: Sequence[Leaves], size: int) -> bool:
    """Whether so few of the sets are disjoint that some members might hit them all."""
    covered: set[int] = set()
    count = 0
    for proof in sorted(left, key=len):
        if not covered & proof:
            covered |= proof
            count += 1
            if count > size:
                return False
    return True
