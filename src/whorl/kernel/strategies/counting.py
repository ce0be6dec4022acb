"""`counting`: keep the number of derivations of each row; a row goes when none is left. For rules without recursion.

Cost: the derivations that come and go.
"""

from __future__ import annotations

import numpy as np

from whorl.kernel.state.distinct import distinct
from whorl.kernel.state.relation import Ints, Moves
from whorl.kernel.strategies.changes import changed_derivations
from whorl.kernel.strategies.fixpoint import Fixpoint
from whorl.kernel.strategies.stratum import Stratum


class Counting:
    """Adds and subtracts derivations."""

    def __init__(self, stratum: Stratum) -> None:
        self._stratum = stratum
        self._counts = Counts(stratum)
        self._all = Fixpoint(stratum)
        self._fresh = True

    def reset(self) -> None:
        """Count again from nothing."""
        self._fresh = True

    def resume(self) -> None:
        """Go on from the rows and labels that were saved."""
        self._stratum.resume()
        self._fresh = False

    def renumbered(self, _name: str, _moved: Moves) -> None:
        """Nothing is kept by number beside the labels."""

    def step(self) -> None:
        """Follow the changes of the inputs."""
        stratum = self._stratum
        if not self._fresh and not stratum.changed():
            return
        if self._fresh:
            self._fresh = False
            self._counts.clear()
            for rule in range(len(stratum.rules)):
                for chunk in self._all.derivations(rule):
                    self._counts.add(rule, chunk, 1)
        else:
            for entry in stratum.entries:
                for chunk, weight in changed_derivations(stratum, entry):
                    self._counts.add(entry.rule, chunk, weight)
        stratum.state.work.rounds += 1
        for name, numbers, counts in self._counts.touched():
            stratum.relation(name).revive(numbers[counts > 0])
            stratum.relation(name).retire(numbers[counts == 0])


class Counts:
    """The number of derivations of each row as its label, and the rows whose number changed."""

    def __init__(self, stratum: Stratum) -> None:
        self._stratum = stratum
        self._touched: dict[str, list[Ints]] = {}
        for name in stratum.plan.relations:
            if name not in stratum.best:
                stratum.relation(name).keep_labels()

    def clear(self) -> None:
        """Let no row have a derivation."""
        self._touched = {}
        for name in self._stratum.plan.relations:
            relation = self._stratum.relation(name)
            if name not in self._stratum.best:
                relation.labels[: relation.count] = 0
                self._touched[name] = [relation.alive()]

    def add(self, rule: int, chunk: Ints, weight: int) -> None:
        """Count the derivations of a chunk of head rows."""
        name = self._stratum.rules[rule].relation
        head = self._stratum.relation(name)
        numbers = head.number(chunk)
        np.add.at(head.labels, numbers, weight)
        self._touched.setdefault(name, []).append(numbers)

    def touched(self) -> list[tuple[str, Ints, Ints]]:
        """Return the rows whose number changed since the last time, with the number."""
        changes: list[tuple[str, Ints, Ints]] = []
        for name, parts in self._touched.items():
            relation = self._stratum.relation(name)
            numbers = distinct(np.concatenate(parts))
            counts = relation.labels[numbers]
            assert not (counts < 0).any(), "a derivation went that never came"
            self._stratum.state.work.labels += len(numbers)
            changes.append((name, numbers, counts))
        self._touched = {}
        return changes
