"""A recursion that selects: a few rows that arrive are followed, and anything else starts it from nothing.

Rows that were beaten leave no trace, so nobody knows which of them would come back when the best of a group goes. But
what only arrives can only improve a group: the rules are entered at the new rows, and the rounds go on from there, as
if those rows had come late. What followed from a value that is beaten now is beaten in turn.

Where much arrives, most groups improve, some of them again and again, and to start from nothing costs less. So it does
where partitions exchange rows: each improvement would be told, and what it beats taken back.

Cost: the derivations that new rows take part in, or all derivations of the stratum.
"""

from __future__ import annotations

from whorl.kernel.strategies.rounds import Rounds
from whorl.kernel.strategies.selection import SelectedRows
from whorl.kernel.strategies.stratum import Entry, Stratum

_MUCH = 0.1  # the share of a relation that is much to arrive at once


class Selected(Rounds):
    """Derives a stratum of which only the best rows are kept."""

    def __init__(self, stratum: Stratum) -> None:
        super().__init__(stratum)
        self._inside = [entry for entry in stratum.entries if entry.inside]
        self._outside = [entry for entry in stratum.entries if not entry.inside]

    def resume(self) -> None:
        """Go on from the rows that were saved: they tell the best values."""
        super().resume()
        for shown in self.shown.values():
            assert isinstance(shown, SelectedRows), "the stratum selects among all of its rows"
            shown.resume()

    def step(self) -> None:
        """Follow what arrived, or derive everything again."""
        if self.fresh or self.stratum.exchange is not None or any(self._starts_anew(each) for each in self._outside):
            super().step()
        elif self.stratum.changed():
            self.fresh = True  # unless it ends well
            self.fixpoint(self._enter, self._inside)
            self.flush()
            self.fresh = False

    def _starts_anew(self, entry: Entry) -> bool:
        """Whether something that a rule reads was lost, or much arrived."""
        relation = self.stratum.relation(entry.relation)
        appeared, vanished = relation.pending()
        if len(vanished) or (len(appeared) and not entry.positive):
            return True
        return len(appeared) > _MUCH * relation.count

    def _enter(self) -> None:
        """Offer what follows from rows that appeared."""
        for entry in self._outside:
            appeared, _vanished = self.stratum.relation(entry.relation).pending()
            for chunk in self.entered(entry, appeared) if len(appeared) else ():
                self.offer(entry.rule, chunk)
