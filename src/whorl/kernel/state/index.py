"""An index of a stored relation: grows as needed, and follows the relation lazily, when somebody looks something up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from whorl.kernel.arrays import index as index_arrays

if TYPE_CHECKING:
    from whorl.kernel.state.relation import StoredRelation

_SMALL_BITS = 6
_SPARSEST, _ANYWAY = 4, 65536  # keys are places of their own while below so many for each row, or this small


class Index:
    """The rows of a relation by some of its columns."""

    def __init__(self, relation: StoredRelation, columns: tuple[int, ...]) -> None:
        self._relation = relation
        self.columns = np.array(columns, np.int64)
        self.clear()

    def clear(self) -> None:
        """Forget everything, to be built anew."""
        self.done = 0
        self._meta = np.array([0, 0, _SMALL_BITS, len(self.columns) == 1], np.int64)
        self._table = _entries(1 << _SMALL_BITS)
        self._before = np.empty(32, np.int32)
        self._arena = np.empty(64, np.int32)

    def restart(self) -> None:
        """Forget the rows, but not how much room they took: about as many come again."""
        self.done = 0
        self._meta[:2] = 0
        self._table.fill(0)

    def arrays(self) -> tuple[object, ...]:
        """Return the arrays, up to date with the relation."""
        relation = self._relation
        count = relation.count
        if len(self._before) < count:
            before = np.empty(relation.room, np.int32)
            before[: self.done] = self._before[: self.done]
            self._before = before
        while self.done < count:
            self.done = index_arrays.append_rows(relation.arrays, self.done, count, self._tuple())
            if self.done < count:
                self._grow()
        return self._tuple()

    @property
    def direct(self) -> bool:
        """Whether keys are places of the table themselves."""
        return bool(self._meta[index_arrays.DIRECT])

    @property
    def places(self) -> int:
        """How many keys the table has places for, free ones included."""
        return len(self._table)

    def _tuple(self) -> tuple[object, ...]:
        return (self._table, self._before, self._arena, self._meta, self.columns)

    def _grow(self) -> None:
        """Make room for the next row: in the table, or else in the arena, and again if that was not enough."""
        keys, _used, bits = (int(value) for value in self._meta[:3])
        if self.direct:
            grown = self._grow_direct(keys)
        else:
            grown = keys == 7 * self.places // 10
            if grown and not self._return_to_direct():
                self._place_keys(1 << (bits + 1))
        if not grown:
            arena = np.empty(max(2 * len(self._arena), self._relation.count), np.int32)
            arena[: len(self._arena)] = self._arena
            self._arena = arena

    def _grow_direct(self, keys: int) -> bool:
        """Make room for the key of the next row, or go over to hashing if keys are large for their number.

        Return whether there was need.
        """
        key = int(self._relation.read(np.array([self.done]))[0, self.columns[0]])
        if 0 <= key < self.places:
            return False
        if self._dense(key):
            table = _entries(max(2 * self.places, 1 << key.bit_length()))
            table[: len(self._table)] = self._table
            self._table = table
        else:
            self._meta[index_arrays.DIRECT] = 0
            self._place_keys(1 << max(_SMALL_BITS, (2 * keys).bit_length()))
        return True

    def _dense(self, key: int) -> bool:
        """Whether keys up to this one may be places of their own."""
        return 0 <= key < _SPARSEST * self._relation.count + _ANYWAY

    def _return_to_direct(self) -> bool:
        """Let keys be places of their own if there are enough rows for it by now; tell whether that is so."""
        if len(self.columns) != 1:
            return False
        largest = int(index_arrays.largest_key(self._relation.arrays, self._tuple()))
        if not self._dense(largest):
            return False
        self._meta[index_arrays.DIRECT] = 1
        self._place_keys(1 << largest.bit_length())
        return True

    def _place_keys(self, size: int) -> None:
        """Take another table; keys get new places."""
        entries, self._table = self._table, _entries(size)
        self._meta[index_arrays.BITS] = size.bit_length() - 1
        index_arrays.place_keys(self._relation.arrays, entries, self._tuple())

    @property
    def nbytes(self) -> int:
        """The memory it takes; room that was never used takes none."""
        taken = self.done + int(self._meta[index_arrays.USED])
        return int(self._table.nbytes + taken * self._arena.itemsize)


def _entries(many: int) -> npt.NDArray[np.int32]:
    """Return the entries of a free table."""
    return np.zeros((many, 2), np.int32)
