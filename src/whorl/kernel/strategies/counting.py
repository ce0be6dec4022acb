"""`counting`: keep the number of derivations of each row; a row goes when none is left. For rules without recursion.

Delta rule: for each atom in turn, its changed rows are joined with the atoms before it as they are after the epoch and
those behind it as they were before; each derivation that came or went is met exactly once. A row that appears under a
negation takes derivations away, one that vanishes gives them back, where that changes whether the key is there at all.

Cost: the derivations that come and go.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from whorl.kernel.arrays.rowset import NEW, OLD
from whorl.kernel.operators.pipeline import has_row
from whorl.kernel.state.relation import Ints
from whorl.kernel.strategies.stratum import Entry, Stratum, exact_needs, needs_for
from whorl.logical.plan import AntiJoin
from whorl.syntax import ast


class Counting:
    """Adds and subtracts derivations."""

    def __init__(self, stratum: Stratum) -> None:
        self._stratum = stratum
        self._fresh = True
        for name in stratum.plan.relations:
            stratum.relation(name).keep_labels()

    def reset(self) -> None:
        """Count again from nothing."""
        self._fresh = True

    def step(self) -> None:
        """Follow the changes of the inputs."""
        stratum = self._stratum
        if not self._fresh and not stratum.changed():
            return
        touched: dict[str, list[Ints]] = {name: [] for name in stratum.plan.relations}
        if self._fresh:
            self._start(touched)
        else:
            for entry in stratum.entries:
                for batch, weight in self._changes(entry):
                    needs = exact_needs(stratum, entry, OLD)
                    if not entry.positive:
                        needs[entry.atom] = 0  # the change itself says that the key came or went
                    self._count(entry.rule, stratum.at_atom(entry, trace=False).run(batch, needs), weight, touched)
        stratum.state.work.rounds += 1
        self._publish(touched)

    def _start(self, touched: dict[str, list[Ints]]) -> None:
        """Count every derivation there is."""
        stratum = self._stratum
        self._fresh = False
        for name in stratum.plan.relations:
            relation = stratum.relation(name)
            relation.labels[: relation.count] = 0
            touched[name].append(relation.alive())
        for number in range(len(stratum.rules)):
            needs = needs_for(stratum, number, NEW)
            positive = [entry for entry in stratum.entries if entry.rule == number and entry.positive]
            if not positive:
                line = np.zeros((1, 1), np.int64)
                self._count(number, stratum.at_nothing(number, trace=False).run(line, needs), 1, touched)
                continue
            entry = positive[0]
            pipeline = stratum.at_atom(entry, trace=False)
            for batch in stratum.batches(entry.relation, stratum.relation(entry.relation).alive(), trace=False):
                self._count(number, pipeline.run(batch, needs), 1, touched)

    def _changes(self, entry: Entry) -> Iterator[tuple[Ints, int]]:
        """Yield the changed rows of an entry with the weight they have for the head."""
        stratum = self._stratum
        appeared, vanished = stratum.relation(entry.relation).pending()
        if entry.positive:
            for numbers, weight in ((appeared, 1), (vanished, -1)):
                for batch in stratum.batches(entry.relation, numbers, trace=False):
                    yield batch, weight
            return
        step = stratum.rules[entry.rule].atoms[entry.atom][0]
        assert isinstance(step, AntiJoin)
        for numbers, weight in ((appeared, -1), (vanished, 1)):
            batch = self._flips(entry, step, numbers, weight)
            if len(batch):
                yield batch, weight

    def _flips(self, entry: Entry, step: AntiJoin, numbers: Ints, weight: int) -> Ints:
        """Return one changed row for each key of a negation that came or went with it."""
        relation = self._stratum.relation(entry.relation)
        columns = tuple(i for i, arg in enumerate(step.args) if not isinstance(arg, ast.Anonymous))
        rows = relation.read(numbers)
        if not len(rows):
            return rows
        if not columns and step.args:
            was, now = len(relation.alive(OLD)) > 0, len(relation.alive(NEW)) > 0
            flipped = (now and not was) if weight < 0 else (was and not now)
            return rows[:1] if flipped else rows[:0]
        keys = np.array(columns or (0,), np.int64)
        _unique, first = np.unique(rows[:, keys], axis=0, return_index=True)
        rows = np.ascontiguousarray(rows[first])
        wide = columns or (0,)
        before = has_row(relation, wide, rows, keys, OLD)
        after = has_row(relation, wide, rows, keys, NEW)
        return np.ascontiguousarray(rows[(after & ~before) if weight < 0 else (before & ~after)])

    def _count(self, rule: int, chunks: Iterator[Ints], weight: int, touched: dict[str, list[Ints]]) -> None:
        stratum = self._stratum
        head = stratum.head(rule)
        for chunk in chunks:
            stratum.state.work.derivations += len(chunk)
            numbers = head.number(chunk)
            np.add.at(head.labels, numbers, weight)
            touched[stratum.rules[rule].relation].append(numbers)

    def _publish(self, touched: dict[str, list[Ints]]) -> None:
        for name, parts in touched.items():
            if not parts:
                continue
            relation = self._stratum.relation(name)
            numbers = np.unique(np.concatenate(parts))
            self._stratum.state.work.labels += len(numbers)
            counts = relation.labels[numbers]
            assert not (counts < 0).any(), "a derivation went that never came"
            relation.revive(numbers[counts > 0])
            relation.retire(numbers[counts == 0])
