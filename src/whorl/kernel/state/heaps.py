"""Heaps over the rows of a stored relation; they grow as needed. See `whorl.kernel.arrays.heaps` for the layout."""

from __future__ import annotations

import numpy as np

from whorl.kernel.arrays import heaps as arrays
from whorl.kernel.state.ordering import Order
from whorl.kernel.state.relation import SPARE, Ints, StoredRelation


class Heaps:
    """The rows of a relation by their last column, in any number of heaps."""

    def __init__(self, relation: StoredRelation, order: Order) -> None:
        self._relation = relation
        self._order = order
        self.clear()

    def clear(self) -> None:
        """Take everything out; the order of values is kept, if it is whole and most of them are not gone."""
        if not self._order.whole or self._order.many > 2 * self._relation.living + SPARE:
            self._order.clear()
        self._top = np.full(32, arrays.END, np.int64)
        self._keys = np.empty(32, np.int64)
        self._child = np.full(32, arrays.OUT, np.int32)
        self._following = np.empty(32, np.int32)

    def _reserve(self, heaps: int) -> None:
        """Make room for so many heaps, and for all rows."""
        if heaps > len(self._top):
            top = np.full(max(heaps, 2 * len(self._top)), arrays.END, np.int64)
            top[: len(self._top)] = self._top
            self._top = top
        rows = len(self._child)
        if self._relation.count > rows:
            size = max(self._relation.count, 2 * rows)
            self._keys.resize(size, refcheck=False)
            self._following.resize(size, refcheck=False)
            self._child.resize(size, refcheck=False)
            self._child[rows:] = arrays.OUT

    def _arrays(self) -> tuple[object, ...]:
        return (self._top, self._keys, self._child, self._following, self._order.places)

    def enter(self, numbers: Ints, which: Ints, values: Ints) -> None:
        """Enter rows, given with the heap and the value of each."""
        keys = self._order.keys(values)
        self._reserve(int(which.max(initial=-1)) + 1)
        arrays.enter_heaps(numbers, which, keys, self._arrays())

    def first(self, which: Ints) -> Ints:
        """Return the first row alive of some heaps, -1 where there is none."""
        self._reserve(int(which.max(initial=-1)) + 1)
        out = np.empty(len(which), np.int64)
        arrays.first_alive(which, self._relation.arrays[1], self._arrays(), out)
        return out

    @property
    def nbytes(self) -> int:
        """The memory that heaps take beside the rows."""
        own = self._top.nbytes + self._keys.nbytes + self._child.nbytes + self._following.nbytes
        return int(own + self._order.nbytes)
