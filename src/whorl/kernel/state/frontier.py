"""`min` or `max` in recursion under windows: of each group the rows that no other beats in value and time of death.

When the best row of a group dies, its successor is there already. See `whorl.kernel.arrays.frontier` for the lists.
"""

from __future__ import annotations

import numpy as np

from whorl.kernel.arrays import frontier as arrays
from whorl.kernel.state.best import order_keys
from whorl.kernel.state.distinct import distinct
from whorl.kernel.state.relation import Ints, StoredRelation

_NONE = np.empty(0, np.int64)


class Frontier:
    """The frontiers of a stored relation whose last column is the value and whose labels are deaths."""

    def __init__(self, relation: StoredRelation, *, lowest: bool) -> None:
        self.relation = relation
        self._lowest = lowest
        self._groups = StoredRelation(f"{relation.name}^groups", relation.types[:-1])
        self.numbering = 0  # is another one when groups have got other numbers
        self.clear()

    def clear(self) -> None:
        """Forget all lists."""
        self._stale = False
        self._first = np.full(max(32, self._groups.count), arrays.END, np.int64)
        self._following = np.empty(32, np.int64)
        self._keys = np.empty(32, np.int64)
        self._touched: list[Ints] = [np.arange(self._groups.count)]

    def resume(self) -> None:
        """Go on from rows that were saved, or have got other numbers; groups get other ones too."""
        self._groups = StoredRelation(self._groups.name, self.relation.types[:-1])
        self.numbering += 1
        self._stale = True

    @property
    def first(self) -> Ints:
        """The first row of each list."""
        self._build()
        return self._first

    def _build(self) -> None:
        """Build the lists from the rows alive and their labels, if that is still to be done.

        It is not done before somebody needs them: where everything is derived again, nobody does.
        """
        if not self._stale:
            return
        alive = self.relation.alive()
        self.clear()
        self._reserve()
        rows = self.relation.read(alive)
        groups = self.groups(rows)
        keys = order_keys(rows[:, -1], self.relation.types[-1], lowest=self._lowest)
        order = np.lexsort((keys, groups))
        alive, groups, keys = alive[order], groups[order], keys[order]
        self._keys[alive] = keys
        self._following[alive] = arrays.END
        same = groups[1:] == groups[:-1]
        self._following[alive[:-1][same]] = alive[1:][same]
        starts = np.flatnonzero(np.append(True, ~same)) if len(alive) else _NONE
        self._first[groups[starts]] = alive[starts]

    def groups(self, rows: Ints) -> Ints:
        """Return the number of the group of each row."""
        self._build()
        width = self.relation.width - 1
        batch = np.ascontiguousarray(rows[:, :width]) if width else np.zeros((len(rows), 1), np.int64)
        numbers = self._groups.number(batch)
        if self._groups.count > len(self._first):
            larger = np.full(max(self._groups.count, 2 * len(self._first)), arrays.END, np.int64)
            larger[: len(self._first)] = self._first
            self._first = larger
        return numbers

    def offer(self, rows: Ints, deaths: Ints) -> Ints:
        """Enter what nothing dominates; return the numbers of the rows that are new or live longer."""
        groups = self.groups(rows)
        keys = order_keys(rows[:, -1], self.relation.types[-1], lowest=self._lowest)
        fit = np.empty(len(rows), np.bool_)
        arrays.undominated(groups, keys, deaths, self._first, self._following, self._keys, self.relation.labels, fit)
        if not fit.any():
            return _NONE
        groups, keys, deaths = groups[fit], keys[fit], deaths[fit]
        numbers = self.relation.number(np.ascontiguousarray(rows[fit]))
        self._reserve()
        entered, dropped = np.empty(len(numbers), np.int64), np.empty(len(numbers) + self._count(groups), np.int64)
        both = arrays.enter_frontier(
            numbers,
            groups,
            keys,
            deaths,
            self._first,
            self._following,
            self._keys,
            self.relation.arrays,
            self.relation.labels,
            entered,
            dropped,
        )
        entered, dropped = entered[: both >> 32], dropped[: both & 0xFFFFFFFF]
        self.relation.note_changes(entered)
        self.relation.note_changes(dropped)
        self._touched.append(groups)
        return entered

    def _reserve(self) -> None:
        if self.relation.count > len(self._following):
            size = max(self.relation.count, 2 * len(self._following))
            self._following.resize(size, refcheck=False)
            self._keys.resize(size, refcheck=False)

    def _count(self, groups: Ints) -> int:
        """Return how many rows groups have now, groups that come twice counted twice."""
        return int(arrays.list_rows(groups, self._first, self._following, _NONE, 0))

    def rows_of(self, groups: Ints) -> Ints:
        """Return the rows of groups."""
        out = np.empty(self._count(groups), np.int64)
        arrays.list_rows(groups, self._first, self._following, out, 0)
        return out

    def fall(self, numbers: Ints) -> Ints:
        """Let rows die; return those that were alive."""
        self._build()
        gone = self.relation.retire(numbers)
        if len(gone):
            groups = self.groups(self.relation.read(gone))
            arrays.unlink(gone, groups, self._first, self._following)
            self._touched.append(groups)
        return gone

    def touched(self) -> Ints:
        """Return the groups whose lists changed since the last time."""
        self._build()
        groups = distinct(np.concatenate(self._touched)) if self._touched else _NONE
        self._touched = []
        return groups

    @property
    def nbytes(self) -> int:
        """The memory that lists take beside the rows."""
        return int(self._groups.nbytes + self._first.nbytes + self._following.nbytes + self._keys.nbytes)
