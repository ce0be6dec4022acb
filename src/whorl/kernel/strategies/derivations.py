"""`derivations`: every derivation of every row is kept, so that deletions look things up instead of joining.

A derivation is stored as a row of its own: the number of the row it derives and the numbers of the rows it uses. What
goes takes along the derivations that used it, found through an index. Without recursion a row falls with its last
derivation. In recursion that is not enough, since rows could keep each other alive in a circle; so rows have ranks, as
under `support`, and a row falls unless a derivation is left whose rows have smaller rank.

Cost of a deletion: the derivations that are lost, and those left of the rows that lost one. Memory: every derivation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from whorl.kernel.arrays import index as index_arrays
from whorl.kernel.arrays.rowset import NEW
from whorl.kernel.state.relation import Ints, Moves, StoredRelation
from whorl.kernel.strategies.fixpoint import Rows
from whorl.kernel.strategies.stratum import Entry, Stratum
from whorl.kernel.strategies.support import Support
from whorl.model.types import Type

_CHUNK = 4096


class Derivations(Support):
    """Sets of derivations, with ranks."""

    algebra = None

    def __init__(self, stratum: Stratum) -> None:
        super().__init__(stratum)
        self.follow_returned = True  # their derivations went when they fell
        self._make_stores()

    def resume(self) -> None:
        """Start anew: sets of derivations are not saved."""

    def _make_stores(self) -> None:
        self._stores = [
            StoredRelation(f"derivations^{rule}", [Type.INTEGER] * (1 + len(self.stratum.premises(rule))))
            for rule in range(len(self.stratum.rules))
        ]

    @property
    def nbytes(self) -> int:
        """The memory that derivations take."""
        return sum(store.nbytes for store in self._stores)

    def start(self, *, plain: bool = False) -> None:
        """Derive everything, and keep how."""
        self._make_stores()
        super().start(plain=plain)
        self._settle()

    def follow_changes(self) -> None:
        """Go through the four phases."""
        super().follow_changes()
        self._settle()

    def _settle(self) -> None:
        for store in self._stores:
            store.settle()

    def renumbered(self, _name: str, _moved: Moves) -> None:
        """Derive again: every derivation names rows by number."""
        self.reset()

    def accept(self, rule: int, chunk: Ints) -> Ints:
        """Keep derivations, and make their rows alive."""
        head = self.stratum.head(rule)
        numbers = head.number(np.ascontiguousarray(chunk[:, : head.width]))
        self._stores[rule].add(np.column_stack((numbers, chunk[:, head.width :])))
        return head.adopt(numbers, self.offers(rule, chunk, head.width))

    def doubt(self, entry: Entry, gone: Ints, doubtful: Rows, _whom: int | None = None) -> None:
        """Take out the derivations that used what went; those who had them are doubtful."""
        if not len(gone):
            return
        name = self.stratum.rules[entry.rule].relation
        head, store = self.stratum.relation(name), self._stores[entry.rule]
        for lost in self._lost_by_use(entry, gone) if entry.positive else self._lost_by_negation(entry, gone):
            self.stratum.state.work.derivations += len(lost)
            heads = np.ascontiguousarray(store.read(store.retire(lost))[:, 0])
            heads = heads[head.is_alive(heads)]
            doubtful[name].append(head.mark(heads))

    def _lost_by_use(self, entry: Entry, gone: Ints) -> Iterator[Ints]:
        """Yield the derivations that used rows at a positive atom."""
        atoms = self.stratum.rules[entry.rule].atoms
        place = sum(1 for _step, positive in atoms[: entry.atom] if positive)
        for chunk in _look_up(self._stores[entry.rule], 1 + place, gone):
            yield np.ascontiguousarray(chunk[:, 1])

    def _lost_by_negation(self, entry: Entry, gone: Ints) -> Iterator[Ints]:
        """Yield the derivations that needed something to be absent."""
        head, store = self.stratum.head(entry.rule), self._stores[entry.rule]
        for chunk in self.joined(entry, gone, self.lost_needs(entry)):
            numbers = head.find(np.ascontiguousarray(chunk[:, : head.width]))
            found = store.find(np.column_stack((numbers, chunk[:, head.width :])))
            yield found[found >= 0]

    def supports(
        self, name: str, numbers: Ints, _inside: int = NEW, _rules: Sequence[int] | None = None
    ) -> Iterator[tuple[int, Ints]]:
        """Yield the derivations kept of rows: the line of the row, then the rows used."""
        for rule, store in enumerate(self._stores):
            if self.stratum.rules[rule].relation != name:
                continue
            for chunk in _look_up(store, 0, numbers):
                self.stratum.state.work.derivations += len(chunk)
                used = store.read(np.ascontiguousarray(chunk[:, 1]))
                used[:, 0] = chunk[:, 0]
                yield rule, used


def _look_up(store: StoredRelation, column: int, numbers: Ints) -> Iterator[Ints]:
    """Yield pairs: the place of a number, and a stored row alive that holds it in a column."""
    batch = np.column_stack((numbers, np.arange(len(numbers))))
    keys, wants = np.zeros(1, np.int64), np.array([1, index_arrays.ROW_NUMBER], np.int64)
    index = store.index((column,))
    state = np.array([0, 0, NEW, 0], np.int64)
    while state[0] < len(batch):
        out = np.empty((_CHUNK, 2), np.int64)
        made = index_arrays.probe(batch, keys, index.arrays(), store.arrays, wants, out, state)
        if made:
            yield out[:made]
