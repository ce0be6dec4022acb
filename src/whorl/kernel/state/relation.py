"""A stored relation: its rows, who is alive, its indexes. Grows as needed; dead rows are swept when they are many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from whorl.kernel.arrays import rowset
from whorl.kernel.state.index import Index
from whorl.model.types import Type

Ints: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]
Moves: TypeAlias = npt.NDArray[np.int32]  # the new number of each row, -1 if it is gone
_FILL = 0.7  # of a table that may be in use
_ROOMY = 1 / 3  # likewise, where most rows that come are new: to see that takes longer in a fuller table
_SMALL_BITS = 6
_FEW, _TINY = 1 << 17, 512  # changes that may be held twice; and a part of them that is not worth a call
SPARE = 4096  # rows that are no waste
_TOO_LONG = 4  # times the room needed
_FIRST = 4096  # entries of a table that wait while it grows


def no_rows(width: int) -> Ints:
    """Return an empty batch."""
    return np.empty((0, width), np.int64)


@dataclass(frozen=True, slots=True)
class StoredRows:
    """All that a relation has to remember: its rows as they are stored, flags, and labels if it keeps them."""

    rows: Ints
    flags: npt.NDArray[np.uint8]
    labels: Ints | None
    narrow: bool


class StoredRelation:
    """Rows of one relation, by number; see `whorl.kernel.arrays.rowset` for the layout."""

    def __init__(self, name: str, types: Sequence[Type]) -> None:
        self.name = name
        self.dying = False  # whether labels are times of death
        self._fill = _FILL
        self.types = tuple(types) or (Type.INTEGER,)  # a relation without columns holds the row (0)
        self.width = len(self.types)
        self._all = np.arange(self.width)
        self._reached = np.zeros(2, np.int64)  # the line of a batch that has been entered, and labels raised
        self._indexes: dict[tuple[int, ...], Index] = {}
        self.clear()

    def clear(self) -> None:
        """Forget all rows."""
        self._narrow = True
        words = (self.width + 1) // 2
        self._rows = np.empty((32, words), np.int64)
        self._flags = np.zeros(32, np.uint8)
        self._meta = np.array([0, 0, 1, 0, 0], np.int64)
        self._take_table(np.zeros(1 << _SMALL_BITS, np.int64))
        self.labels: Ints = np.empty(0, np.int64)
        self._labelled = False
        self._changed: list[Ints] = []
        self._together: Ints | None = None  # all of them, since someone asked
        self._selected: list[Ints] = []  # likewise, by their bits NEW and OLD
        self.lowered = False  # whether a label got smaller in this epoch
        self.living = 0  # rows alive after the last epoch
        self._settled = 0  # rows stored after it
        self._entered = 0  # and those that it stored
        self.arrays = (self._rows, self._flags, self._table, self._meta)
        for index in self._indexes.values():
            index.clear()

    @property
    def count(self) -> int:
        """The number of rows stored, dead ones included."""
        return int(self._meta[rowset.COUNT])

    @property
    def room(self) -> int:
        """The number of rows that there is room for."""
        return len(self._flags)

    @property
    def nbytes(self) -> int:
        """The memory it takes, indexes included; room that was never used takes none."""
        row = 8 * self._rows.shape[1] + 1 + (8 if self._labelled else 0)
        taken = self.count * row + self._table.nbytes
        for index in self._indexes.values():
            taken += index.nbytes
        return int(taken)

    def index(self, columns: tuple[int, ...]) -> Index:
        """Return the index over some columns; it is made when first asked for."""
        if columns not in self._indexes:
            self._indexes[columns] = Index(self, columns)
        return self._indexes[columns]

    def expect_new(self) -> None:
        """Be ready for rows most of which are new when they come."""
        self._fill = _ROOMY
        self._take_table(self._table)

    def _take_table(self, table: Ints) -> None:
        self._table = table
        self._meta[rowset.BITS] = len(table).bit_length() - 1
        self._meta[rowset.MOST] = int(self._fill * len(table))

    def keep_labels(self) -> None:
        """Give every row a label."""
        if not self._labelled:
            self._labelled = True
            self.labels = np.zeros(len(self._flags), np.int64)

    def add(self, batch: Ints) -> Ints:
        """Make rows alive; return the numbers of those that were not."""
        if not len(batch):
            return _NONE
        fresh = self._enter(batch, rowset.ADD)
        self.note_changes(fresh)
        return fresh

    def adopt_rows(self, batch: Ints, offers: Ints, *, better: bool = False, lower: bool = False) -> Ints:
        """Make rows alive, each the first columns of a line, with the label offered to it; return those that were not.

        With ``better``, a larger label replaces a smaller one, and the rows that got one are returned too; with
        ``lower``, a smaller rank replaces a larger one, silently.
        """
        mode = rowset.RAISE if better else rowset.LOWER if lower else rowset.ADOPT
        changed = self._enter(batch, mode, offers)
        self.note_changes(changed)
        return changed

    def only_rows(self, batch: Ints) -> Ints:
        """Return lines without what stands behind the row."""
        return batch if batch.shape[1] == self.width else np.ascontiguousarray(batch[:, : self.width])

    def number(self, batch: Ints) -> Ints:
        """Return the number of each row, storing those that are new without making them alive."""
        self._meta[rowset.DEAD] = 1
        return self._enter(batch, rowset.NUMBER)

    def find(self, batch: Ints, columns: Ints | None = None) -> Ints:
        """Return the number of the row that equals each line, or some columns of it, -1 where there is none."""
        found = np.empty(len(batch), np.int64)
        rowset.find_rows(batch, self._all if columns is None else columns, self.arrays, found)
        return found

    def _enter(self, batch: Ints, mode: int, offers: Ints | None = None) -> Ints:
        many = len(batch)
        self.reserve(many)
        state, out = self._reached, np.empty(many, np.int64)
        state[0] = 0
        offered = _NONE if offers is None else offers
        made = rowset.enter_rows(batch, self.width, self.arrays, mode, offered, self.labels, out, state)
        numbering = mode == rowset.NUMBER
        while state[0] < many:
            self._widen()
            rest = out if numbering else np.empty(many, np.int64)
            more = rowset.enter_rows(batch, self.width, self.arrays, mode, offered, self.labels, rest, state)
            out = out if numbering else np.concatenate([out[:made], rest[:more]])
            made += more
        if numbering:
            return out
        return out[:made] if 2 * made > many else out[:made].copy()  # notes are kept until the epoch ends

    def revive(self, numbers: Ints) -> Ints:
        """Make rows alive by number; return those that were not."""
        fresh = np.empty(len(numbers), np.int64)
        fresh = fresh[: rowset.revive(numbers, self.arrays, fresh)]
        self.note_changes(fresh)
        return fresh

    def adopt(self, numbers: Ints, offers: Ints, *, better: bool = False) -> Ints:
        """Do the same for rows that are known by number."""
        changed = np.empty(len(numbers), np.int64)
        mode = rowset.RAISE if better else rowset.ADOPT
        changed = changed[: rowset.adopt(numbers, offers, self.arrays, self.labels, changed, mode)]
        self.note_changes(changed)
        return changed

    def mark(self, numbers: Ints) -> Ints:
        """Mark rows; return those that were not marked, each once. Numbers below 0 are skipped."""
        marked = np.empty(len(numbers), np.int64)
        return marked[: rowset.mark(numbers, self.arrays, marked)]

    def each_once(self, numbers: Ints) -> Ints:
        """Return the rows that are alive, each once."""
        once = np.empty(len(numbers), np.int64)
        return once[: rowset.each_once(numbers, self.arrays, once)]

    def unmark(self, numbers: Ints) -> None:
        """Take marks off rows."""
        rowset.unmark(numbers, self.arrays)

    def retire(self, numbers: Ints) -> Ints:
        """Let rows die by number; return those that were alive."""
        gone = np.empty(len(numbers), np.int64)
        gone = gone[: rowset.retire(numbers, self.arrays, gone)]
        self.note_changes(gone)
        return gone

    def let_fall(self, numbers: Ints, saved: Mask) -> Ints:
        """Take marks off rows, and let those die that are not saved; return these."""
        gone = np.empty(len(numbers), np.int64)
        gone = gone[: rowset.let_fall(numbers, saved, self.arrays, gone)]
        self.note_changes(gone)
        return gone

    def read(self, numbers: Ints, *, more: int = 0) -> Ints:
        """Return rows by number, with ``more`` columns behind; the first of these takes the numbers."""
        out = np.empty((len(numbers), self.width + more), np.int64)
        rowset.read_rows(self.arrays, numbers, self.width, out)
        return out

    def alive(self, mask: int = rowset.NEW) -> Ints:
        """Return the numbers of the rows alive."""
        return np.flatnonzero(self._flags[: self.count] & mask)

    def is_alive(self, numbers: Ints | slice, mask: int = rowset.NEW) -> npt.NDArray[np.bool_]:
        """Tell which rows are alive."""
        alive: npt.NDArray[np.bool_] = (self._flags[numbers] & mask) != 0
        return alive

    def changed(self) -> Ints:
        """Return the numbers of rows that died or came alive in this epoch, perhaps more than once."""
        if self._together is None:
            self._together = _concatenate(self._changed)
        return self._together

    def has_changed(self) -> bool:
        """Whether any row died, came alive or got another label in this epoch."""
        return bool(self._changed)

    def changed_since(self, seen: int) -> tuple[list[Ints], int]:
        """Return the notes of changes after the first ``seen`` of this epoch, and how many there are now."""
        return self._changed[seen:], len(self._changed)

    @property
    def raised(self) -> int:
        """How many labels of rows alive were raised in this epoch, so that the rows may be noted twice."""
        return int(self._reached[1])

    def note_raised(self, many: int) -> None:
        """Remember that someone else raised labels."""
        self._reached[1] += many

    @property
    def labelled(self) -> bool:
        """Whether rows have labels."""
        return self._labelled

    def note_changes(self, numbers: Ints) -> None:
        """Remember rows that someone else made alive, let die or gave another label."""
        if len(numbers):
            self._changed.append(numbers)
            self._together = None
            self._selected.clear()

    def note_all(self, changes: Sequence[Ints]) -> None:
        """Remember rows, each once: those that someone made alive, let die, or gave another label while they lived."""
        first = not self._changed
        self._changed += [numbers for numbers in changes if len(numbers)]
        self._together = None
        self._selected = []
        if first:
            self._selected = [_NONE, *changes]

    def relabelled(self) -> Ints:
        """Return the rows that were and are alive, and may have got another label in this epoch."""
        return self._select(rowset.NEW | rowset.OLD)

    def pending(self) -> tuple[Ints, Ints]:
        """Return the rows that appeared and vanished so far in this epoch, without closing it."""
        return self._select(rowset.NEW), self._select(rowset.OLD)

    def _select(self, wanted: int) -> Ints:
        if not self._selected:
            changed = self.changed()
            out, counts = np.empty((4, len(changed)), np.int64), np.zeros(4, np.int64)
            rowset.sort_changes(changed, self.arrays, out, counts)
            self._selected = [found[:count] for found, count in zip(out, counts.tolist(), strict=True)]
        return self._selected[wanted]

    def settle(self) -> tuple[Ints, Ints]:
        """Close the epoch; return the numbers of rows that appeared and vanished.

        Of a large epoch, what was noted is overwritten part by part, so that it is not held several times.
        """
        parts = self._changed[::-1]
        self._forget_changes()
        many = sum(map(len, parts))
        came, went = self._settle_few(parts, many) if many <= _FEW else self._settle_many(parts)
        self.living += len(came) - len(went)
        self._entered, self._settled = self.count - self._settled, self.count
        return came, went

    def _settle_few(self, parts: list[Ints], many: int) -> tuple[Ints, Ints]:
        if many < _TINY * len(parts):
            parts = [np.concatenate(parts[::-1])]  # a copy costs less than the calls
        came, went = np.empty(many, np.int64), np.empty(many, np.int64)
        new = gone = 0
        while parts:
            both = rowset.settle(parts.pop(), self.arrays, came[new:], went[gone:])
            new, gone = new + (both >> 32), gone + (both & 0xFFFFFFFF)
        return came[:new], went[:gone]

    def _settle_many(self, parts: list[Ints]) -> tuple[Ints, Ints]:
        appeared: list[Ints] = []
        vanished: list[Ints] = []
        while parts:
            part = parts.pop()
            gone = np.empty(len(part), np.int64)
            both = rowset.settle(part, self.arrays, part, gone)
            appeared.append(part[: both >> 32])
            vanished.append(gone[: both & 0xFFFFFFFF].copy())
        return _concatenate(appeared), _concatenate(vanished)

    def _forget_changes(self) -> None:
        self._changed = []
        self._together = None
        self._selected = []
        self.lowered = False
        self._reached[1] = 0

    def wasteful(self, needed: int) -> bool:
        """Whether the rows stored are so many more than those needed that the others have paid for being swept out.

        Half as many have if arrays would soon have to grow: for an epoch that brings twice as many as the last one.
        """
        full = self.count + 2 * self._entered > min(self.room, int(self._meta[rowset.MOST]))
        return self.count - needed > max(needed // 2 if full else needed, SPARE)

    def drop(self, wasted: Mask) -> Moves:
        """Forget rows that are dead; the others get new numbers, in their order. Return these, -1 for those forgotten.

        There is room for as many more then; what is far more than that is given back.
        """
        assert not self._changed, "an epoch is under way"
        moved = np.empty(self.count, np.int32)
        rowset.drop_rows(~wasted, self.arrays, self.labels, moved)
        self._settled = self.count
        room = 2 * self.count
        if _TOO_LONG * room < len(self._flags):
            self._lengthen(room)
        bits = self._bits_for(room)
        if bits < int(self._meta[rowset.BITS]):
            self._take_table(np.zeros(1 << bits, np.int64))
            self.arrays = (self._rows, self._flags, self._table, self._meta)
        else:
            self._table.fill(0)
        rowset.rehash(self.arrays)
        for index in self._indexes.values():
            index.restart()
        return moved

    def _bits_for(self, many: int) -> int:
        """Return how long a table for so many rows must be, as a power of 2."""
        bits = _SMALL_BITS
        while many > self._fill * (1 << bits):
            bits += 1
        return bits

    def save(self) -> StoredRows:
        """Return what there is to remember between two epochs."""
        assert not self._changed, "an epoch is under way"
        count = self.count
        labels = self.labels[:count] if self._labelled else None
        return StoredRows(self._rows[:count], self._flags[:count], labels, self._narrow)

    def load(self, stored: StoredRows) -> None:
        """Take over rows, which are copied; the table is built anew, indexes when asked for."""
        labelled = self._labelled
        self.clear()
        count = len(stored.flags)
        self._narrow = stored.narrow
        self._rows, self._flags = stored.rows.copy(), stored.flags.copy()
        self._take_table(np.zeros(1 << self._bits_for(count), np.int64))
        self._meta[rowset.COUNT] = self._settled = count
        self._meta[rowset.NARROW], self._meta[rowset.DEAD] = stored.narrow, 1
        self.living = int(np.count_nonzero(self._flags & rowset.NEW))
        self._labelled = labelled or stored.labels is not None
        if self._labelled:
            self.labels = np.zeros(count, np.int64) if stored.labels is None else stored.labels.copy()
        self.arrays = (self._rows, self._flags, self._table, self._meta)
        rowset.rehash(self.arrays)

    def reopen(self, appeared: Ints, vanished: Ints) -> None:
        """Take a settled epoch back to where it was before."""
        self._flags[appeared] = rowset.NEW
        self._flags[vanished] = rowset.OLD
        self.living += len(vanished) - len(appeared)
        self._forget_changes()
        self._changed = [appeared, vanished]

    def roll_back(self) -> None:
        """Undo the epoch: let NEW equal OLD again."""
        changed = self.changed()
        self._forget_changes()
        old = self._flags[changed] & rowset.OLD
        self._flags[changed] = old | (old >> 1)
        self.clear_marks()
        self._meta[rowset.DEAD] = 1

    def clear_marks(self) -> None:
        """Take the mark off every row."""
        self._flags[: self.count] &= np.uint8(~rowset.MARK & 0xFF)

    def reserve(self, more: int) -> None:
        """Make room for so many rows more."""
        needed = self.count + more
        if needed > len(self._flags):
            self._lengthen(2 * needed + needed // 4)  # as many dead as alive, and an epoch more, until they are swept
        if needed > self._meta[rowset.MOST]:
            bits = int(self._meta[rowset.BITS])
            while needed > self._fill * (1 << bits):
                bits += 2 if bits < 18 else 1
            self._grow_table(bits)

    def _lengthen(self, size: int) -> None:
        """Make room for so many rows. What is not in use is not touched, so it takes no memory yet."""
        count, self.arrays = self.count, ()  # type: ignore[assignment]
        self._rows = with_room(self._rows[:count], size - count)
        self._flags = with_room(self._flags[:count], size - count)
        if self._labelled:
            self.labels = with_room(self.labels[:count], size - count)
        self.arrays = (self._rows, self._flags, self._table, self._meta)

    def _grow_table(self, bits: int) -> None:
        """Make the table larger where it is, so that it is never held twice."""
        old = len(self._table)
        self.arrays = ()  # type: ignore[assignment]
        self._table.resize(1 << bits, refcheck=False)
        self._take_table(self._table)
        self.arrays = (self._rows, self._flags, self._table, self._meta)
        if not rowset.spread(self._table, old, bits, np.empty(min(old, _FIRST), np.int64)):
            self._table[:] = 0
            rowset.rehash(self.arrays)

    def _widen(self) -> None:
        """Give every column a word of its own."""
        assert self._narrow, "wide rows hold every value"
        wide = np.empty((len(self._flags), self.width), np.int64)
        rowset.widen_rows(self._rows, wide, self.count)
        self._narrow = False
        self._rows = wide
        self._meta[rowset.NARROW] = 0
        self._table[:] = 0
        self.arrays = (self._rows, self._flags, self._table, self._meta)
        rowset.rehash(self.arrays)


_NONE = np.empty(0, np.int64)


def with_room(array: npt.NDArray[Any], spare: int) -> npt.NDArray[Any]:
    """Return a copy with room behind it, of zeros."""
    out = np.zeros((len(array) + spare, *array.shape[1:]), array.dtype)
    out[: len(array)] = array
    return out


def _concatenate(parts: Sequence[Ints]) -> Ints:
    if not parts:
        return _NONE
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
