"""`derivations`: every derivation of every row is kept, so that deletions look things up instead of joining.

A derivation is stored as a row of its own: the number of the row it derives and the numbers of the rows it uses. What
goes takes along the derivations that used it, found through an index. Without recursion a row falls with its last
derivation. In recursion that is not enough, since rows could keep each other alive in a circle; so rows have ranks, as
under `support`, and a row falls unless a derivation is left whose rows have smaller rank. Strata with stages need no
ranks: see `whorl.kernel.strategies.staged_derivations`.

Cost of a deletion: the derivations that are lost, and those left of the rows that lost one. Memory: every derivation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from whorl.kernel.arrays.rowset import NEW
from whorl.kernel.state.derivations import KeptDerivations
from whorl.kernel.state.relation import Ints, Moves
from whorl.kernel.strategies.fixpoint import Rows
from whorl.kernel.strategies.rederive import Rederive
from whorl.kernel.strategies.stratum import Entry, Stratum
from whorl.kernel.strategies.support import Support


class Derivations(Support):
    """Sets of derivations, with ranks."""

    algebra = None

    def __init__(self, stratum: Stratum) -> None:
        super().__init__(stratum)
        self.follow_returned = True  # their derivations went when they fell
        self._kept = KeptDerivations([len(stratum.premises(rule)) for rule in range(len(stratum.rules))])

    def resume(self) -> None:
        """Start anew: sets of derivations are not saved."""

    @property
    def nbytes(self) -> int:
        """The memory that derivations take."""
        return self._kept.nbytes

    def start(self, *, plain: bool = False) -> None:
        """Derive everything, and keep how."""
        self._kept.clear()
        super().start(plain=plain)
        self._kept.settle()

    def follow_changes(self) -> None:
        """Go through the four phases."""
        super().follow_changes()
        self._kept.settle()

    def renumbered(self, _name: str, _moved: Moves) -> None:
        """Derive again: every derivation names rows by number."""
        self.reset()

    def accept(self, rule: int, chunk: Ints) -> Ints:
        """Keep derivations, and make their rows alive."""
        head = self.stratum.head(rule)
        numbers = head.number(np.ascontiguousarray(chunk[:, : head.width]))
        self._kept.add(rule, numbers, chunk[:, head.width :])
        return head.adopt(numbers, self.offers(rule, chunk, head.width))

    def doubt(self, entry: Entry, gone: Ints, doubtful: Rows, _whom: int | None = None) -> None:
        """Take out the derivations that used what went; those who had them are doubtful."""
        if not len(gone):
            return
        name = self.stratum.rules[entry.rule].relation
        head = self.stratum.relation(name)
        for lost in lost_derivations(self, self._kept, entry, gone):
            self.stratum.state.work.derivations += len(lost)
            heads = self._kept.retire(entry.rule, lost)
            heads = heads[head.is_alive(heads)]
            doubtful[name].append(head.mark(heads))

    def supports(
        self, name: str, numbers: Ints, _inside: int = NEW, _rules: Sequence[int] | None = None
    ) -> Iterator[tuple[int, Ints]]:
        """Yield the derivations kept of rows: the line of the row, then the rows used."""
        for rule in self.stratum.rules_of(name):
            for chunk in self._kept.of_rows(rule, numbers):
                self.stratum.state.work.derivations += len(chunk)
                yield rule, chunk


def lost_derivations(strategy: Rederive, kept: KeptDerivations, entry: Entry, gone: Ints) -> Iterator[Ints]:
    """Yield the kept derivations that used rows at an atom, or needed them to be absent."""
    stratum = strategy.stratum
    if entry.positive:
        atoms = stratum.rules[entry.rule].atoms
        yield from kept.using(entry.rule, sum(1 for _step, positive in atoms[: entry.atom] if positive), gone)
        return
    head, uses = stratum.head(entry.rule), len(stratum.premises(entry.rule))
    for chunk in strategy.met(entry, gone):
        numbers = head.find(np.ascontiguousarray(chunk[:, : head.width]))
        yield kept.find(entry.rule, numbers, chunk[:, head.width : head.width + uses])
