"""`pf`: propagate and filter at once. Before a doubtful row falls, a proof of it is looked for.

A row is doubtful if any derivation of it used something that went. The search goes backwards from the doubtful rows:
what derives them, what derives that, until derivations are reached that need nothing of the stratum itself; it stops as
soon as every doubtful row is proved. Rows proved stay proved for the epoch. What has no proof falls, for good: nothing
has to be derived again.

Cost of a deletion: the derivations that used what went or fell, and the search for a proof of each row they support;
little where proofs are short, much in large cycles.
"""

from __future__ import annotations

import numpy as np

from whorl.kernel.state.relation import Ints, Moves
from whorl.kernel.strategies.fixpoint import Rows
from whorl.kernel.strategies.rederive import Mask, Rederive

Node = tuple[str, int]


class ProveFirst(Rederive):
    """Propagation with a filter."""

    def follow_changes(self) -> None:
        """Go through the phases with nothing proved yet."""
        self._proved: set[Node] = set()
        super().follow_changes()

    def renumbered(self, _name: str, _moved: Moves) -> None:
        """Nothing is kept by number from epoch to epoch."""

    def saved(self, name: str, numbers: Ints) -> Mask:
        """Tell which rows have a proof."""
        goals = [(name, number) for number in numbers.tolist()]
        search = _Search(self, self._proved, goals)
        search.run()
        return np.array([goal in self._proved for goal in goals], np.bool_)

    def bring_back(self, fallen: Rows) -> Rows:
        """Return nothing: what fell had no proof. Where rows travel, it had none here, and is looked at again."""
        return super().bring_back(fallen) if self.stratum.plan.imports else self.nothing()


class _Search:
    """A search for proofs of some rows: alternatives of derivations, and what each still waits for."""

    def __init__(self, strategy: ProveFirst, proved: set[Node], goals: list[Node]) -> None:
        self._strategy = strategy
        self._proved = proved
        self._open = {goal for goal in goals if goal not in proved}
        self._seen = set(self._open)
        self._waiting: dict[Node, list[_Derivation]] = {}

    def run(self) -> None:
        """Look back, layer by layer, until every goal is proved or nothing is left to look at."""
        layer = set(self._open)
        while layer and self._open:
            layer = self._expand(layer)

    def _expand(self, layer: set[Node]) -> set[Node]:
        following: set[Node] = set()
        for name in self._strategy.stratum.plan.relations:
            rows = sorted(number for owner, number in layer if owner == name and (name, number) not in self._proved)
            for rule, chunk in self._strategy.supports(name, np.array(rows, np.int64)):
                places = self._strategy.stratum.inside_premises(rule)
                for line in chunk.tolist():
                    head = (name, rows[line[0]])
                    needed = {(other, line[1 + at]) for at, other in places}
                    following |= self._derive(head, needed)
        return {node for node in following if node not in self._proved}

    def _derive(self, head: Node, needed: set[Node]) -> set[Node]:
        """Take a derivation into account; return the rows that it makes interesting."""
        if head in self._proved:
            return set()
        missing = needed - self._proved
        if not missing:
            self._prove(head)
            return set()
        derivation = _Derivation(head, len(missing))
        for node in missing:
            self._waiting.setdefault(node, []).append(derivation)
        fresh = missing - self._seen
        self._seen |= fresh
        return fresh

    def _prove(self, node: Node) -> None:
        ready = [node]
        while ready:
            node = ready.pop()
            if node in self._proved:
                continue
            self._proved.add(node)
            self._open.discard(node)
            for derivation in self._waiting.pop(node, ()):
                derivation.missing -= 1
                if not derivation.missing:
                    ready.append(derivation.head)


class _Derivation:
    """A derivation that waits for proofs of the rows it uses."""

    __slots__ = ("head", "missing")

    def __init__(self, head: Node, missing: int) -> None:
        self.head = head
        self.missing = missing
