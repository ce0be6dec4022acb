"""Sums and other aggregates in recursion under changes: groups that may have lost something are filled anew.

What stands is a group's contributions. While none is negative, more of them can only improve it. If one is, only the
rounds from nothing say what the sum is, and they are run.

Cost: as in `refill`, and a look at the keys of all contributions. If more changed than there was, all derivations.
"""

from __future__ import annotations

from collections.abc import Sequence

from whorl.kernel.strategies.refill import Refill
from whorl.kernel.strategies.stratum import Stratum
from whorl.logical.plan import Contribution
from whorl.physical.plan import GroupEntry, PhysicalRule


class Filled(Refill):
    """Maintains a stratum whose groups gather contributions."""

    def __init__(self, stratum: Stratum) -> None:
        super().__init__(stratum)
        self._known = False  # whether contributions are there beside the rows

    def resume(self) -> None:
        """Go on from the rows that were saved; the next change starts from nothing."""
        super().resume()
        self._known = False

    def groups(self, rule: PhysicalRule) -> Sequence[GroupEntry]:
        """Return the entry at the columns that are not aggregated."""
        columns = tuple(column for column, arg in enumerate(rule.args) if not isinstance(arg, Contribution))
        return [GroupEntry(columns, rule.at_head)]

    def starts_anew(self) -> bool:
        """Whether contributions are not known or may be negative, or more changed than there is."""
        return not self._known or self._negative() or self._large()

    def follow_changes(self) -> bool:
        """Empty groups and fill them; nothing negative may come."""
        return super().follow_changes() and not self._negative()

    def run(self) -> None:
        """Derive everything."""
        super().run()
        self._known = True

    def _negative(self) -> bool:
        return any(shown.negative for shown in self.shown.values())

    def _large(self) -> bool:
        names = self.stratum.plan.inputs()
        changed = sum(len(rows) for name in names for rows in self.stratum.relation(name).pending())
        return changed > sum(shown.size for shown in self.shown.values())
