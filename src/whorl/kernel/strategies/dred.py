"""`dred`: over-delete, then derive again. No proof is kept; the number of derivations without recursion is.

A row is doubtful if any derivation of it used something that went. It falls at once, unless a rule that reads nothing
of the stratum itself still derives it: such derivations are counted, and a positive count proves survival.

With `min` or `max` in recursion only the best row of each group is alive, and a better value that takes its place is no
deletion. Where no derivation ever was better than a row of the stratum that it used, a best row rests on derivations
of its own value, and only their loss makes it doubtful. Else a value may have improved through itself, and every
derivation into a group counts.

Cost of a deletion: all derivations that used what went or fell, and those of what fell.
"""

from __future__ import annotations

import numpy as np

from whorl.kernel.state.relation import Ints, Moves
from whorl.kernel.strategies.changes import changed_derivations
from whorl.kernel.strategies.counting import Counts
from whorl.kernel.strategies.fixpoint import Rows
from whorl.kernel.strategies.rederive import Mask, Rederive
from whorl.kernel.strategies.stratum import Entry, Stratum


class Dred(Rederive):
    """Delete and rederive."""

    def __init__(self, stratum: Stratum) -> None:
        super().__init__(stratum)
        self._counts = Counts(stratum)
        self._exits = frozenset(
            rule
            for rule in range(len(stratum.rules))
            if stratum.rules[rule].relation not in stratum.best
            and not any(entry.inside for entry in stratum.entries if entry.rule == rule)
        )
        self._improving = not stratum.comparable_best() or bool(stratum.plan.imports)
        self.trace = bool(stratum.best) and not self._improving

    def resume(self) -> None:
        """Go on from the rows and counts that were saved; a best value may have improved through itself."""
        self.stratum.resume()
        self.fresh = False
        self._improving = True

    def offers(self, _rule: int, _batch: Ints, _first: int) -> None:
        """Offer no label: the rows that derivations use are only looked at."""

    def start(self, *, plain: bool = False) -> None:
        """Derive everything, and count the derivations without recursion."""
        self._counts.clear()
        super().start(plain=plain)
        self._counts.touched()

    def renumbered(self, _name: str, _moved: Moves) -> None:
        """Find the best rows again; counts are labels and move with their rows."""
        self.stratum.resume()

    def accept(self, rule: int, chunk: Ints) -> Ints:
        """Make rows alive; count if the rule has no recursion."""
        if rule in self._exits:
            name = self.stratum.rules[rule].relation
            rows = np.ascontiguousarray(chunk[:, : self.stratum.relation(name).width])
            self._counts.add(rule, rows, 1)
            return self.stratum.relation(name).add(rows)
        if self.stratum.best and not self._improving:
            self._improving = self.stratum.improves(rule, chunk)
        return super().accept(rule, chunk)

    def follow_changes(self) -> None:
        """Count first, then go through the four phases."""
        doubtful = self.nothing()
        counted = self.nothing()
        for entry in self.stratum.entries:
            if entry.rule in self._exits:
                for chunk, weight in changed_derivations(self.stratum, entry):
                    self._counts.add(entry.rule, chunk, weight)
        for name, numbers, counts in self._counts.touched():
            relation = self.stratum.relation(name)
            lost = numbers[(counts == 0) & relation.is_alive(numbers)]
            doubtful[name].append(relation.mark(lost))
            counted[name].append(numbers[counts > 0])
        self._proved_by_count = counted
        self.replace(doubtful)

    def enter_inputs(self, grown: Rows) -> None:
        """Make counted rows alive, and derive what else the changed inputs lead to."""
        for name, parts in self._proved_by_count.items():
            for numbers in parts:
                grown[name].append(self.stratum.relation(name).revive(numbers))
        super().enter_inputs(grown)

    def doubt(self, entry: Entry, gone: Ints, doubtful: Rows, whom: int | None = None) -> None:
        """Collect the rows that a derivation with one of the ``gone`` rows supports."""
        if entry.rule not in self._exits:
            super().doubt(entry, gone, doubtful, whom)

    def follow(self, entry: Entry, numbers: Ints, grown: Rows) -> None:
        """Derive what rows lead to; rules without recursion have been counted."""
        if entry.rule not in self._exits:
            super().follow(entry, numbers, grown)

    def holders(self, rule: int, chunk: Ints) -> Ints:
        """Return the rows that derivations support: the row derived, or whatever row is best in its group."""
        best = self.stratum.best.get(self.stratum.rules[rule].relation)
        return best.holders(chunk) if best is not None and self._improving else super().holders(rule, chunk)

    def saved(self, name: str, numbers: Ints) -> Mask | None:
        """Tell which rows a rule without recursion still derives."""
        if name in self.stratum.best:
            return None
        kept: Mask = self.stratum.relation(name).labels[numbers] > 0
        return kept

    def revive(self, name: str, numbers: Ints) -> Ints:
        """Make rows alive again that have a derivation; groups get the best that still follows."""
        return self._choose(name, numbers) if name in self.stratum.best else super().revive(name, numbers)

    def _choose(self, name: str, numbers: Ints) -> Ints:
        stratum = self.stratum
        best = stratum.best[name]
        groups = np.empty((1, 0), np.int64)  # without group columns there is one group
        if best.group:
            groups = np.unique(stratum.relation(name).read(numbers)[:, best.group], axis=0)
        chosen: list[Ints] = []
        for _rule, part, chunk in self.derivations_into(name, groups):
            rows = np.insert(part, best.column, chunk[:, 0], axis=1)
            chosen.append(best.improve(np.ascontiguousarray(rows)))
        return np.concatenate(chosen) if chosen else np.empty(0, np.int64)
