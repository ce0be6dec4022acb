"""`min` or `max` in recursion: of each group only the best row is alive.

Groups are numbered; `best` holds the row alive of each. A better candidate takes the place of the row that was best:
that is an improvement and no deletion, since whatever followed from the worse row follows, better, from the new one.
"""

from __future__ import annotations

import numpy as np

from whorl.kernel.state.relation import Ints, StoredRelation
from whorl.model.types import Type

NONE = -1


class BestRows:
    """The best rows of a stored relation, by one column."""

    def __init__(self, relation: StoredRelation, column: int, *, lowest: bool) -> None:
        self.relation = relation
        self.column = column
        self.group = [at for at in range(relation.width) if at != column]
        self._lowest = lowest
        self._groups = StoredRelation(f"{relation.name}^groups", [relation.types[at] for at in self.group])
        self._best = np.full(32, NONE, np.int64)

    def clear(self) -> None:
        """Forget which rows are best."""
        self._best[:] = NONE

    def resume(self) -> None:
        """Find out from the rows alive which are best."""
        alive = self.relation.alive()
        groups = self.number(np.ascontiguousarray(self.relation.read(alive)[:, self.group]))
        self._best[groups] = alive

    def number(self, batch: Ints) -> Ints:
        """Return the number of each line's group; a batch has the group's columns only."""
        numbers = self._groups.number(batch if self.group else np.zeros((len(batch), 1), np.int64))
        if self._groups.count > len(self._best):
            larger = np.full(max(self._groups.count, 2 * len(self._best)), NONE, np.int64)
            larger[: len(self._best)] = self._best
            self._best = larger
        return numbers

    def keys(self, values: Ints) -> Ints:
        """Return keys of values that are smaller the better."""
        return order_keys(values, self.relation.types[self.column], lowest=self._lowest)

    def keys_of(self, numbers: Ints) -> Ints:
        """Return the keys of stored rows."""
        return self.keys(self.relation.read(np.ascontiguousarray(numbers))[:, self.column])

    def improve(self, batch: Ints) -> Ints:
        """Offer rows; make those alive that are better than the best so far, and return their numbers."""
        if not len(batch):
            return np.empty(0, np.int64)
        groups = self.number(np.ascontiguousarray(batch[:, self.group]))
        keys = self.keys(batch[:, self.column])
        order = np.lexsort((keys, groups))
        groups, keys = groups[order], keys[order]
        first = np.flatnonzero(np.concatenate(([True], groups[1:] != groups[:-1])))
        groups, keys, lines = groups[first], keys[first], order[first]
        current = self._best[groups]
        held = current >= 0
        better = ~held
        better[held] = np.less(keys[held], self.keys_of(current[held]))
        if not better.any():
            return np.empty(0, np.int64)
        self.relation.retire(current[better & held])
        numbers = self.relation.number(np.ascontiguousarray(batch[lines[better]]))
        self._best[groups[better]] = numbers
        self.relation.revive(numbers)
        return numbers

    def holders(self, batch: Ints) -> Ints:
        """Return the best row of the group of each line, -1 if there is none."""
        return self._best[self.number(np.ascontiguousarray(batch[:, self.group]))]

    def fall(self, numbers: Ints) -> Ints:
        """Let best rows die; return those that were alive."""
        gone = self.relation.retire(numbers)
        if len(gone):
            groups = self.number(np.ascontiguousarray(self.relation.read(gone)[:, self.group]))
            self._best[groups] = NONE
        return gone


def order_keys(values: Ints, kind: Type, *, lowest: bool) -> Ints:
    """Return integers in the order of stored values, smaller the better."""
    values = np.ascontiguousarray(values)
    if kind is Type.FLOAT:
        values = values + 0  # a copy; -0.0 and 0.0 are equal
        values[values == np.iinfo(np.int64).min] = 0
        values = np.where(values < 0, values ^ np.iinfo(np.int64).max, values)
    return values if lowest else ~values
