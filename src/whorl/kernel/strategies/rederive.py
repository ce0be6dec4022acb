"""Deletion in four phases, shared by the strategies that differ in who is doubtful and what saves a row.

1. Doubt. A row is doubtful if a derivation of it used something that went; labels say for whom that matters.
2. Fall. A doubtful row that nothing saves dies, and makes those derived from it doubtful.
3. Return. Rows that died but still follow from what is left come back.
4. Growth. What the new rows lead to is derived.

Cost: the derivations that used what went or died, and those of the rows that died.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from whorl.kernel.arrays import labels as arithmetic
from whorl.kernel.arrays.rowset import NEW
from whorl.kernel.state.relation import Ints, Moves
from whorl.kernel.strategies.fixpoint import Fixpoint, Rows
from whorl.kernel.strategies.stratum import EITHER, Entry, Stratum, needs_for

Mask = npt.NDArray[np.bool_]
_BATCH = 4096
_NO_OFFER = np.empty(0, np.int64)


class Rederive(Fixpoint):
    """The four phases; a subclass is a strategy."""

    algebra: int | None = None

    def __init__(self, stratum: Stratum) -> None:
        super().__init__(stratum)
        self.fresh = True
        # Whether what follows from rows that came back must be gone through again: labels or other rows may be better.
        self.follow_returned = bool(stratum.best or stratum.frontiers)

    def reset(self) -> None:
        """Derive again from nothing at the next step."""
        self.fresh = True

    def step(self) -> None:
        """Follow the changes of the inputs."""
        if self.stratum.fresh(own=self.fresh):
            self.start()
        elif self.stratum.changed():
            self.follow_changes()

    def renumbered(self, _name: str, _moved: Moves) -> None:
        """Take over that rows have other numbers."""
        self.reset()

    def prepare(self) -> None:
        """Make the labels of the stratum's relations one's own."""

    def share_lost(self, share: float) -> float | None:
        """Guess which share of the rows loses a derivation when that share of the inputs goes; None if nobody knows."""
        return None

    def start(self, *, plain: bool = False) -> None:
        """Derive everything; ``plain`` leaves out labels, and changes cannot be followed then."""
        self.fresh = plain
        self.stratum.clear()
        if plain:
            Fixpoint(self.stratum).derive_all()
        else:
            self.derive_all()

    def follow_changes(self) -> None:
        """Go through the four phases."""
        self.replace(self.nothing())

    def replace(self, doubtful: Rows) -> None:
        """Let rows fall that lost what they follow from, bring back what still follows, and derive what is new.

        Until all have fallen, rows meet that never stood together; faults count in what is derived afterwards.
        """
        with self.stratum.state.faults.ignored():
            self.doubt_inputs(doubtful)
            fallen = self.fall(doubtful)
        grown = self.bring_back(fallen)
        self.enter_inputs(grown)
        self.grow(grown)
        for name, parts in fallen.items():
            for numbers in parts:
                alive = self.stratum.relation(name).is_alive(numbers)
                self.stratum.state.work.returned += int(np.count_nonzero(alive))

    # Phase 1: doubt

    def doubt_inputs(self, doubtful: Rows) -> None:
        """Collect the rows that changes of the inputs make doubtful."""
        for entry in self.stratum.entries:
            if not entry.inside:
                appeared, vanished = self.stratum.relation(entry.relation).pending()
                self.doubt(entry, vanished if entry.positive else appeared, doubtful)

    def doubt(self, entry: Entry, gone: Ints, doubtful: Rows, whom: int | None = None) -> None:
        """Collect the rows that the loss of derivations with one of the ``gone`` rows concerns."""
        if not len(gone):
            return
        stratum = self.stratum
        name = stratum.rules[entry.rule].relation
        for chunk in self.met(entry, gone):
            stratum.state.work.derivations += len(chunk)
            concerned = self.concerned(entry.rule, chunk, whom)
            if len(concerned):
                doubtful[name].append(concerned)

    def met(self, entry: Entry, rows: Ints, when: int = EITHER) -> Iterator[Ints]:
        """Yield what follows from rows that came or went, and others that were alive some time; perhaps it never did.

        What must be absent is not looked at.
        """
        needs = [when if positive else 0 for _step, positive in self.stratum.rules[entry.rule].atoms]
        return self.joined(entry, rows, needs)

    def concerned(self, rule: int, chunk: Ints, whom: int | None) -> Ints:
        """Mark and return the rows alive that the loss of derivations concerns."""
        head = self.stratum.head(rule)
        numbers = self.holders(rule, chunk)
        offers = self.offers(rule, chunk, head.width) if self.trace else None
        out = np.empty(len(numbers), np.int64)
        made = arithmetic.concern(
            numbers,
            _NO_OFFER if offers is None else offers,
            arithmetic.ANY if whom is None else whom,
            head.arrays,
            head.labels,
            out,
        )
        return out[:made]

    def holders(self, rule: int, chunk: Ints) -> Ints:
        """Return the rows that derivations support."""
        return self.stratum.head(rule).find(chunk)

    # Phase 2: fall

    def fall(self, doubtful: Rows) -> Rows:
        """Let doubtful rows die unless something saves them, here and wherever rows travel; return those that died."""
        fallen = self._fall_here(doubtful)
        exchange = self.stratum.exchange
        while exchange is not None and (gone := exchange.fell()) is not None:
            doubtful = self.nothing()
            for entry in self.stratum.entries:
                if entry.relation in gone:
                    self.doubt(entry, gone[entry.relation], doubtful)
            for name, parts in self._fall_here(doubtful).items():
                fallen[name] += parts
        return fallen

    def _fall_here(self, doubtful: Rows) -> Rows:
        stratum = self.stratum
        work = stratum.state.work
        fallen = self.nothing()
        while any(doubtful.values()):
            work.rounds += 1
            following = self.nothing()
            for name, parts in doubtful.items():
                if not parts:
                    continue
                numbers = parts[0] if len(parts) == 1 else np.concatenate(parts)
                work.doubted += len(numbers)
                gone = stratum.let_fall(name, numbers, self.saved(name, numbers))
                if len(gone):
                    work.fallen += len(gone)
                    fallen[name].append(gone)
                    for entry in stratum.readers(name):
                        self.doubt(entry, gone, following)
            doubtful = following
        return fallen

    def saved(self, name: str, numbers: Ints) -> Mask | None:
        """Tell which doubtful rows stay, None if none does."""

    def supports(
        self, name: str, numbers: Ints, inside: int = NEW, rules: Sequence[int] | None = None
    ) -> Iterator[tuple[int, Ints]]:
        """Yield derivations that rows have now, by some rules or all: the rule; the line of the row, the rows used.

        Of the stratum itself they use rows that are alive by the mask ``inside``.
        """
        stratum = self.stratum
        relation = stratum.relation(name)
        for low in range(0, len(numbers), _BATCH):
            batch = relation.read(numbers[low : low + _BATCH], more=1)
            batch[:, -1] = np.arange(low, low + len(batch))
            for rule in stratum.rules_of(name) if rules is None else rules:
                for chunk in stratum.at_head(rule).run(batch, stratum.needs_inside(rule, inside)):
                    stratum.state.work.derivations += len(chunk)
                    yield rule, chunk

    def count_derivations(self, name: str, number: int) -> int:
        """Return how many derivations a row has now, whatever is kept of them."""
        return sum(len(chunk) for _rule, chunk in Rederive.supports(self, name, np.array([number], np.int64)))

    def derivations_into(self, name: str, groups: Ints) -> Iterator[tuple[int, Ints, Ints]]:
        """Yield derivations that groups of `min` or `max` have now: the rule; the group of each; its value first."""
        stratum = self.stratum
        for rule in stratum.rules_of(name):
            for low in range(0, len(groups), _BATCH):
                part = groups[low : low + _BATCH]
                lines = np.arange(len(part), dtype=np.int64)
                batch = np.ascontiguousarray(np.column_stack((part if part.shape[1] else lines, lines)))
                for chunk in stratum.at_head(rule).run(batch, needs_for(stratum, rule, NEW)):
                    stratum.state.work.derivations += len(chunk)
                    yield rule, part[chunk[:, 1]], chunk

    # Phase 3: return

    def bring_back(self, fallen: Rows) -> Rows:
        """Bring back what still follows; return the rows whose consequences are still to be looked at.

        What followed from a row that comes back was there before, so only other fallen rows can follow from it. While
        fewer of these are left than came back last, they are looked at again; else consequences are followed.
        """
        left = {name: np.concatenate(parts) for name, parts in fallen.items() if parts}
        grown = self.nothing()
        while left:
            grown = self.nothing()
            back = 0
            for name, numbers in left.items():
                grown[name].append(self.revive(name, numbers))
                back += len(grown[name][0])
            left = {name: numbers[~self.stratum.relation(name).is_alive(numbers)] for name, numbers in left.items()}
            left = {name: numbers for name, numbers in left.items() if len(numbers)}
            if self.follow_returned or not back or sum(map(len, left.values())) > back:
                return grown
        return self.nothing()

    def revive(self, name: str, numbers: Ints) -> Ints:
        """Make rows alive again that have a derivation; return them."""
        found = np.zeros(len(numbers), np.bool_)
        for _rule, chunk in self.supports(name, numbers):
            found[chunk[:, 0]] = True
        return self.stratum.relation(name).revive(numbers[found])

    # Phase 4: growth

    def enter_inputs(self, grown: Rows) -> None:
        """Derive what the changed inputs lead to."""
        for entry in self.stratum.entries:
            if not entry.inside:
                appeared, vanished = self.stratum.relation(entry.relation).pending()
                numbers = appeared if entry.positive else vanished
                if len(numbers):
                    self.follow(entry, numbers, grown)
