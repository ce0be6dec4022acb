"""A recursion that selects: groups whose best rows may have gone are filled anew, and what arrives improves groups.

Rows that were beaten leave no trace, so nobody knows which of them would come back when the best of a group goes. But
whatever comes back was derived from rows that are alive: the group is filled from those. What followed from a value
that is beaten is beaten in turn. Where it may not be, since sums of Floats are rounded, it is in doubt as well.

A calculation that leaves its range on the way may do so for a row that is beaten later, which does not matter. So where
one did, the rules are gone through once more when all is derived.

Cost: as in `refill`. Where much changes, most groups are in doubt or improve again and again, and to start from nothing
costs less: all derivations of the stratum. So it is, too, where partitions exchange rows; they derive rows twice where
sums are rounded, the second time with the best values known.
"""

from __future__ import annotations

from collections.abc import Sequence

from whorl.kernel.operators.expressions import OUT_OF_RANGE
from whorl.kernel.strategies.refill import Refill
from whorl.kernel.strategies.selection import SelectedRows
from whorl.physical.plan import GroupEntry, PhysicalRule

_MUCH = 0.1  # the share of a relation that is much to change at once


class Selected(Refill):
    """Maintains a stratum of which only the best rows are kept."""

    def resume(self) -> None:
        """Go on from the rows that were saved: they tell the best values."""
        super().resume()
        for shown in self._selected().values():
            shown.resume()

    def groups(self, rule: PhysicalRule) -> Sequence[GroupEntry]:
        """Return the entries at the groups of each choice."""
        return rule.at_groups

    def starts_anew(self) -> bool:
        """Whether much changed of something that a rule reads."""
        relations = [self.stratum.relation(entry.relation) for entry in self.outside]
        return any(sum(map(len, relation.pending())) > _MUCH * relation.count for relation in relations)

    def step(self) -> None:
        """Follow the changes, or derive everything; what leaves its range counts for the best rows only."""
        with self.stratum.state.faults.ignored(OUT_OF_RANGE) as passed:
            super().step()
        if passed.any:
            for rule in range(len(self.stratum.rules)):
                for _chunk in self.derivations(rule):
                    pass

    def follow_changes(self) -> bool:
        """Bring the stratum up to date; tell whether that went well."""
        if not super().follow_changes():
            return False
        self._follow_beaten()
        return True

    def run(self) -> None:
        """Derive everything."""
        super().run()
        if self.stratum.exchange is None and self.enterable:
            self._follow_beaten()
        elif any(shown.rounded for shown in self._selected().values()):
            self.stratum.clear()
            for shown in self._selected().values():
                shown.clear_rows()
            super().run()

    def _follow_beaten(self) -> None:
        """Keep what followed from rows that were beaten only if it also follows from those that are best."""
        selected = self._selected()
        beaten = {name: rows for name, shown in selected.items() if len(rows := shown.take_beaten())}
        if beaten:
            self.doubt_followers(beaten)
            emptied = {name: shown.empty_followers() for name, shown in selected.items()}
            self.fixpoint(lambda: self.fill(emptied), self.inside)

    def _selected(self) -> dict[str, SelectedRows]:
        shown = {name: rows for name, rows in self.shown.items() if isinstance(rows, SelectedRows)}
        assert len(shown) == len(self.shown), "the stratum selects among all of its rows"
        return shown
