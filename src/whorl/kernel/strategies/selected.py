"""A recursion that selects: groups whose best rows may have gone are filled anew, and what arrives improves groups.

Rows that were beaten leave no trace, so nobody knows which of them would come back when the best of a group goes. But
whatever comes back was derived from rows that are alive: the group is filled from those. What followed from a value
that is beaten is beaten in turn.

Cost: as in `refill`. Where much changes, most groups are in doubt or improve again and again, and to start from nothing
costs less: all derivations of the stratum. So it is, too, where partitions exchange rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from whorl.kernel.strategies.refill import Refill
from whorl.kernel.strategies.selection import SelectedRows
from whorl.physical.plan import GroupEntry, PhysicalRule

_MUCH = 0.1  # the share of a relation that is much to change at once


class Selected(Refill):
    """Maintains a stratum of which only the best rows are kept."""

    def resume(self) -> None:
        """Go on from the rows that were saved: they tell the best values."""
        super().resume()
        for shown in self.shown.values():
            assert isinstance(shown, SelectedRows), "the stratum selects among all of its rows"
            shown.resume()

    def groups(self, rule: PhysicalRule) -> Sequence[GroupEntry]:
        """Return the entries at the groups of each choice."""
        return rule.at_groups

    def starts_anew(self) -> bool:
        """Whether much changed of something that a rule reads."""
        relations = [self.stratum.relation(entry.relation) for entry in self.outside]
        return any(len(relation.changed()) > _MUCH * relation.count for relation in relations)
